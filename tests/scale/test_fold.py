"""What every cluster runs, without one: sums of partitions add up to the local fit."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from threadpoolctl import threadpool_info

from craftmaps import (
    KernelClassifier,
    KernelRegressor,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
)
from craftmaps import threads as rows
from craftmaps.learn.passes import TotalsPass
from craftmaps.scale.cluster import fold

CUTS = [0, 0, 10, 700, 700, 1500, 2000]  # two are empty, one has fewer rows than features


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).standard_normal((2000, 6))
    return X, np.array(["no", "yes", "maybe"])[(X[:, 0] * X[:, 1] > 0) + 1 * (X[:, 2] > 1)]


@pytest.fixture(scope="module")
def feature_map():
    return RandomMaclaurin(Polynomial(2), n_components=50, random_state=0)


def folded(estimator, X, y, starts=True, weights=None, cuts=CUTS, **options):
    """A fit over partitions, without an engine."""
    learner = fold.begin(estimator, X, y, **options)
    ends = list(pairwise(cuts))

    def run(one):
        one = pickle.loads(pickle.dumps(one))  # as an engine sends it
        parts = []
        for number, (start, stop) in enumerate(ends):
            some = slice(start, stop)
            block = (X[some], y[some], None if weights is None else weights[some])
            parts.append(fold.sums_of(learner, [block], number, start if starts else None, one))
        some = [fold.merged(learner, parts[:3], one), fold.merged(learner, parts[3:], one)]
        return fold.merged(learner, some, one)

    return fold.finish(learner, run, [stop - start for start, stop in ends])


def test_equals_the_local_fit_with_probabilities_and_folds(data, feature_map):
    X, y = data
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    estimator = OnePassClassifier(feature_map, alpha=[0.1, 1.0, 10.0])
    found = folded(estimator, X, y, classes=np.unique(y), weights=weights)
    local = OnePassClassifier(feature_map, alpha=[0.1, 1.0, 10.0]).fit(X, y, weights)
    np.testing.assert_allclose(found.scores_, local.scores_, rtol=1e-9)
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    np.testing.assert_allclose(found.predict_proba(X), local.predict_proba(X), atol=1e-8)
    assert found.n_samples_seen_ == 2000
    assert found.feature_map is not estimator.feature_map
    assert isinstance(found.feature_map_, RandomMaclaurin)
    assert not hasattr(estimator, "classes_")


def test_partitions_of_unknown_lengths_share_no_places(data, feature_map):
    X, y = data
    found = folded(OnePassClassifier(feature_map), X, y, starts=False, classes=np.unique(y))
    priorities = found._stream.sample._priority
    assert len(np.unique(priorities)) == len(priorities) == 1024
    kept = {row.tobytes() for row in found._stream.sample.Z}
    assert len(kept) == 1024
    reused = fold.begin(OnePassClassifier(feature_map), X, y, classes=np.unique(y))
    same = [fold.sums_of(reused, [(X[:500], y[:500], None)], 0, None) for _ in range(2)]
    assert same[0] == same[1]


def test_the_result_goes_on_learning(data, feature_map):
    X, y = data
    fixed = FrozenEstimator(feature_map.fit(X))
    found = folded(OnePassClassifier(fixed, alpha=1.0), X, y, classes=np.unique(y))
    assert found.feature_map_ is fixed
    found.partial_fit(X[:300], y[:300])
    found.merge(OnePassClassifier(fixed, alpha=1.0).fit(X[300:500], y[300:500]))
    every = np.r_[0:2000, 0:300, 300:500]
    expected = RidgeClassifier(alpha=1.0, solver="cholesky").fit(
        fixed.transform(X[every]), y[every]
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-9)


def test_random_codes_are_drawn_once(data, feature_map):
    X, y = data
    estimator = OnePassClassifier(feature_map, codes="random", n_bits=16)  # no random_state
    found = folded(estimator, X, y, classes=np.unique(y))
    local = OnePassClassifier(feature_map, codes=found.code_matrix_).fit(X, y)
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)


def test_few_rows_are_solved_in_the_space_that_they_span(data):
    X = data[0][:200]
    wide = RandomMaclaurin(Polynomial(2), n_components=300, random_state=0)
    found = folded(OnePassRegressor(wide, alpha=1.0), X, X[:, :2], cuts=[0, 10, 70, 70, 150, 200])
    local = OnePassRegressor(wide, alpha=1.0).fit(X, X[:, :2])
    np.testing.assert_allclose(found.predict(X), local.predict(X), atol=1e-8)
    assert not found._stream.folds[0].n_features  # rows travelled, which are fewer bytes


def test_sums_travel_without_the_map_and_with_one_triangle(data):
    X = data[0].astype(np.float32)
    size = 300
    big = RandomMaclaurin(Polynomial(2), n_components=size, projection="gaussian", random_state=0)
    learner = fold.begin(OnePassRegressor(big, alpha=1.0), X, X[:, 0])
    sums = fold.sums_of(learner, [(X, X[:, 0], None)], 0, 0)
    sample = 1024 * (4 * size + 24)  # of rows: features, a target, a weight and a priority
    least = 4 * size**2 + sample
    assert least < len(sums) < least + 8 * 6 * size  # gradient, means and some words
    light = pickle.dumps(fold.for_prediction(fold.finish(learner, lambda one: sums), "predict"))
    assert len(light) < 4 * size**2


@pytest.mark.parametrize(
    "options", [{}, {"class_weight": "balanced"}, {"codes": "hadamard", "random_state": 0}]
)
def test_the_log_loss_of_partitions_is_the_local_one(data, feature_map, options):
    X, y = data
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    estimator = KernelClassifier(feature_map, **options)
    local = clone(estimator).fit(X, y, weights)
    found = folded(estimator, X, y, weights=weights, classes=np.unique(y))
    assert found.alpha_ == local.alpha_
    assert found.n_samples_seen_ == len(y)
    np.testing.assert_allclose(found.decision_function(X), local.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(found.predict_proba(X), local.predict_proba(X), atol=1e-6)
    assert found.predict_set(X[:50]).shape == (50, 3)


@pytest.mark.parametrize("options", [{"loss": "huber"}, {"loss": "quantile", "quantile": 0.8}])
def test_robust_losses_of_partitions_are_the_local_ones(data, feature_map, options):
    X = data[0]
    y = X[:, 0] * X[:, 1] + 0.1 * np.random.default_rng(2).standard_normal(len(X))
    y[::50] += 30
    estimator = KernelRegressor(feature_map, **options)
    local, found = clone(estimator).fit(X, y), folded(estimator, X, y)
    np.testing.assert_allclose(found.predict(X), local.predict(X), atol=1e-5 * y.std())


def test_a_bad_partition_of_a_pass_is_named(data, feature_map):
    X, y = data
    learner = fold.begin(KernelClassifier(feature_map), X, y)
    one = fold.Pass(TotalsPass(None), features=False)
    with pytest.raises(ValueError, match=r"^partition 7: Input X contains NaN\.$"):
        fold.sums_of(learner, [(np.full((2, 6), np.nan), y[:2], None)], 7, 0, one)


def test_sparse_rows(data, feature_map):
    X, y = data
    found = folded(OnePassClassifier(feature_map), sparse.csr_matrix(X), y, classes=np.unique(y))
    np.testing.assert_allclose(
        found.coef_, OnePassClassifier(feature_map).fit(X, y).coef_, atol=1e-9
    )


def test_complaints(data, feature_map):
    X, y = data
    with pytest.raises(TypeError, match="KernelPCA, not a RidgeClassifier"):
        fold.check_estimator(RidgeClassifier())
    learner = fold.begin(OnePassClassifier(feature_map), X, y, classes=["maybe", "no", "yes"])
    with pytest.raises(ValueError, match=r"^partition 7: Input X contains NaN\.$"):
        fold.sums_of(learner, [(np.full((2, 6), np.nan), y[:2], None)], 7, None)
    with pytest.raises(ValueError, match=r"^partition 7: X has 2 rows and y has 3\.$"):
        fold.sums_of(learner, [(X[:2], y[:3], None)], 7, None)
    with pytest.raises(ValueError, match=r"^partition 2: the labels \['perhaps'\] are not among"):
        fold.sums_of(learner, [(X[:1], np.array(["perhaps"]), None)], 2, None)
    with pytest.raises(ValueError, match=r"^partition 3: the label of row 1 is missing\.$"):
        fold.labels_in(np.array(["a", None], dtype=object), 3)
    with pytest.raises(ValueError, match=r"^partition 3: the label of row 0 is missing\.$"):
        fold.labels_in(np.array([np.nan, 1.0]), 3)
    with pytest.raises(ValueError, match="has no method 'predict_proba'"):
        fold.no_predictions(OnePassRegressor(), "predict_proba", np.dtype(float))


def test_a_task_keeps_to_its_threads():
    def blas():
        return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    before = blas()
    with rows.at_most_threads(1):
        assert blas() == {1}
        assert rows.n_threads() == 1
        with rows.at_most_threads(2):
            assert blas() == {1}  # the least that anyone asked for
        assert blas() == {1}
    assert blas() == before
    assert rows.n_threads() == rows.config.NUMBA_NUM_THREADS
