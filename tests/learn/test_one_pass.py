"""The one-pass learners: exact, the same from any stream, and good citizens of scikit-learn."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from craftmaps import (
    FourierFeatures,
    Gaussian,
    NormalEquations,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
    load,
)
from craftmaps.learn import row_sums
from craftmaps.learn.solvers import choose, ridge

TRAIN, TEST = slice(0, 1000), slice(1000, None)


class Columns(TransformerMixin, BaseEstimator):
    """A map that does not depend on data: some columns, penalised by a matrix if there is one."""

    def __init__(self, n_columns=64, matrix=None):
        self.n_columns = n_columns
        self.matrix = matrix

    def fit(self, X, y=None):
        self.fitted_ = True
        if self.matrix is not None:
            self.penalty = lambda: self.matrix
        return self

    def transform(self, X):
        return X[:, : self.n_columns]


@pytest.fixture(scope="module")
def feature_map(digits):
    """Fitted once: the same map for every learner."""
    fitted = RandomMaclaurin(Polynomial(degree=4), n_components=120, random_state=0)
    return FrozenEstimator(fitted.fit(digits[0]))


@parametrize_with_checks(
    [
        OnePassClassifier(),
        OnePassRegressor(),
        OnePassClassifier(
            TensorSketch(n_components=40, random_state=0),
            codes="random",
            n_bits=32,
            alpha=1.0,
            block_rows=7,
            random_state=0,
        ),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# exactness


@pytest.mark.delicate
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", [None, "sample", "balanced", "dict"])
def test_equals_ridge_classifier_on_the_features(
    digits, feature_map, dtype, tolerance, fit_intercept, weights
):
    X, y = digits[0].astype(dtype), digits[1]
    rng = np.random.default_rng(0)
    sample_weight = rng.uniform(0, 2, 1000) if weights else None
    class_weight = {"balanced": "balanced", "dict": {3: 2.0, 7: 0.5}}.get(weights)
    options = {"alpha": 10.0, "fit_intercept": fit_intercept, "class_weight": class_weight}
    found = OnePassClassifier(feature_map, **options).fit(X[TRAIN], y[TRAIN], sample_weight)
    Z = feature_map.transform(X).astype(np.float64)
    expected = RidgeClassifier(solver="cholesky", **options).fit(Z[TRAIN], y[TRAIN], sample_weight)
    for name in ("coef_", "intercept_"):
        a, b = getattr(found, name), getattr(expected, name)
        assert np.abs(a - b).max() <= tolerance * np.abs(expected.coef_).max()
    scores = expected.decision_function(Z[TEST])
    assert np.abs(found.decision_function(X[TEST]) - scores).max() <= 10 * tolerance
    assert found.decision_function(X[TEST]).dtype == dtype


@pytest.mark.delicate
@pytest.mark.filterwarnings("ignore:alpha=.* is the smallest that sums")  # the kernel is too wide
@pytest.mark.parametrize("features", ["few", "many", "not looked at"])
def test_single_rows_of_a_smooth_problem_learn_as_much_as_double_ones(monkeypatch, features):
    """Few columns, small alpha: products of features in single precision would not do."""
    if features != "few":
        monkeypatch.setattr(choose, "DOUBLE_PRECISION_FEATURES", 0)
    if features == "not looked at":
        monkeypatch.setattr(row_sums, "loses_directions", lambda Z: False)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 2))
    y = np.sin(6 * X[:, 0]) * np.cos(5 * X[:, 1])
    errors = []
    for dtype in (np.float64, np.float32):
        rows = X.astype(dtype)
        model = OnePassRegressor(FourierFeatures(Gaussian(1.0), 300, random_state=0))
        found = model.fit(rows[:3000], y[:3000]).predict(rows[3000:])
        errors.append(np.sqrt(np.mean((found - y[3000:]) ** 2)))
    assert errors[0] < 0.07
    assert (errors[1] < 1.1 * errors[0]) == (features != "not looked at")


@pytest.mark.parametrize("kind", [str, object, int])
def test_two_classes_of_any_type(digits, kind):
    X, y = digits
    labels = np.array(["even", "odd"], dtype=kind)[y % 2] if kind is not int else y % 2
    found = OnePassClassifier(alpha=1.0).fit(X[TRAIN], labels[TRAIN])
    expected = RidgeClassifier(alpha=1.0, solver="cholesky").fit(X[TRAIN], labels[TRAIN])
    assert found.coef_.shape == (1, 64)
    np.testing.assert_allclose(found.coef_[0], expected.coef_.ravel(), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        found.decision_function(X[TEST]), expected.decision_function(X[TEST]), atol=1e-10
    )
    np.testing.assert_array_equal(found.predict(X[TEST]), expected.predict(X[TEST]))
    assert found.predict_proba(X[TEST]).shape == (len(X) - 1000, 2)


@pytest.mark.delicate
@pytest.mark.parametrize("several", [False, True])
def test_regressor_equals_ridge(several):
    X, y = load_diabetes(return_X_y=True)
    y = np.column_stack([y, y**2]) if several else y
    found, expected = OnePassRegressor(alpha=0.3).fit(X, y), Ridge(alpha=0.3).fit(X, y)
    assert found.coef_.shape == expected.coef_.shape
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)


@pytest.mark.delicate
@pytest.mark.parametrize("alpha", [1e-3, "auto", "gcv", [1e-4, 1e-2, 1.0]])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_fewer_rows_than_features(digits, alpha, fit_intercept, weighted):
    """Solved in the span of the rows, which is the same as with all features."""
    X, y = digits[0][:60], digits[1][:60]
    weights = np.random.default_rng(0).integers(0, 3, 60) if weighted else None
    options = {"alpha": alpha, "fit_intercept": fit_intercept}
    few = OnePassClassifier(**options).fit(X, y, weights)
    assert not few._stream.folds[0].n_features  # no matrix of all features was ever made
    primal = OnePassClassifier(block_rows=25, **options)
    for start in range(0, 60, 10):
        rows = slice(start, start + 10)
        some = None if weights is None else weights[rows]
        primal.partial_fit(X[rows], y[rows], range(10), some)
    assert few.alpha_ == primal.alpha_
    rounding = 10 * np.finfo(np.float64).eps * primal.condition_  # what solving it may lose
    np.testing.assert_allclose(
        few.decision_function(digits[0]), primal.decision_function(digits[0]), atol=rounding
    )


def test_folds_of_the_stream_are_folds_by_refitting(digits):
    X, y = digits[0][:300], digits[1][:300]
    alphas = [1e-2, 1.0, 100.0]
    found = OnePassClassifier(alpha=alphas, n_folds=3, block_rows=77).fit(X, y)
    targets = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    fold = np.arange(300) % 3
    errors = np.zeros((3, 10))
    for i, alpha in enumerate(alphas):
        for f in range(3):
            model = Ridge(alpha).fit(X[fold != f], targets[fold != f])
            errors[i] += ((targets - model.predict(X)) ** 2)[fold == f].sum(axis=0) / 300
    np.testing.assert_allclose(found.scores_, errors, rtol=1e-8)
    assert found.alpha_ == alphas[errors.sum(axis=1).argmin()]
    each = OnePassClassifier(alpha=alphas, n_folds=3, alpha_per_target=True).fit(X, y)
    np.testing.assert_array_equal(each.alpha_, np.array(alphas)[errors.argmin(axis=0)])


# the laws of a stream


def streams(digits, feature_map, cuts, **options):
    X, y = digits
    for rows in cuts:
        yield OnePassClassifier(feature_map, **options).partial_fit(X[rows], y[rows], range(10))


CUTS = [slice(0, 1), slice(1, 400), slice(400, 410), slice(410, 1000)]


@pytest.mark.delicate
@pytest.mark.parametrize("alpha", [1e-2, "auto", (1e-3, 1e-1)])
@pytest.mark.parametrize("size", [1, 33, 999])
def test_partial_fit_in_any_blocks_is_fit(digits, feature_map, alpha, size):
    X, y = digits
    whole = OnePassClassifier(feature_map, alpha=alpha).fit(X[TRAIN], y[TRAIN])
    model = OnePassClassifier(feature_map, alpha=alpha, block_rows=128)
    for start in range(0, 1000, size):
        rows = slice(start, min(start + size, 1000))
        model.partial_fit(X[rows], y[rows], classes=range(10) if not start else None)
    assert model.n_samples_seen_ == whole.n_samples_seen_ == 1000
    assert model.alpha_ == whole.alpha_
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        model.predict_proba(X[TEST]), whole.predict_proba(X[TEST]), rtol=0, atol=1e-8
    )


@pytest.mark.delicate
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 2, 1), (2, 3, 1, 0)])
@pytest.mark.parametrize("block_rows", [50, 4096])
def test_merge_in_any_order_is_fit(digits, feature_map, order, block_rows):
    X, y = digits
    whole = OnePassClassifier(feature_map).fit(X[TRAIN], y[TRAIN])
    parts = list(streams(digits, feature_map, CUTS, block_rows=block_rows))
    before = pickle.dumps(parts[order[1]]._stream)
    merged = parts[order[0]]
    for i in order[1:]:
        merged.merge(parts[i])
    assert pickle.dumps(parts[order[1]]._stream) == before
    assert merged.n_samples_seen_ == 1000
    assert merged.alpha_ == whole.alpha_
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=0, atol=1e-8)
    assert merged.temperature_ == pytest.approx(whole.temperature_, rel=0.2)


def test_merge_refuses_what_does_not_add(digits, feature_map):
    X, y = digits
    model = OnePassClassifier(feature_map).fit(X[:100], y[:100])
    other_map = RandomMaclaurin(Polynomial(degree=4), n_components=120, random_state=1)
    with pytest.raises(ValueError, match="different feature maps"):
        model.merge(OnePassClassifier(other_map).fit(X[:100], y[:100]))
    with pytest.raises(ValueError, match="not with a OnePassRegressor"):
        model.merge(OnePassRegressor(feature_map).fit(X[:100], y[:100]))
    a, b = (
        OnePassClassifier(feature_map, codes="random", random_state=seed).fit(X[:100], y[:100])
        for seed in (0, 1)
    )
    with pytest.raises(ValueError, match="different codes"):
        a.merge(b)
    with pytest.raises(ValueError, match="different codes"):
        a.merge(model)


def test_merge_tells_maps_apart_by_rows_that_are_not_zero(digits):
    """About the origin, Fourier features of one size agree."""
    X, y = digits[0].copy(), digits[1]
    X[[0, 100]] = 0
    first, other = (
        OnePassClassifier(FourierFeatures(Gaussian(1.0), 64, random_state=seed)) for seed in (0, 1)
    )
    first.partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="different feature maps"):
        first.merge(other.partial_fit(X[100:200], y[100:200]))


def test_merge_refuses_another_number_of_targets():
    X = np.random.default_rng(0).normal(size=(60, 5))
    one = OnePassRegressor(alpha=1.0).partial_fit(X, X[:, 0])
    two = OnePassRegressor(alpha=1.0).partial_fit(X, X[:, :2])
    for mine, theirs in ((one, two), (two, one)):
        with pytest.raises(ValueError, match=r"have [12] and [12] targets"):
            mine.merge(theirs)
    np.testing.assert_allclose(two.predict(X), X[:, :2], atol=0.2)


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_threads_that_ask_at_once_get_what_one_would(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 200))
    y = (X @ rng.standard_normal(200) > 0).astype(int)
    expected = getattr(OnePassClassifier(alpha=10.0).fit(X, y), method)(X[:50])
    model = OnePassClassifier(alpha=10.0).partial_fit(X, y)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: getattr(model, method)(X[:50]), range(8)))
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=1e-9)


def test_merge_of_different_classes(digits, feature_map):
    X, y = digits
    low, high = y < 6, y >= 4
    whole = OnePassClassifier(feature_map).fit(np.vstack([X[low], X[high]]), np.r_[y[low], y[high]])
    a = OnePassClassifier(feature_map).fit(X[low], y[low])
    b = OnePassClassifier(feature_map).fit(X[high], y[high])
    a.merge(b)
    assert b.classes_.tolist() == [4, 5, 6, 7, 8, 9]
    assert a.classes_.tolist() == list(range(10))
    np.testing.assert_allclose(a.coef_, whole.coef_, rtol=0, atol=1e-8)


@pytest.mark.parametrize("block_rows", [64, 4096])
def test_classes_may_be_announced_later(digits, block_rows):
    X, y = digits
    first = np.flatnonzero(np.isin(y, [2, 3, 8]))
    rest = np.setdiff1d(np.arange(len(y)), first)
    model = OnePassClassifier(block_rows=block_rows).partial_fit(X[first], y[first])
    assert model.predict(X[first[:5]]).shape == (5,)
    model.partial_fit(X[rest], y[rest], classes=range(10))
    order = np.r_[first, rest]
    whole = OnePassClassifier().fit(X[order], y[order])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-8)
    assert model.temperature_ == pytest.approx(whole.temperature_)
    with pytest.raises(ValueError, match=r"labels \[10\] are not among the 10 classes announced"):
        model.partial_fit(X[:2], [10, 3])
    coded = OnePassClassifier(codes="random", random_state=0).partial_fit(X[first], y[first])
    with pytest.raises(ValueError, match="announce all of them at first"):
        coded.partial_fit(X[rest], y[rest], classes=range(10))


@pytest.mark.parametrize("alpha", [0.1, "auto"])
def test_weights_are_repetitions(digits, feature_map, alpha):
    X, y = digits[0][:400], digits[1][:400]
    times = np.random.default_rng(0).integers(0, 3, 400)
    weighted = OnePassClassifier(feature_map, alpha=alpha).fit(X, y, times)
    repeated = OnePassClassifier(feature_map, alpha=alpha).fit(
        X.repeat(times, axis=0), y.repeat(times)
    )
    assert weighted.alpha_ == repeated.alpha_
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=1e-8)
    assert weighted.temperature_ == pytest.approx(repeated.temperature_, rel=1e-6)


@pytest.fixture(scope="module")
def wide_map(digits):
    """More features than the rows that learn from them."""
    fitted = RandomMaclaurin(Polynomial(degree=5), n_components=500, random_state=0)
    return FrozenEstimator(fitted.fit(digits[0]))


def clustered(seed):
    """Half of the rows nearly the same as others, the other half alone and with noisy labels."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, 8))

    def draw(n_rows):
        near = centres[rng.integers(0, 40, n_rows)] + 0.02 * rng.standard_normal((n_rows, 8))
        X = np.vstack([rng.standard_normal((n_rows, 8)), near])
        noise = np.repeat([0.7, 0.0], n_rows) * rng.standard_normal(2 * n_rows)
        return X, (X[:, 0] + X[:, 1] * X[:, 2] / 2 + noise > 0).astype(int)

    return draw(150), draw(1000)


@pytest.mark.delicate
@pytest.mark.parametrize("seed", range(5))
def test_alpha_of_few_rows_is_nearly_the_best(seed):
    (X, y), new = clustered(seed)
    feature_map = FourierFeatures(Gaussian(0.1), 600, random_state=0)

    def error(alpha):
        return 1 - OnePassClassifier(feature_map, alpha=alpha).fit(X, y).score(*new)

    best = min(map(error, 10.0 ** np.arange(-10, 4)))
    assert error("auto") < 1.1 * best + 0.005
    sums = NormalEquations().update(feature_map.fit(X).transform(X), 2.0 * y - 1)
    by_sums = ridge.solve(sums, "gcv").alpha  # rows of very different leverages mislead it
    assert error(by_sums) > 1.4 * best


@pytest.mark.delicate
@pytest.mark.parametrize("per_target", [False, True])
def test_alpha_of_few_rows_of_a_regression(per_target):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 200))
    w = rng.standard_normal((200, 2)) / 200**0.5
    noise = np.array([0.1, 3.0])
    y = X @ w + noise * rng.standard_normal((90, 2))
    new = rng.standard_normal((1000, 200))
    chosen = OnePassRegressor(alpha_per_target=per_target).fit(X, y)

    def error(model):
        return np.mean((model.predict(new) - new @ w) ** 2)

    best = min(error(OnePassRegressor(alpha=a).fit(X, y)) for a in 10.0 ** np.arange(-6, 5))
    assert error(chosen) < 1.1 * best
    if per_target:
        assert chosen.alpha_[0] < chosen.alpha_[1]
        assert error(chosen) < best


@pytest.mark.delicate
@pytest.mark.parametrize("size", [1, 33, 299])
def test_few_rows_in_any_blocks_choose_the_same_alpha(digits, wide_map, size):
    X, y = digits
    whole = OnePassClassifier(wide_map).fit(X[:300], y[:300])
    model = OnePassClassifier(wide_map, block_rows=64)
    regression = OnePassRegressor(wide_map, block_rows=64)
    for start in range(0, 300, size):
        rows = slice(start, min(start + size, 300))
        model.partial_fit(X[rows], y[rows], classes=range(10) if not start else None)
        regression.partial_fit(X[rows], y[rows])
    assert model.alpha_ == whole.alpha_
    np.testing.assert_allclose(model.scores_, whole.scores_, rtol=1e-6)
    assert regression.alpha_ == OnePassRegressor(wide_map).fit(X[:300], y[:300]).alpha_
    times = np.random.default_rng(0).integers(0, 3, 300)
    weighted = OnePassClassifier(wide_map).fit(X[:300], y[:300], times)
    repeated = OnePassClassifier(wide_map).fit(X[:300].repeat(times, axis=0), y[:300].repeat(times))
    assert weighted.alpha_ == repeated.alpha_


@pytest.mark.parametrize("done", [3, 700])
def test_pickle_in_the_middle_of_a_stream(digits, feature_map, done):
    X, y = digits
    model = OnePassClassifier(feature_map, block_rows=100)
    model.partial_fit(X[:done], y[:done], classes=range(10))
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[done:1000], y[done:1000])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.predict_proba(X[TEST]), model.predict_proba(X[TEST]))


def test_fit_forgets(digits):
    X, y = digits
    model = OnePassClassifier().partial_fit(X[:500], y[:500])
    fresh = OnePassClassifier().fit(X[500:], y[500:])
    np.testing.assert_array_equal(model.fit(X[500:], y[500:]).coef_, fresh.coef_)
    blocks = [(X[500:900], y[500:900]), (X[900:], y[900:])]
    np.testing.assert_allclose(model.fit_blocks(blocks).coef_, fresh.coef_, atol=1e-9)
    assert model.n_samples_seen_ == len(X) - 500


def test_fit_blocks_of_a_generator_with_weights(digits):
    X, y = digits
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    cuts = [slice(s, s + 300) for s in range(0, len(X), 300)]
    model = OnePassClassifier().fit_blocks(
        ((X[c], y[c], weights[c]) for c in cuts), classes=range(10)
    )
    whole = OnePassClassifier().fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    regressor = OnePassRegressor().fit_blocks((X[c], y[c]) for c in cuts)
    np.testing.assert_allclose(regressor.coef_, OnePassRegressor().fit(X, y).coef_, atol=1e-9)
    with pytest.raises(ValueError, match="blocks must yield"):
        model.fit_blocks([X])
    with pytest.raises(ValueError, match="blocks is empty"):
        model.fit_blocks([])


def test_regressor_stream_and_merge():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, -y])
    whole = OnePassRegressor().fit(X, Y)
    a = OnePassRegressor(block_rows=10).partial_fit(X[:100], Y[:100])
    b = OnePassRegressor().partial_fit(X[100:], Y[100:])
    np.testing.assert_allclose(a.merge(b).coef_, whole.coef_, rtol=1e-8)
    assert OnePassRegressor(alpha_per_target=True).fit(X, Y).alpha_.shape == (2,)
    with pytest.raises(ValueError, match="y has 1 targets, but had 2 before"):
        a.partial_fit(X, y)


@pytest.mark.parametrize("few", [False, True])
def test_rows_without_weight_do_not_matter(few):
    """Far from the others, as rows that are padded with zeros may be."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20 if few else 80, 30)) + 1e7
    y = X @ rng.standard_normal(30)
    weights = np.r_[np.ones(len(X)), np.zeros(len(X))]
    padded = np.r_[X, np.zeros_like(X)], np.r_[y, np.zeros(len(y))]
    model = OnePassRegressor(alpha=1.0).fit(*padded, weights)
    assert model.n_samples_seen_ == 2 * len(X)
    expected = OnePassRegressor(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-6)
    sums = NormalEquations().update(*padded, weights)
    np.testing.assert_allclose(sums.hessian, np.cov(X.T) * (len(X) - 1), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="the weight of all rows together is zero"):
        OnePassRegressor(alpha=1.0).fit(*padded, 0 * weights)


def test_a_sample_has_no_rows_without_weight(digits):
    X, y = np.repeat(digits[0], 5, axis=0), np.repeat(digits[1], 5)
    weights = np.zeros(len(y))
    weights[:50] = 1
    proba = OnePassClassifier(alpha=0.1).fit(X, y, weights).predict_proba(X[:60])
    some = OnePassClassifier(alpha=0.1).partial_fit(X[:50], y[:50], classes=range(10))
    np.testing.assert_allclose(proba, some.predict_proba(X[:60]), atol=1e-8)


@pytest.mark.delicate
def test_large_offsets_do_not_matter(digits):
    X, y = digits
    near = OnePassClassifier(alpha=0.1).fit(X[TRAIN], y[TRAIN])
    far = OnePassClassifier(alpha=0.1).fit(X[TRAIN] + 1e6, y[TRAIN])
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-7)


# maps of every kind


def test_any_transformer_will_do(digits):
    X, y = digits
    scaler = StandardScaler()
    found = OnePassClassifier(scaler, alpha=1.0).fit(X[TRAIN], y[TRAIN])
    assert not hasattr(scaler, "mean_")  # a clone was fitted
    expected = make_pipeline(scaler, RidgeClassifier(alpha=1.0)).fit(X[TRAIN], y[TRAIN])
    np.testing.assert_array_equal(found.predict(X[TEST]), expected.predict(X[TEST]))
    assert OnePassClassifier(Columns(n_columns=10)).fit(X, y).coef_.shape == (10, 10)


def test_sparse_rows(digits, feature_map):
    X, y = digits
    for one in (None, feature_map):
        dense = OnePassClassifier(one).fit(X[TRAIN], y[TRAIN])
        found = OnePassClassifier(one).fit(sparse.csr_matrix(X[TRAIN]), y[TRAIN])
        np.testing.assert_allclose(found.coef_, dense.coef_, atol=1e-9)
        np.testing.assert_array_equal(
            found.predict(sparse.csr_array(X[TEST])), dense.predict(X[TEST])
        )


@pytest.mark.delicate
@pytest.mark.parametrize("rank", [64, 50])
@pytest.mark.parametrize("alpha", [0.5, "auto", (0.1, 10.0)])
def test_a_map_may_bring_its_penalty(digits, rank, alpha):
    """Raw features x with penalty P: the same as features P^(-1/2) x with penalty |w|^2."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((64, rank))
    P = root @ root.T
    X, y = digits[0] @ P, digits[1]  # rows in the range of P, as kernel columns of landmarks are
    values, vectors = np.linalg.eigh(P)
    white = vectors[:, -rank:] / np.sqrt(values[-rank:])
    found = OnePassClassifier(Columns(matrix=P), alpha=alpha).fit(X[TRAIN], y[TRAIN])
    expected = OnePassClassifier(alpha=alpha).fit(X[TRAIN] @ white, y[TRAIN])
    assert found.alpha_ == expected.alpha_
    np.testing.assert_allclose(
        found.decision_function(X[TEST]), expected.decision_function(X[TEST] @ white), atol=1e-6
    )
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=1e-4)


def test_a_wrong_penalty_is_named(digits):
    X, y = digits
    with pytest.raises(ValueError, match=r"penalty\(\) of Columns must be a finite matrix"):
        OnePassClassifier(Columns(matrix=np.eye(3))).fit(X, y)
    with pytest.raises(ValueError, match=r"penalty\(\) of Columns must be symmetric"):
        OnePassClassifier(Columns(matrix=-np.eye(64))).fit(X, y)


def test_grid_search_reaches_into_the_map(digits):
    X, y = digits
    model = OnePassClassifier(RandomMaclaurin(Polynomial(), 100, random_state=0))
    grid = {"feature_map__kernel__degree": [1, 3], "alpha": ["auto", 1e3]}
    search = GridSearchCV(model, grid, cv=2).fit(X[TRAIN], y[TRAIN])
    assert search.best_params_["alpha"] == "auto"
    assert clone(search.best_estimator_).get_params()["alpha"] == "auto"


def test_predictions_far_beyond_the_targets_come_with_a_warning(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (60, 2)), rng.standard_normal(60)
    feature_map = FourierFeatures(Gaussian(3.0), 55, random_state=0)
    wild = OnePassRegressor(feature_map, alpha=1e-12).fit(X, y)
    wild.save(tmp_path / "wild.craft")
    for model in (wild, load(tmp_path / "wild.craft")):
        with pytest.warns(UserWarning, match=r"lie up to .* standard deviations of the training"):
            model.predict(rng.uniform(-1, 1, (200, 2)))
    OnePassRegressor(feature_map).fit(X, y).predict(rng.uniform(-1, 1, (200, 2)))  # says nothing
