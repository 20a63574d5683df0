"""Fourier features: compiled cosines, oracles, unbiasedness, errors, frozen outputs, bad input."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard
from scipy.stats import chi
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from craftmaps import Cauchy, FourierFeatures, Gaussian, Laplacian, Matern
from craftmaps.kernels import ShiftInvariant
from craftmaps.kernels.shift_invariant import normal_lengths
from craftmaps.loops.fourier import cos_sin32, cos_sin64
from craftmaps.maps.parts.sign_sets import sign_sets
from unbiased import Biased, check_unbiased, kernel_estimates

SAMPLINGS = ("iid", "orthogonal", "structured", "qmc", "fastfood")
CUBE = ShiftInvariant(
    lambda n, d, rng: rng.uniform(-1, 1, (n, d)),
    value=lambda u: np.sinc(u / np.pi).prod(axis=-1),
    gamma=0.7,
)


def on_sphere(n, d, rng):
    directions = rng.standard_normal((n, d))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


# In three dimensions the mean of cos<w, u> over the unit sphere is sin|u| / |u|.
SPHERE = ShiftInvariant(
    on_sphere,
    value=lambda u: np.sinc(np.linalg.norm(u, axis=-1) / np.pi),
    isotropic=True,
    gamma=0.7,
)
EXACT = [
    *((Gaussian(0.4), sampling) for sampling in SAMPLINGS),
    *((Matern(1.5, 0.6), sampling) for sampling in SAMPLINGS),
    *((Matern(0.5, 0.5), sampling) for sampling in ("iid", "orthogonal", "qmc", "fastfood")),
    *((kernel, s) for kernel in (Laplacian(0.2), Cauchy(0.4)) for s in ("iid", "qmc")),
    (CUBE, "iid"),
    (SPHERE, "iid"),
    (SPHERE, "orthogonal"),
]
ROWS = np.random.default_rng(7).standard_normal((4, 3)) / 2
PAIRS = [(0, 1), (0, 2), (1, 3)]


def name(value):
    return type(value).__name__ if not isinstance(value, str) else value


def check(make_map, kernel, X=ROWS, seeds=400):
    expected = kernel(X)[tuple(np.transpose(PAIRS))]
    check_unbiased(kernel_estimates(make_map, X, PAIRS, range(seeds)), expected, smallest=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "sampling"), EXACT, ids=name)
def test_unbiased(kernel, sampling):
    """At the false-alarm rate of the suite, a bias of 3 % of the kernel would be seen."""
    check(lambda seed: FourierFeatures(kernel, 512, sampling=sampling, random_state=seed), kernel)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["iid", "structured"])
def test_odd_numbers_of_columns_are_unbiased(sampling):
    kernel = Gaussian(0.4)
    check(
        lambda seed: FourierFeatures(kernel, 15, sampling=sampling, random_state=seed),
        kernel,
        seeds=4000,
    )


@pytest.mark.slow
def test_halton_is_unbiased():
    kernel = Gaussian(0.4)
    check(
        lambda seed: FourierFeatures(
            kernel, 512, sampling="qmc", sequence="halton", random_state=seed
        ),
        kernel,
    )


@pytest.mark.slow
def test_padded_and_long_rows_are_unbiased():
    X = np.random.default_rng(1).standard_normal((4, 70)) / 10
    kernel = Gaussian(0.4)
    for sampling in ("structured", "fastfood"):
        check(
            lambda seed, s=sampling: FourierFeatures(kernel, 512, sampling=s, random_state=seed),
            kernel,
            X,
        )


class WrongScale(FourierFeatures):
    """w ~ N(0, 2.2 gamma I)."""

    def _fill(self, X, out):
        super()._fill(np.sqrt(1.1) * X, out)


class FixedLengths(FourierFeatures):
    """Directions without chi lengths: the mean of |w| instead."""

    def fit(self, X, y=None):
        super().fit(X, y)
        scale = self._frequencies.scale
        scale[:] = np.sqrt(np.mean(scale**2)) * np.sqrt(1.3)
        return self


class SharedPhase(FourierFeatures):
    """Cosines alone, without sines or phases."""

    def _fill(self, X, out):
        super()._fill(X, out)
        half = out.shape[1] // 2
        out[:, half:] = out[:, :half]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [WrongScale, FixedLengths, SharedPhase])
def test_wrong_maps_are_caught(wrong):
    kernel = Gaussian(0.4)
    with pytest.raises(Biased):
        check(
            lambda seed: wrong(kernel, 512, sampling="structured", random_state=seed),
            kernel,
        )


def transform_matrix(feature_map, d):
    """The frequencies, from the projections of unit vectors."""
    m = -(-feature_map.n_components // 2)
    out = np.empty((d, m))
    feature_map._frequencies.fill(np.eye(d), out)
    return out.T


@pytest.mark.parametrize("d", [1, 5, 64, 100])
@pytest.mark.parametrize("n_components", [20, 300, 301, 5000])
@pytest.mark.parametrize("sampling", ["structured", "fastfood"])
def test_rotations_are_products_of_hadamard_matrices(d, n_components, sampling):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, d))
    feature_map = FourierFeatures(
        Gaussian(0.4), n_components, sampling=sampling, random_state=0
    ).fit(X)
    drawn = feature_map._frequencies
    if sampling == "structured":
        H = hadamard(drawn.signs.shape[1])
        blocks = []
        for b, signs in enumerate(drawn.signs):
            group = b // -(-len(drawn.signs) // len(drawn.rotations))
            first, second = drawn.rotations[group]
            rotation = H @ (second[:, None] * H * first)[drawn.permutations[group]]
            blocks.append((H * signs @ rotation)[:, :d])
    else:
        H = hadamard(len(drawn.signs))
        rotation = (H * drawn.signs)[drawn.permutation]
        blocks = [(H * diagonal @ rotation)[: drawn.used, :d] for diagonal in drawn.diagonals]
    m = -(-n_components // 2)
    frequencies = drawn.scale[:, None] * np.concatenate(blocks)[:m]
    np.testing.assert_allclose(transform_matrix(feature_map, d), frequencies, atol=1e-12)
    np.testing.assert_allclose(
        feature_map.transform(X), slow_features(feature_map, X, frequencies), atol=1e-12
    )


def slow_features(feature_map, X, frequencies):
    pairs, odd = divmod(feature_map.n_components, 2)
    projections = X @ frequencies.T
    parts = [np.cos(projections[:, :pairs]), np.sin(projections[:, :pairs])]
    if odd:
        parts.append(np.sqrt(2) * np.cos(projections[:, -1:] + feature_map._phase))
    return np.hstack(parts) / np.sqrt(pairs + odd)


@pytest.mark.parametrize("sampling", ["iid", "orthogonal", "qmc"])
@pytest.mark.parametrize("n_components", [1, 2, 30, 31])
def test_features_are_cosines_and_sines(sampling, n_components):
    X = np.random.default_rng(0).standard_normal((1030, 4))
    feature_map = FourierFeatures(Gaussian(0.4), n_components, sampling=sampling, random_state=0)
    Z = feature_map.fit_transform(X)
    expected = slow_features(feature_map, X, feature_map._frequencies.matrix)
    np.testing.assert_allclose(Z, expected, atol=1e-12)
    if n_components % 2 == 0:
        np.testing.assert_allclose((Z**2).sum(axis=1), 1.0)


def test_orthogonal_blocks_are_orthogonal():
    X = np.zeros((1, 8))
    W = FourierFeatures("rbf", 40, sampling="orthogonal", random_state=0).fit(X)._frequencies.matrix
    directions = W / np.linalg.norm(W, axis=1, keepdims=True)
    for start in range(0, 20, 8):
        block = directions[start : start + 8]
        np.testing.assert_allclose(block @ block.T, np.eye(len(block)), atol=1e-12)
    few = FourierFeatures("rbf", 6, sampling="orthogonal", random_state=0).fit(np.zeros((1, 500)))
    W = few._frequencies.matrix
    np.testing.assert_allclose(W @ W.T, np.diag((W**2).sum(axis=1)), atol=1e-9)


def test_structured_blocks_are_orthogonal():
    feature_map = FourierFeatures("rbf", 256, sampling="structured", random_state=0)
    W = transform_matrix(feature_map.fit(np.zeros((1, 64))), 64)
    for block in (W[:64], W[64:]):
        gram = block @ block.T
        np.testing.assert_allclose(gram, np.diag(gram.diagonal()), atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Cauchy(1.0), Matern(1.5, 1.0)])
@pytest.mark.parametrize("sequence", ["sobol", "halton"])
@pytest.mark.parametrize("n_components", [2, 100, 1024])
def test_quasi_random_frequencies_are_finite_and_have_no_twins(kernel, sequence, n_components):
    feature_map = FourierFeatures(
        kernel, n_components, sampling="qmc", sequence=sequence, random_state=0
    )
    W = feature_map.fit(np.zeros((1, 3)))._frequencies.matrix
    assert np.isfinite(W).all()
    assert (W[:, 0] >= 0).all()
    assert len(np.unique(W.round(9), axis=0)) == len(W)


def test_quasi_random_beyond_the_dimensions_of_sobol(monkeypatch):
    from scipy.stats import qmc

    monkeypatch.setattr(qmc.Sobol, "MAXDIM", 2)
    kernel = Gaussian(0.4)
    check(
        lambda seed: FourierFeatures(kernel, 512, sampling="qmc", random_state=seed),
        kernel,
    )


def frobenius(feature_map, kernel, X):
    Z = feature_map.fit_transform(X)
    return np.linalg.norm(Z @ Z.T - kernel(X)) / np.linalg.norm(kernel(X))


@pytest.mark.slow
@pytest.mark.parametrize(("gamma", "bar"), [("median", 0.8), ("scale", 0.9)])
def test_errors_against_independent_frequencies(gamma, bar):
    """16 columns, 512 frequencies, 20 seeds. Means have standard errors of about 3 % of their size.

    Ratios are about 0.35 at the wide kernel of the median and 0.8 at the narrower one, where all
    ways to couple frequencies gain less; fastfood's about 1.09 and 1.03. So bars are met with
    several standard errors to spare.
    """
    X = np.random.default_rng(0).standard_normal((100, 16))
    kernel = Gaussian(gamma).resolved(X)
    mean = {
        sampling: np.mean(
            [
                frobenius(
                    FourierFeatures(kernel, 1024, sampling=sampling, random_state=s), kernel, X
                )
                for s in range(20)
            ]
        )
        for sampling in SAMPLINGS
    }
    for sampling in ("orthogonal", "structured", "qmc"):
        assert mean[sampling] < bar * mean["iid"]
    assert mean["fastfood"] < 1.15 * mean["iid"]


def ratio_of_structured(monkeypatch, sets):
    """Its mean error over that of orthogonal blocks, 64 columns and 2048 frequencies, 5 seeds."""
    monkeypatch.setattr("craftmaps.maps.parts.sampling.sign_sets", sets)
    X = np.random.default_rng(0).standard_normal((100, 64))
    kernel = Gaussian("scale").resolved(X)
    maps = [
        [FourierFeatures(kernel, 4096, sampling=name, random_state=s) for s in range(5)]
        for name in ("structured", "orthogonal")
    ]
    found, expected = (np.mean([frobenius(one, kernel, X) for one in some]) for some in maps)
    return found / expected


def test_blocks_at_equal_angles_have_less_error(monkeypatch):
    """About 0.67, with a standard error of 0.01; 1 if the signs were any others."""

    def independent(size, which):
        return 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, (len(which), size))

    assert ratio_of_structured(monkeypatch, sign_sets) < 0.75
    assert ratio_of_structured(monkeypatch, independent) > 0.9


@pytest.mark.parametrize("d", [1, 7, 1024])
def test_lengths_of_normal_vectors_have_one_in_each_part_of_their_distribution(d):
    lengths = normal_lengths(500, d, np.random.default_rng(0))
    levels = chi.cdf(lengths, d)
    np.testing.assert_array_equal(np.sort(np.floor(500 * levels)), np.arange(500))
    assert abs(np.corrcoef(levels[:-1], levels[1:])[0, 1]) < 5 / np.sqrt(500)  # in random order


def test_error_falls_with_the_square_root_of_the_size():
    X = np.random.default_rng(0).standard_normal((80, 6))
    kernel = Gaussian(0.1)
    sizes = [64, 256, 1024, 4096]
    errors = [
        np.mean(
            [frobenius(FourierFeatures(kernel, n, random_state=s), kernel, X) for s in range(20)]
        )
        for n in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.parametrize(
    ("loop", "dtype", "reach", "limit"),
    [
        (cos_sin32, np.float32, 10, 2e-7),
        (cos_sin32, np.float32, 1e4, 2e-7),
        (cos_sin32, np.float32, 1e6, 2e-7),
        (cos_sin64, np.float64, 10, 1e-15),
        (cos_sin64, np.float64, 1e4, 1e-14),
        (cos_sin64, np.float64, 1e6, 1e-14),
    ],
)
def test_compiled_cosines(loop, dtype, reach, limit):
    rng = np.random.default_rng(0)
    quarters = np.arange(-40, 40) * np.pi / 4
    points = np.concatenate([rng.uniform(-reach, reach, 20000), quarters, [0.0, -0.0, 1e-20]])
    points = points.astype(dtype)
    Z = np.zeros((2, 2 * len(points)), dtype)
    Z[:, len(points) :] = points
    loop(Z, len(points), dtype(3))
    exact = points.astype(np.longdouble)
    for row in Z:
        assert np.abs(row[: len(points)] - 3 * np.cos(exact)).max() < 3 * limit
        assert np.abs(row[len(points) :] - 3 * np.sin(exact)).max() < 3 * limit


def test_cosines_of_huge_arguments_stay_bounded():
    for loop, dtype in ((cos_sin32, np.float32), (cos_sin64, np.float64)):
        points = np.array([1e9, -1e12, 1e15], dtype)
        Z = np.concatenate([np.zeros(3, dtype), points])[None]
        loop(Z, 3, dtype(1))
        assert np.abs(Z).max() < 1.5


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_sparse_and_float32_rows(sampling):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((700, 30)) < 0.3, rng.standard_normal((700, 30)), 0)
    feature_map = FourierFeatures(Gaussian(0.3), 101, sampling=sampling, random_state=0).fit(X)
    Z = feature_map.transform(X)
    np.testing.assert_allclose(feature_map.transform(sparse.csr_array(X)), Z, atol=1e-12)
    single = feature_map.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=1e-5)
    out = np.full((800, 101), np.nan, dtype=np.float32)
    np.testing.assert_allclose(feature_map.transform_into(X, out), Z, atol=1e-5)
    assert np.isnan(out[700:]).all()


FROZEN = {
    "iid": [0.55950938, 0.37722041, 0.57382731, -0.14241695, -0.43707905, -0.06368321],
    "orthogonal": [0.07604725, 0.40987561, 0.5053228, -0.57231997, 0.40661446, 0.27925293],
    "structured": [0.48663346, 0.55071467, 0.55306754, 0.31067862, 0.17333981, -0.16567928],
    "qmc": [0.56087268, 0.04134924, 0.44822905, 0.13694951, -0.57586767, -0.36390115],
    "fastfood": [0.45394379, 0.37988376, -0.54153951, -0.35674692, 0.43476621, -0.20017067],
}


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_frozen_outputs(sampling):
    """A change of the random stream is a change for every model that was saved as a seed."""
    X = np.linspace(-1, 1, 6).reshape(2, 3)
    feature_map = FourierFeatures(Gaussian(0.5), 6, sampling=sampling, random_state=42)
    found = feature_map.fit_transform(X)[0]
    np.testing.assert_allclose(found, FROZEN[sampling], atol=1e-7)


@pytest.mark.parametrize("sampling", ["orthogonal", "structured", "fastfood"])
@pytest.mark.parametrize("kernel", [Laplacian(0.5), Cauchy(0.5), CUBE], ids=name)
def test_kernels_that_a_sampling_is_not_exact_for_are_refused(sampling, kernel):
    with pytest.raises(ValueError, match=rf"'{sampling}' is for kernels .* {name(kernel)}\("):
        FourierFeatures(kernel, sampling=sampling).fit(ROWS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": SPHERE, "sampling": "qmc"}, "the inverse distribution"),
        ({"kernel": SPHERE, "sampling": "structured"}, "normal vectors of random length"),
        ({"kernel": "poly"}, "kernel must be a shift-invariant kernel"),
        ({"kernel": Gaussian(-1)}, "Gaussian: gamma must be"),
        ({"sampling": "random"}, "sampling must be one of"),
        ({"sequence": "niederreiter"}, "sequence must be one of"),
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        FourierFeatures(**parameters).fit(ROWS)


def test_halton_has_a_limit():
    with pytest.raises(ValueError, match="use sequence='sobol'"):
        FourierFeatures(Gaussian(1.0), 4, sampling="qmc", sequence="halton").fit(np.ones((1, 1001)))


def test_gamma_is_resolved_in_fit_and_can_be_searched():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    feature_map = FourierFeatures(Gaussian("median"), random_state=0).fit(X)
    assert feature_map.kernel_ == Gaussian("median").resolved(X)
    assert feature_map.kernel == Gaussian("median")
    pipeline = make_pipeline(FourierFeatures(Gaussian(), 64, random_state=0), RidgeClassifier())
    grid = {"fourierfeatures__kernel__gamma": [0.01, 10.0, "scale"]}
    GridSearchCV(pipeline, grid, cv=2).fit(X, X[:, 0] * X[:, 1] > 0)


@parametrize_with_checks(
    [
        FourierFeatures(n_components=20),
        *(FourierFeatures(n_components=21, sampling=sampling) for sampling in SAMPLINGS[1:]),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
