"""Nyström maps: the formula, landmark algorithms against oracles, rank, memory, bad input."""

import os
import tracemalloc
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.kernel_approximation import Nystroem as ScikitNystroem
from sklearn.metrics.pairwise import chi2_kernel, pairwise_kernels, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from craftmaps import Cauchy, Composed, Gaussian, Laplacian, Matern, Nystroem, Polynomial, load
from craftmaps import threads as row_blocks
from craftmaps.maps import nystroem
from craftmaps.maps.parts import landmarks as choose
from craftmaps.maps.parts import whitening

KERNELS = [
    Gaussian(0.3),
    Laplacian(0.3),
    Cauchy(0.3),
    Matern(1.5, 0.3),
    Polynomial(3),
    Composed(Polynomial(2), Gaussian(0.3)),
    "chi2",
    "cosine",
    chi2_kernel,
]
CHOICES = ("uniform", "kmeans", "rpcholesky", "leverage")


def name(kernel):
    return kernel.__name__ if hasattr(kernel, "__name__") else str(kernel)


@pytest.fixture
def X():
    return np.random.default_rng(0).random((120, 6)) + 0.1


def slow_nystroem(kernel, X, L):
    function = kernel if callable(kernel) else lambda A, B: pairwise_kernels(A, B, metric=kernel)
    columns = function(X, L)
    return columns @ np.linalg.pinv(function(L, L), hermitian=True) @ columns.T


@pytest.mark.delicate
@pytest.mark.parametrize("kernel", KERNELS, ids=name)
@pytest.mark.parametrize("landmarks", CHOICES)
def test_gram_matrix_is_the_formula(kernel, landmarks, X):
    feature_map = Nystroem(kernel, 20, landmarks=landmarks, random_state=0)
    Z = feature_map.fit_transform(X)
    L = feature_map.landmarks_
    assert Z.shape == (120, 20)
    np.testing.assert_allclose(Z @ Z.T, slow_nystroem(feature_map.kernel_, X, L), atol=1e-7)
    if landmarks != "kmeans":
        assert {tuple(row) for row in L} <= {tuple(row) for row in X}
        assert len({tuple(row) for row in L}) == 20


@pytest.mark.delicate
@pytest.mark.parametrize("landmarks", CHOICES)
def test_approximation_is_from_below(landmarks, X):
    kernel = Gaussian(0.3)
    Z = Nystroem(kernel, 20, landmarks=landmarks, random_state=0).fit_transform(X)
    assert np.linalg.eigvalsh(kernel(X) - Z @ Z.T).min() > -1e-9


@pytest.mark.delicate
def test_all_rows_as_landmarks_give_the_kernel_itself(X):
    for kernel in (Gaussian(0.3), Polynomial(3)):
        Z = Nystroem(kernel, 120, random_state=0).fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=1e-8)


@pytest.mark.delicate
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Laplacian(0.3), Matern(gamma=0.3)], ids=repr)
def test_features_of_many_landmarks_are_those_of_any_rows(kernel, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8)).astype(dtype)
    X[5] = X[9]
    feature_map = Nystroem(kernel, 500, landmarks="rpcholesky", random_state=0).fit(X)
    together = feature_map.transform(X)
    apart = np.concatenate([feature_map.transform(X[i : i + 100]) for i in range(0, 600, 100)])
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(together, apart, atol=1e3 * eps)


def test_as_scikit_learn(X):
    theirs = ScikitNystroem(kernel="rbf", gamma=0.3, n_components=15, random_state=0).fit(X)
    ours = Nystroem(Gaussian(0.3), landmarks=theirs.components_).fit(X)
    A, B = theirs.transform(X), ours.transform(X)
    np.testing.assert_allclose(B @ B.T, A @ A.T, atol=1e-9)


def test_landmarks_of_the_users_choice(X):
    given = X[[3, 5, 8]]
    feature_map = Nystroem(Gaussian(0.3), landmarks=given).fit(X)
    assert {tuple(row) for row in feature_map.landmarks_} == {tuple(row) for row in given}
    raw = Nystroem(Gaussian(0.3), landmarks=given, whiten=False).fit(X)
    np.testing.assert_array_equal(raw.landmarks_, given)
    assert feature_map.transform(X).shape == (120, 3)
    assert list(feature_map.get_feature_names_out()) == ["nystroem0", "nystroem1", "nystroem2"]


@pytest.mark.delicate
def test_repeated_landmarks_are_reported(X):
    feature_map = Nystroem(Gaussian(0.3), landmarks=X[[3, 5, 8, 3, 5]]).fit(X)
    assert feature_map.rank_ == 3
    Z = feature_map.transform(X)
    assert (Z[:, 3:] == 0).all()
    expected = slow_nystroem(Gaussian(0.3), X, X[[3, 5, 8]])
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-8)


@pytest.mark.delicate
@pytest.mark.parametrize("rows", [[3, 5, 8, 3, 5], [7], list(range(60))])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Gaussian(1e-4), Polynomial(2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rank_is_known_without_whitening(X, rows, kernel, dtype):
    X = X.astype(dtype)
    white, raw = (Nystroem(kernel, landmarks=X[rows], whiten=w).fit(X) for w in (True, False))
    assert raw.rank_ == white.rank_


def by_eigenvectors(kernel, L, X, dtype):
    """Features whitened as version 0.1.0 did it."""
    values, vectors = np.linalg.eigh(kernel(L.astype(np.float64)))
    known = values > np.finfo(dtype).eps * values.max()
    return kernel(X, L) @ (vectors[:, known] / np.sqrt(values[known])).astype(dtype)


@pytest.mark.delicate
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(3.0), Gaussian(0.1), Matern(0.5, 0.3)], ids=str)
def test_another_basis_of_the_features_of_eigenvectors(monkeypatch, X, kernel, dtype):
    """A ridge learner cannot tell the two apart; columns are multiplied in several blocks."""
    monkeypatch.setattr(whitening, "_BLOCK_COLUMNS", 7)
    X = X.astype(dtype)
    Z = Nystroem(kernel, landmarks=X[:40]).fit_transform(X)
    expected = by_eigenvectors(kernel, X[:40], X, dtype)
    close = {"atol": 2e-4 if dtype == np.float32 else 1e-10}
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, **close)
    y = np.sin(X.sum(axis=1))
    ours, theirs = (
        F @ np.linalg.solve(F.T @ F + 0.1 * np.eye(F.shape[1]), F.T @ y) for F in (Z, expected)
    )
    np.testing.assert_allclose(ours, theirs, **close)


@pytest.mark.delicate
@pytest.mark.parametrize("kernel", [Gaussian(3.0), "precomputed"])
def test_landmarks_have_the_order_of_their_pivots(monkeypatch, X, kernel):
    """So that the whitening is a triangle, and landmarks beyond the rank are not looked at."""
    given, rows = (np.arange(40), Gaussian(3.0)(X)) if kernel == "precomputed" else (X[:40], X)
    twice = np.concatenate([given, given[:9]])
    feature_map = Nystroem(kernel, landmarks=twice).fit(rows)
    np.testing.assert_array_equal(
        np.sort(feature_map.landmarks_, axis=0), np.sort(np.asarray(twice), axis=0)
    )
    pivots = feature_map._whitening.values
    assert feature_map.rank_ == len(pivots) == 40
    assert all(a >= b for a, b in pairwise(pivots))
    assert (np.tril(feature_map._whitening.matrix, -1) == 0).all()
    Z = feature_map.transform(rows)
    assert Z.shape == (120, 49)
    assert (Z[:, 40:] == 0).all()
    once = Nystroem(kernel, landmarks=given).fit_transform(rows)
    np.testing.assert_allclose(Z[:, :40] @ Z[:, :40].T, once @ once.T, atol=1e-10)


def test_features_of_float32_lie_within_the_features_of_float64(X):
    """Rows of less precision leave out the last pivots, and the columns before stay the same."""
    feature_map = Nystroem(Gaussian(0.01), 60, random_state=0).fit(X)
    single, double = feature_map.transform(X.astype(np.float32)), feature_map.transform(X)
    rank = np.count_nonzero(single.any(axis=0))
    assert 5 < rank < feature_map.rank_
    np.testing.assert_allclose(single[:, :rank], double[:, :rank], atol=2e-3)


def test_eigenvectors_in_a_file_of_an_older_version(X, tmp_path):
    """A whitening that is no triangle needs all landmarks."""
    feature_map = Nystroem(Gaussian(0.3), 10, random_state=0).fit(X)
    values, vectors = np.linalg.eigh(Gaussian(0.3)(feature_map.landmarks_))
    matrix = (vectors / np.sqrt(values))[:, ::-1]
    feature_map._whitening = whitening.Whitening(values[::-1].copy(), matrix[:, :8].copy(), False)
    expected = Gaussian(0.3)(X, feature_map.landmarks_) @ matrix[:, :8]
    feature_map.save(tmp_path / "old.craft")
    Z = load(tmp_path / "old.craft").transform(X)
    np.testing.assert_allclose(Z[:, :8], expected, atol=1e-9)
    assert (Z[:, 8:] == 0).all()
    np.testing.assert_allclose(
        feature_map.transform(X.astype(np.float32))[:, :5], expected[:, :5], atol=1e-3
    )


@pytest.mark.parametrize("kernel", [Gaussian("median"), Polynomial(7, gamma=0.05)])
def test_many_landmarks_take_little_memory(monkeypatch, kernel):
    """K_LL in float64 and its whitening in float32, and no third matrix of their size."""
    monkeypatch.setattr(nystroem, "_BLOCK_ROWS", 64)
    X = np.random.default_rng(0).normal(size=(800, 20)).astype(np.float32)
    feature_map = Nystroem(kernel, landmarks=X).fit(X)
    tracemalloc.start()
    feature_map.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert feature_map.rank_ == 800
    assert 1.5 < peak / (8 * 800**2) < 1.8


@pytest.mark.delicate
def test_landmarks_that_the_kernel_maps_to_zero(X):
    feature_map = Nystroem(Polynomial(2, coef0=0.0), landmarks=0 * X[:10]).fit(X)
    assert feature_map.rank_ == 0
    assert (feature_map.transform(X) == 0).all()


@pytest.mark.delicate
@pytest.mark.parametrize("landmarks", CHOICES)
def test_duplicated_rows(landmarks):
    X = np.repeat(np.random.default_rng(0).random((5, 3)), 20, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # k-means finds fewer clusters
        feature_map = Nystroem(Gaussian(1.0), 10, landmarks=landmarks, random_state=1).fit(X)
    assert feature_map.rank_ <= 5
    Z = feature_map.transform(X)
    assert np.isfinite(Z).all()
    if landmarks == "rpcholesky":  # it takes each of the five before a second copy
        assert feature_map.rank_ == 5
        np.testing.assert_allclose(Z @ Z.T, Gaussian(1.0)(X), atol=1e-7)


@pytest.mark.delicate
@pytest.mark.parametrize("seed", range(5))
def test_rpcholesky_ends_where_rounding_is_all_that_is_left(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 10))[rng.integers(0, 8, 400)]
    feature_map = Nystroem(Gaussian(0.5), 200, landmarks="rpcholesky", random_state=seed)
    Z = feature_map.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, Gaussian(0.5)(X), atol=1e-4)


@pytest.mark.delicate
def test_leverage_of_rows_most_of_which_are_zero():
    X = np.vstack([np.zeros((200, 3)), np.eye(3)])
    feature_map = Nystroem(Polynomial(2, coef0=0), 2, landmarks="leverage", random_state=0)
    assert np.isfinite(feature_map.fit_transform(X)).all()


@pytest.mark.delicate
def test_unwhitened_output_and_its_penalty(X):
    """(C + alpha K_LL) b = sum k_L y predicts what the whitened map and a plain ridge do."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(120)
    raw = Nystroem(Gaussian(1.0), 12, whiten=False, random_state=0)
    columns = raw.fit_transform(X)
    np.testing.assert_allclose(columns, Gaussian(1.0)(X, raw.landmarks_), rtol=1e-10)
    white = Nystroem(Gaussian(1.0), landmarks=raw.landmarks_)
    Z = white.fit_transform(X)
    b = np.linalg.solve(columns.T @ columns + 0.1 * raw.penalty(), columns.T @ y)
    w = np.linalg.solve(Z.T @ Z + 0.1 * np.eye(12), Z.T @ y)
    np.testing.assert_allclose(columns @ b, Z @ w, atol=1e-8)
    np.testing.assert_allclose(raw.penalty(), Gaussian(1.0)(raw.landmarks_), atol=1e-12)
    assert not hasattr(white, "penalty")


@pytest.mark.delicate
@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky", "leverage", [4, 7, 9]])
def test_precomputed(landmarks, X):
    K = Gaussian(0.3)(X)
    feature_map = Nystroem("precomputed", 12, landmarks=landmarks, random_state=0)
    Z = feature_map.fit_transform(K[:100, :100])
    chosen = feature_map.landmarks_
    rows = Nystroem(Gaussian(0.3), landmarks=X[chosen]).fit(X)
    np.testing.assert_allclose(Z @ Z.T, slow_nystroem(Gaussian(0.3), X[:100], X[chosen]), atol=1e-7)
    np.testing.assert_allclose(
        feature_map.transform(K[100:, :100]), rows.transform(X[100:]), atol=1e-6
    )


@pytest.mark.parametrize("kernel", [*KERNELS[:6], "cosine"], ids=name)
@pytest.mark.parametrize("landmarks", CHOICES)
def test_sparse_rows(kernel, landmarks):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 20)) < 0.3, rng.random((300, 20)), 0) + np.eye(300, 20)
    dense = Nystroem(kernel, 10, landmarks=landmarks, random_state=0).fit(X)
    thin = Nystroem(kernel, 10, landmarks=landmarks, random_state=0).fit(sparse.csr_array(X))
    Z = thin.transform(sparse.csr_array(X))
    if landmarks != "kmeans":  # whose sums run in another order
        assert {*map(tuple, thin.landmarks_.toarray())} == {*map(tuple, dense.landmarks_)}
        F = dense.transform(X)
        np.testing.assert_allclose(Z @ Z.T, F @ F.T, atol=1e-7)
    np.testing.assert_allclose(thin.transform(X), Z, atol=1e-7)


@pytest.mark.delicate
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.3), Polynomial(3)], ids=name)
def test_float32(kernel, X):
    double = Nystroem(kernel, landmarks=X[:20]).fit(X)
    single = Nystroem(kernel, landmarks=X[:20]).fit(X.astype(np.float32))
    Z = single.transform(X.astype(np.float32))
    assert Z.dtype == np.float32
    A = double.transform(X)
    np.testing.assert_allclose(Z @ Z.T, A @ A.T, atol=2e-4 * np.abs(kernel(X)).max())
    B = double.transform(X.astype(np.float32))  # fewer of the small eigenvalues are of use
    np.testing.assert_allclose(B @ B.T, A @ A.T, atol=2e-4 * np.abs(kernel(X)).max())


def test_transform_into_a_buffer(X):
    feature_map = Nystroem(Gaussian(0.3), 10, random_state=0).fit(X)
    out = np.full((130, 10), np.nan)
    np.testing.assert_array_equal(feature_map.transform_into(X, out), feature_map.transform(X))
    assert np.isnan(out[120:]).all()


def one_by_one(K, n, rng):
    """Randomly pivoted Cholesky as it is defined: one pivot after another, on the whole matrix."""
    K, chosen = K.copy(), []
    for _ in range(n):
        diagonal = np.maximum(K.diagonal(), 0)
        pivot = rng.choice(len(K), p=diagonal / diagonal.sum())
        K -= np.outer(K[:, pivot], K[pivot]) / K[pivot, pivot]
        chosen.append(pivot)
    return chosen


def pivot_counts(algorithm, repeats, n_rows, n):
    counts = np.zeros((n, n_rows))
    for seed in range(repeats):
        counts[np.arange(n), algorithm(np.random.default_rng(seed))] += 1
    return counts


def blocked_without_rejection(candidates, n, rng):
    """The wrong algorithm: all proposals of a block are taken."""
    p = candidates.diagonal / candidates.diagonal.sum()
    return rng.choice(candidates.n_rows, n, replace=False, p=p)


def test_blocks_with_rejection_have_the_law_of_one_pivot_after_another():
    """Chi-squared tests of each pivot's law against 1200 runs of the definition.

    Five tests at 2e-8 each: false alarms at 1e-7. The blocked algorithm without rejection fails.
    """
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.1, (8, 2)), rng.normal(3, 0.5, (4, 2))])
    K = Gaussian(0.5)(X)
    candidates = choose.Candidates.of_rows(Gaussian(0.5), X)
    expected = pivot_counts(lambda rng: one_by_one(K, 5, rng), 1200, 12, 5)
    found = pivot_counts(lambda rng: choose.rpcholesky(candidates, 5, rng), 1200, 12, 5)
    wrong = pivot_counts(lambda rng: blocked_without_rejection(candidates, 5, rng), 1200, 12, 5)

    def smallest_p(counts):
        tables = [np.array([a, b])[:, (a + b) > 0] for a, b in zip(expected, counts, strict=True)]
        return min(stats.chi2_contingency(table).pvalue for table in tables)

    assert smallest_p(found) > 2e-8
    assert smallest_p(wrong) < 2e-8


def test_rpcholesky_never_forms_the_gram_matrix(X):
    seen = []

    class Watched(Gaussian):
        def against(self, Y, dtype):
            fill = super().against(Y, dtype)

            def watched(rows, out):
                seen.append(out.size)
                fill(rows, out)

            return watched

    kernel = Watched(0.3)
    many = np.random.default_rng(0).random((3000, 3))
    choose.rpcholesky(choose.Candidates.of_rows(kernel, many), 60, np.random.default_rng(0))
    assert sum(seen) < 3000 * 60 * 1.5
    assert max(seen) < 3000 * 60


def test_rpcholesky_with_more_rows_than_memory(X, monkeypatch):
    monkeypatch.setattr(choose, "_FACTOR_BYTES", 8 * 10 * 50)
    candidates = choose.Candidates.of_rows(Gaussian(0.3), X)
    found = choose.rpcholesky(candidates, 10, np.random.default_rng(0))
    assert len(set(found)) == 10


def ridge_leverage_scores(K, ridge):
    return np.diagonal(K @ np.linalg.inv(K + ridge * np.eye(len(K))))


def test_leverage_draws_as_the_exact_scores_do():
    """A few rows apart from a dense cloud: how often they are drawn, against exact scores.

    The bar is five standard errors: a false alarm in about two million runs.
    """
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.05, (280, 2)), rng.normal(0, 3, (20, 2))])
    n, kernel = 24, Gaussian(1.0)
    dimension = int(n / (4 * np.log(n)))
    ridge = np.linalg.eigvalsh(kernel(X))[:-dimension].sum() / dimension
    exact = ridge_leverage_scores(kernel(X), ridge)
    candidates = choose.Candidates.of_rows(kernel, X)

    def apart(draw):
        shares = [np.mean(draw(np.random.default_rng(seed)) >= 280) for seed in range(60)]
        return np.mean(shares), np.std(shares) / np.sqrt(60)

    mean, error = apart(lambda rng: choose.leverage(candidates, n, rng))
    expected, noise = apart(lambda rng: rng.choice(300, n, replace=False, p=exact / exact.sum()))
    assert abs(mean - expected) < 5 * np.hypot(error, noise)
    uniform, _ = apart(lambda rng: rng.choice(300, n, replace=False))
    assert mean - uniform > 10 * error  # uniform draws are caught


def test_unit_norm_centres(X):
    feature_map = Nystroem("rbf", 8, landmarks="kmeans", unit_norm=True, random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(feature_map.landmarks_, axis=1), 1.0)


@pytest.mark.slow
@pytest.mark.skipif("CRAFTMAPS_DATA" not in os.environ, reason="CRAFTMAPS_DATA is not set")
@pytest.mark.parametrize("kernel", [Gaussian("median"), Polynomial(7)], ids=name)
def test_choosing_landmarks_helps_on_mnist(kernel):
    """400 rows, 200 landmarks: in each of 4 seeds the error is below that of uniform ones."""
    with np.load(Path(os.environ["CRAFTMAPS_DATA"]) / "mnist.npz") as archive:
        X = archive["X_train"][:400].astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    K = kernel(X)
    error = {}
    for landmarks in ("uniform", "kmeans", "rpcholesky"):
        maps = (Nystroem(kernel, 200, landmarks=landmarks, random_state=s) for s in range(4))
        features = [feature_map.fit_transform(X) for feature_map in maps]
        error[landmarks] = np.array([np.linalg.norm(Z @ Z.T - K) for Z in features])
    assert error["kmeans"].max() < error["uniform"].min()
    assert error["rpcholesky"].mean() < error["uniform"].mean()


def test_blas_threads_are_given_back(X):
    def blas_threads():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    before = blas_threads()
    with row_blocks.at_most_threads(1), row_blocks.at_most_threads(1):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        row_blocks.for_each_product_block(lambda start, stop: 1 // 0, 5000, 8000)
    assert blas_threads() == before


FROZEN = {
    "uniform": [6.0, 2.0, 0.0],
    "kmeans": [4.47596154, 0.0, 1.52],
    "rpcholesky": [2.0, 3.0, 0.0],
    "leverage": [4.0, 3.0, 6.0],
}


@pytest.mark.delicate
@pytest.mark.parametrize("landmarks", CHOICES)
def test_frozen_landmarks(landmarks):
    X = np.arange(40.0).reshape(20, 2) % 7
    feature_map = Nystroem(
        Gaussian(0.1), 3, landmarks=landmarks, whiten=False, random_state=42
    ).fit(X)
    np.testing.assert_allclose(feature_map.landmarks_[:, 0], FROZEN[landmarks], atol=1e-7)


def test_more_landmarks_than_rows_warn(X):
    with pytest.warns(UserWarning, match="n_components=200 is more than the 120 rows"):
        feature_map = Nystroem(Gaussian(0.3), 200).fit(X)
    assert feature_map.transform(X).shape == (120, 120)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be a kernel such as"),
        ({"kernel": Gaussian(-1)}, "Gaussian: gamma must be"),
        ({"kernel": Gaussian(1), "kernel_params": {"gamma": 2}}, "set the parameters of Gaussian"),
        ({"kernel": lambda X, Y: X}, "must return an array of shape"),
        ({"landmarks": "best"}, "landmarks must be one of"),
        ({"landmarks": np.ones((3, 2))}, "landmarks have 2 columns, the rows of X have 6"),
        ({"kernel": "precomputed"}, "needs the square Gram matrix"),
        ({"n_components": 0}, "n_components must be"),
    ],
)
def test_bad_parameters(parameters, message, X):
    with pytest.raises(ValueError, match=message):
        Nystroem(**{"n_components": 5} | parameters).fit(X)


def test_kernel_values_that_overflow(X):
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match="is not finite for some of the landmarks"),
    ):
        Nystroem(Polynomial(2, gamma=1e200), 5).fit(X)


def test_bad_parameters_of_precomputed_kernels(X):
    K = rbf_kernel(X)
    with pytest.raises(ValueError, match="landmarks='kmeans' needs rows"):
        Nystroem("precomputed", 5, landmarks="kmeans").fit(K)
    for wrong in ([0, 120], [-1], [0.5], [[1, 2]]):
        with pytest.raises(ValueError, match="must be a list of row numbers from 0 to 119"):
            Nystroem("precomputed", landmarks=wrong).fit(K)


def test_kernel_parameters_of_scikit_learn(X):
    feature_map = Nystroem("chi2", 10, kernel_params={"gamma": 0.2}, random_state=0)
    Z = feature_map.fit_transform(X)
    L = feature_map.landmarks_
    np.testing.assert_allclose(
        Z @ Z.T, slow_nystroem(lambda A, B: chi2_kernel(A, B, gamma=0.2), X, L), atol=1e-7
    )


@parametrize_with_checks(
    [
        Nystroem(n_components=1),
        Nystroem(n_components=1, landmarks="rpcholesky"),
        Nystroem(n_components=1, landmarks="leverage", whiten=False),
        Nystroem("poly", n_components=1, landmarks="kmeans"),
        Nystroem("precomputed", n_components=1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
