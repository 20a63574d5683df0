"""CraftMap: against an oracle, unbiased, as accurate as expected, clear about what it cannot do."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from craftmaps import (
    CraftMap,
    DotProduct,
    Exponential,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
    TensorSketch,
    VovkReal,
)
from craftmaps.maps import craft
from craftmaps.maps.parts.down import DRAW
from craftmaps.maps.planning import craft_plan
from oracles import hadamard_features, monomials
from unbiased import Biased, check_unbiased, kernel_estimates

PAIRS = [(0, 0), (0, 1), (1, 2)]


def rows(n_rows=40, n_columns=10, seed=0):
    """Unit rows with inner products of order 1."""
    return normalize(np.random.default_rng(seed).random((n_rows, n_columns)))


def relative_error(feature_map, X, kernel):
    """Root mean square error over pairs of different rows, relative to the kernel's values."""
    Z = feature_map.fit_transform(X)
    K = kernel(X)
    off = ~np.eye(len(X), dtype=bool)
    return np.sqrt(np.mean((Z @ Z.T - K)[off] ** 2) / np.mean(K[off] ** 2))


@pytest.mark.parametrize("n_columns", [1, 3, 10, 70])
@pytest.mark.parametrize("n_components", [1, 7, 40, 300])
@pytest.mark.parametrize("h01", ["none", "auto"])
def test_the_fused_loop_is_the_sum_of_signed_products(n_columns, n_components, h01):
    X = rows(3, n_columns)
    feature_map = CraftMap(
        Polynomial(3), n_components, n_up=8 * n_components, h01=h01, random_state=0
    ).fit(X)
    expected = hadamard_features(feature_map._products, X, n_components)
    degree, n_exact = feature_map.exact_degree_, feature_map.n_exact_
    if degree < 0:
        expected[:, 0] += 1
    else:
        terms = [np.sqrt(math.comb(3, n)) * monomials(X, n) for n in range(1, degree + 1)]
        columns = sum(term.shape[1] for term in terms)
        constant = np.full((3, n_exact - columns), 1 / np.sqrt(n_exact - columns))
        expected[:, :n_exact] = np.concatenate([constant, *terms], axis=1)
    np.testing.assert_allclose(feature_map.transform(X), expected, atol=1e-10)


@pytest.mark.parametrize("degree", [8, 11, 12, 13, 20])
def test_high_degrees_are_multiplied_in_several_steps(degree):
    X = rows(3, 12)
    kernel = DotProduct([0.0] * degree + [1.0])
    feature_map = CraftMap(kernel, 50, n_up=200, random_state=0).fit(X)
    expected = hadamard_features(feature_map._products, X, 50)
    np.testing.assert_allclose(feature_map.transform(X), expected, rtol=1e-9, atol=1e-12)


UPS = {
    "maclaurin": "maclaurin",
    "tensor-sketch": "tensor-sketch",
    "own": RandomMaclaurin(Polynomial(2), allocation="proportional"),
}


@pytest.mark.slow
@pytest.mark.parametrize("down", sorted(DRAW))
@pytest.mark.parametrize("up", sorted(UPS))
def test_every_pair_of_projections_is_unbiased(up, down):
    X = rows(3)

    def make(seed):
        sizes = {"n_components": 192, "n_up": 384, "h01": "none"}
        return CraftMap(Polynomial(2), up=UPS[up], down=down, random_state=seed, **sizes)

    estimates = kernel_estimates(make, X, PAIRS, range(400))
    check_unbiased(estimates, [Polynomial(2)(X)[pair] for pair in PAIRS], smallest=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("h01", ["none", "up", "append", "auto"])
@pytest.mark.parametrize(
    "kernel", [Polynomial(3), Polynomial(2, coef0=0.0), Exponential(), VovkReal(4)], ids=str
)
def test_every_treatment_of_low_degrees_is_unbiased(kernel, h01):
    X = rows(3)

    def make(seed):
        return CraftMap(kernel, 192, n_up=768, h01=h01, random_state=seed)

    estimates = kernel_estimates(make, X, PAIRS, range(300))
    check_unbiased(estimates, [kernel(X)[pair] for pair in PAIRS], smallest=0.1)


def test_a_fold_without_signs_varies_too_much():
    """It is unbiased, because every factor has its own rotation, but sparse rows resonate in it.

    The bar that the fold with signs must pass is the one that finds the other out.
    """
    rng = np.random.default_rng(0)
    X = np.zeros((40, 300))
    for row in X:
        row[rng.choice(12, 2, replace=False)] = 1
    X = normalize(X)
    kernel = Polynomial(3)

    class Unsigned(CraftMap):
        def fit(self, X, y=None):
            super().fit(X, y)
            self._products.signs[:] = 1
            return self

    def error(make):
        return np.sqrt(np.mean([relative_error(make(s), X, kernel) ** 2 for s in range(20)]))

    signed = error(lambda s: CraftMap(kernel, 256, n_up=4096, random_state=s))
    expected = CraftMap(kernel, 256, n_up=4096, random_state=0).fit(X).expected_error_
    bar = 1.15 * expected
    assert signed < bar
    assert error(lambda s: Unsigned(kernel, 256, n_up=4096, random_state=s)) > bar


class Misscaled(CraftMap):
    """A fold that forgets the scale of degree 2."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self._products.scale[self._products.degree == 3] *= 1.1
        return self


@pytest.mark.slow
def test_a_wrong_scale_of_one_degree_is_caught():
    X = rows(3)

    def make(seed):
        return Misscaled(Polynomial(2), 192, n_up=768, h01="append", random_state=seed)

    with pytest.raises(Biased):
        check_unbiased(
            kernel_estimates(make, X, PAIRS, range(400)),
            [Polynomial(2)(X)[pair] for pair in PAIRS],
            smallest=0.1,
        )


@pytest.mark.slow
@pytest.mark.parametrize("down", ["fold", "srht", "gaussian", "rademacher", "sparse"])
@pytest.mark.parametrize("up", ["maclaurin", "tensor-sketch"])
def test_the_error_is_as_expected(up, down):
    """Errors of one map hang together, so it takes many maps to know their mean."""
    X = rows(25, 40)
    args = {"n_up": 512, "up": up, "down": down}
    maps = [CraftMap(Polynomial(4), 64, random_state=s, **args) for s in range(120)]
    measured = np.sqrt(np.mean([relative_error(m, X, Polynomial(4)) ** 2 for m in maps]))
    assert maps[0].expected_error_ == pytest.approx(measured, rel=0.15)


def test_auto_goes_up_as_far_as_it_pays():
    X = rows(150, 40)
    errors = {}
    for ratio in (1, 2, 4, 8, 16, 32, 64):
        feature_map = CraftMap(Polynomial(5), 256, n_up=256 * ratio, random_state=0).fit(X)
        errors[ratio] = feature_map.expected_error_
    chosen = CraftMap(Polynomial(5), 256, random_state=0).fit(X)
    ratio = chosen.n_up_ // 256
    assert chosen.n_up_ == 256 * ratio
    assert chosen.expected_error_ == pytest.approx(errors[ratio], rel=0.02)
    assert errors[ratio] < 1.08 * errors[64]
    assert errors[ratio // 2] > errors[ratio]
    assert errors[1] > 1.3 * errors[ratio]


def test_it_beats_its_own_up_projection_and_tensor_sketch_at_equal_size():
    X = rows(200, 60)
    kernel = Polynomial(7)

    def error(make):
        return np.mean([relative_error(make(seed), X, kernel) for seed in range(4)])

    craft = error(lambda s: CraftMap(kernel, 512, random_state=s))
    assert craft < 0.8 * error(lambda s: RandomMaclaurin(kernel, 512, random_state=s))
    assert craft < 0.9 * error(lambda s: TensorSketch(kernel, 512, random_state=s))


@pytest.mark.parametrize("down", ["fold", "srht"])
def test_appended_columns_are_exact(down):
    X = rows(20, 10)
    Z = CraftMap(Polynomial(3), 40, h01="append", down=down, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z[:, 0], 1)
    np.testing.assert_allclose(Z[:, 1:11], np.sqrt(3) * X)


def test_exact_low_degrees_work_below_the_number_of_columns():
    X = rows(30, 100)
    for h01 in ("up", "auto", "none"):
        assert CraftMap(Polynomial(3), 20, n_up=640, h01=h01).fit_transform(X).shape == (30, 20)
    with pytest.raises(ValueError, match=r"is too small for the 101 exact columns of h01='append'"):
        CraftMap(Polynomial(3), 20, h01="append").fit(X)


@pytest.mark.parametrize("n_components", [20, 64, 400, 2000])
def test_auto_never_expects_more_error_than_the_alternatives(n_components):
    X = rows(100, 50)
    args = {"n_up": 8 * n_components, "random_state": 0}
    auto = CraftMap(Polynomial(4), n_components, **args).fit(X).expected_error_
    for h01 in ("none", "up", "append") if n_components > 51 else ("none", "up"):
        other = CraftMap(Polynomial(4), n_components, h01=h01, **args).fit(X)
        assert auto <= other.expected_error_ * 1.000001


@pytest.mark.parametrize("n_up", [299, 10, 0, 2.5, "many"])
def test_fewer_features_up_than_down_is_an_error(n_up):
    with pytest.raises(ValueError, match="n_up must be 'auto' or an integer of at least"):
        CraftMap(n_components=300, n_up=n_up).fit(rows())


@pytest.mark.slow
def test_as_many_features_up_as_down_is_the_up_projection():
    X = rows(20, 20)
    kernel = Polynomial(3)

    def error(make):
        return np.sqrt(np.mean([relative_error(make(s), X, kernel) ** 2 for s in range(150)]))

    craft = error(lambda s: CraftMap(kernel, 300, n_up=300, h01="none", random_state=s))
    plain = error(lambda s: RandomMaclaurin(kernel, 300, random_state=s))
    assert craft == pytest.approx(plain, rel=0.15)


@pytest.mark.parametrize("kernel", [Polynomial(1), Polynomial(4), Polynomial(1, coef0=0.0)])
def test_one_column_is_exact_when_nothing_is_folded(kernel):
    X = np.linspace(-1, 1, 30)[:, None]
    Z = CraftMap(kernel, 64, n_up=64, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=1e-10)


def test_a_principal_subspace_goes_below_the_floor():
    X = rows(300, 30)
    kernel = Polynomial(4)
    learned = CraftMap(kernel, 60, down="principal", random_state=0)
    drawn = CraftMap(kernel, 60, random_state=0)
    assert relative_error(learned, X, kernel) < 0.3 * relative_error(drawn, X, kernel)
    assert np.isnan(learned.expected_error_)
    with pytest.raises(ValueError, match=r"at least that many rows in fit, got 50"):
        CraftMap(kernel, 60, down="principal", h01="none").fit(X[:50])


@pytest.mark.parametrize("up", ["maclaurin", "tensor-sketch"])
def test_auto_learns_a_subspace_where_it_is_likely_to_pay(monkeypatch, up):
    """Few components, rows enough, and a fold that errs: otherwise it is the fold itself."""
    X = rows(300, 30)
    auto, learned, drawn = (
        CraftMap(Polynomial(4), 60, up=up, down=down, random_state=0).fit(X)
        for down in ("auto", "principal", "fold")
    )
    np.testing.assert_array_equal(auto.transform(X), learned.transform(X))
    assert np.abs(auto.transform(X) - drawn.transform(X)).max() > 0.1

    def is_drawn(X):
        np.testing.assert_array_equal(auto.fit(X).transform(X), drawn.fit(X).transform(X))
        return np.isfinite(auto.expected_error_)

    assert is_drawn(X[:239])
    with monkeypatch.context() as patched:
        patched.setattr(craft, "_MAX_PRINCIPAL_COMPONENTS", 59)
        assert is_drawn(X)
    monkeypatch.setattr(craft, "_ACCEPTABLE_ERROR", 1.01 * drawn.fit(X).expected_error_)
    assert is_drawn(X)
    monkeypatch.setattr(craft, "_ACCEPTABLE_ERROR", 0.99 * drawn.expected_error_)
    np.testing.assert_array_equal(auto.fit(X).transform(X), learned.transform(X))


def test_auto_learns_a_subspace_of_maps_of_your_own():
    X = rows(300, 30)
    own = RandomMaclaurin(Polynomial(4), 400)
    auto, learned = (
        CraftMap(None, 60, up=own, down=d, random_state=0) for d in ("auto", "principal")
    )
    np.testing.assert_array_equal(auto.fit_transform(X), learned.fit_transform(X))


@pytest.mark.parametrize("up", ["maclaurin", "tensor-sketch"])
def test_a_learned_subspace_does_not_go_up_as_far(monkeypatch, up):
    """The cost of learning and applying it grows with D, where that of a fold hardly does."""
    X = rows(400, 16)
    drawn, learned = (CraftMap(Polynomial(9), 20, up=up, down=d) for d in ("fold", "principal"))
    assert drawn.fit(X).n_up_ == learned.fit(X).n_up_ > 16 * 20
    monkeypatch.setattr(craft_plan, "_MAX_LEARNED_UP", 16 * 20)
    assert learned.fit(X).n_up_ == 16 * 20
    monkeypatch.setattr(craft_plan, "_MAX_LEARNED_UP", 20)
    assert learned.fit(X).n_up_ == 8 * 20


def test_a_series_that_is_cut_off_is_told():
    X = rows(40, 2)
    cut = CraftMap(Exponential(60.0), 4096, random_state=0)
    with pytest.warns(UserWarning, match=r"truncating Exponential.* at degree 64 .* lower gamma"):
        measured = relative_error(cut, X, Exponential(60.0))
    assert cut.expected_error_ == pytest.approx(measured, rel=0.1)
    # a polynomial has an end, however far
    high = CraftMap(Polynomial(70, coef0=0), 1024, random_state=0).fit(X)
    assert relative_error(high, X, Polynomial(70, coef0=0)) < 1e-6


@pytest.mark.parametrize(("degree", "length"), [(10, 1e-4), (5, 1e-8), (2, 1e-20)])
def test_short_rows_of_homogeneous_kernels(degree, length):
    X = rows(40, 20)
    kernel = Polynomial(degree, coef0=0)
    short, unit = (CraftMap(kernel, 64, random_state=0).fit(factor * X) for factor in (length, 1))
    assert short.expected_error_ == pytest.approx(unit.expected_error_)


def test_degrees_beyond_the_number_of_products():
    X = rows(30, 300) * 0.03
    RandomMaclaurin(Polynomial(130), 256, max_degree=130, random_state=0).fit(X)


def test_a_few_long_rows_do_not_make_the_plan():
    """Their kernel values, and so their errors, are so large that no others would count."""
    X = rows(300, 20)
    long = X.copy()
    long[:3] *= 4
    plain, mixed = (CraftMap(Exponential(1.5), 64, random_state=0).fit(A) for A in (X, long))
    assert mixed.exact_degree_ == plain.exact_degree_ == 1
    assert mixed.n_up_ == plain.n_up_
    # what is expected is that of all rows, long ones included
    assert mixed.expected_error_ > 10 * plain.expected_error_


def test_own_maps_with_a_map_inside():
    up = ScaledMap(RandomMaclaurin(Polynomial(3), 64), columns="none")
    maps = [CraftMap(up=up, n_components=32, n_up=128, random_state=0).fit(rows()) for _ in "ab"]
    assert maps[0].n_up_ == 128
    np.testing.assert_array_equal(*(one.transform(rows()) for one in maps))


def test_own_maps_are_cloned_sized_and_seeded():
    own = RandomMaclaurin(Polynomial(2), 100)
    X = rows()
    feature_map = CraftMap(n_components=50, up=own, n_up=400, random_state=0).fit(X)
    assert not hasattr(own, "degrees_")
    assert feature_map.n_up_ == 400
    assert feature_map.kernel_ == Polynomial(2)
    again = CraftMap(n_components=50, up=own, n_up=400, random_state=0).fit(X)
    np.testing.assert_array_equal(feature_map.transform(X), again.transform(X))
    assert CraftMap(n_components=50, up=own).fit(X).n_up_ == 100
    with pytest.raises(ValueError, match="up makes 100 features, fewer than n_components=200"):
        CraftMap(n_components=200, up=own).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"down": "up"}, "down must be one of"),
        ({"h01": True}, "h01 must be one of"),
        ({"up": "fourier"}, "up must be one of"),
        ({"up": "tensor-sketch", "h01": "append"}, "h01='append' needs up='maclaurin'"),
        ({"up": "tensor-sketch", "kernel": "exp"}, "TensorSketch approximates Polynomial"),
        ({"n_components": 3, "n_up": 3, "kernel": Polynomial(20)}, "a feature of each degree"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        CraftMap(**parameters).fit(rows())


def test_an_up_projection_of_another_type_is_refused():
    with pytest.raises(TypeError, match="up must be 'maclaurin', 'tensor-sketch' or a map"):
        CraftMap(up=3).fit(rows())


def test_frozen_outputs():
    """A change of these numbers is a change of the random stream: say so in the changelog."""
    X = np.array([[0.5, -0.25, 1.0], [1.0, 0.5, 0.0]])
    Z = CraftMap(Polynomial(3), 6, n_up=24, random_state=7).fit_transform(X)
    expected = [
        [1.088878, -0.944346, -1.665230, -2.738364, 0.042008, -0.405046],
        [1.862070, 1.178422, 2.500380, 0.955749, -0.252602, 0.231455],
    ]
    np.testing.assert_allclose(Z, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif("CRAFTMAPS_DATA" not in os.environ, reason="needs MNIST in CRAFTMAPS_DATA")
def test_mnist_errors_are_below_those_of_every_other_map():
    with np.load(Path(os.environ["CRAFTMAPS_DATA"]) / "mnist.npz") as data:
        X = data["X_train"][::60].reshape(1000, -1)
    X = normalize(X.astype(np.float32))
    kernel = Polynomial(7)
    K = kernel(X.astype(np.float64))

    def error(make):
        errors = []
        for seed in range(8):
            Z = make(seed).fit_transform(X)
            errors.append(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))
        return np.mean(errors)

    for E, limit in ((1024, 0.30), (4096, 0.155)):
        craft = error(lambda s, E=E: CraftMap(kernel, E, n_up=8 * E, random_state=s))
        assert craft < limit
        for other in (RandomMaclaurin, TensorSketch):
            theirs = error(lambda s, E=E, other=other: other(kernel, E, random_state=s))
            assert craft < 0.8 * theirs


@pytest.mark.parametrize("kind", [CraftMap, RandomMaclaurin])
def test_long_rows_beside_short_ones(kind):
    """Powers of the length of the longest rows are not finite, and their kernel values are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 50))
    X[:4] *= 8
    kernel = Exponential(gamma=0.01)
    feature_map = kind(kernel, 512, random_state=0).fit(X)
    Z = feature_map.transform(X)
    assert np.isfinite(Z).all()
    error = np.linalg.norm(Z[4:] @ Z[4:].T - kernel(X[4:])) / np.linalg.norm(kernel(X[4:]))
    assert error < (0.02 if kind is CraftMap else 0.5)
