"""Learners that forget: rows on request, or by and by; beside learners that never saw them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.frozen import FrozenEstimator

import craftmaps
from craftmaps import FourierFeatures, Gaussian, OnePassClassifier, OnePassRegressor
from craftmaps.scale.cluster import fold

pytestmark = pytest.mark.delicate

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 4))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.standard_normal(600)
LABELS = np.array(["ape", "bee", "cat"])[(Y > 0.5).astype(int) + (Y > 1.5)]
MAP = FrozenEstimator(FourierFeatures(Gaussian(0.2), 64, random_state=0).fit(X))


def learners(**options):
    yield OnePassRegressor(MAP, block_rows=100, **options), Y
    yield OnePassClassifier(MAP, block_rows=100, **options), LABELS


@pytest.mark.parametrize("alpha", [1.0, "auto", "gcv"])
@pytest.mark.parametrize("n_gone", [1, 250])
def test_forgetting_is_never_having_seen(alpha, n_gone):
    gone = np.random.default_rng(1).permutation(600)[:n_gone]
    stay = np.setdiff1d(np.arange(600), gone)
    weights = np.random.default_rng(2).uniform(0.5, 2, 600)
    for model, y in learners(alpha=alpha):
        for start in range(0, 600, 75):  # with rows in the buffer at the end
            rows = slice(start, start + 75)
            model.partial_fit(X[rows], y[rows], sample_weight=weights[rows], **announced(model))
        model.forget(X[gone], y[gone], weights[gone])
        never = type(model)(MAP, alpha=alpha, block_rows=100).fit(X[stay], y[stay], weights[stay])
        assert model.n_samples_seen_ == len(stay)
        np.testing.assert_allclose(model.coef_, never.coef_, atol=1e-8)
        predict = "predict_proba" if y is LABELS else "predict"
        found, expected = getattr(model, predict)(X), getattr(never, predict)(X)
        np.testing.assert_allclose(found, expected, atol=1e-8)


def announced(model):
    return {"classes": np.unique(LABELS)} if isinstance(model, OnePassClassifier) else {}


def test_the_sample_forgets_too():
    model = OnePassRegressor(MAP).fit(X, Y)
    model.forget(X[100:], Y[100:])
    sample = model._stream.sample
    assert len(sample.Z) == 100
    np.testing.assert_allclose(np.sort(sample.labels[:, 0]), np.sort(Y[:100]))
    model.partial_fit(X[200:300], Y[200:300])
    assert len(model._stream.sample.Z) == 200


def test_rows_that_are_kept_are_looked_for():
    model = OnePassRegressor(MAP, alpha=1.0).fit(X[:40], Y[:40])
    model.forget(X[[3, 17]], Y[[3, 17]])
    stay = np.delete(np.arange(40), [3, 17])
    never = OnePassRegressor(MAP, alpha=1.0).fit(X[stay], Y[stay])
    np.testing.assert_allclose(model.predict(X), never.predict(X), rtol=1e-12, atol=1e-12)
    assert model._stream.n_kept == 38


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, np.float32])
def test_no_row_that_is_forgotten_stays(kind, tmp_path):
    """One row is kept to tell maps apart; it is replaced if it is to be forgotten."""
    rows = kind(X)
    model = OnePassRegressor(MAP, alpha=1.0).partial_fit(rows, Y)
    before = model._probe
    model.forget(rows[300:], Y[300:])
    assert model._probe is before
    model.forget(rows[:5], Y[:5])
    dense = model._probe.toarray() if sparse.issparse(model._probe) else model._probe
    assert np.abs(X - dense).max(axis=1).min() > 0.1
    model.merge(OnePassRegressor(MAP, alpha=1.0).fit(rows[:5], Y[:5]))
    other = FrozenEstimator(FourierFeatures(Gaussian(0.2), 64, random_state=1).fit(X))
    with pytest.raises(ValueError, match="different feature maps"):
        model.merge(OnePassRegressor(other, alpha=1.0).fit(rows[:5], Y[:5]))
    model.save(tmp_path / "model.craft", resumable=True)
    assert craftmaps.load(tmp_path / "model.craft").n_samples_seen_ == 300


def refused(model, match, *rows):
    before = model.sums(), model.predict(X)
    with pytest.raises(ValueError, match=match):
        model.forget(*rows)
    assert model.sums() == before[0]
    assert np.array_equal(model.predict(X), before[1])


def test_what_was_never_seen_is_refused():
    few = OnePassRegressor(MAP, alpha=1.0).fit(X[:40], Y[:40])
    refused(few, "row 1 of those to forget was never added", X[[3, 50]], Y[[3, 50]])
    refused(few, "row 0 of those to forget was never added", X[[3]], Y[[4]])
    refused(few, "row 1 of those to forget was never added", X[[3, 3]], Y[[3, 3]])
    refused(few, "more weight than they were added with", X[[3]], Y[[3]], [2.0])
    refused(few, "no row would be left", X[:40], Y[:40])
    many = OnePassRegressor(MAP, alpha=1.0).fit(X, Y)
    refused(many, "never added", X[:5], Y[:5] + 1000)
    refused(many, "never added", np.tile(X[:1], (100, 1)), np.tile(Y[:1], 100))
    refused(many, "too little would be left", X, Y)
    plain = OnePassRegressor(MAP, alpha=0.0).fit(X, Y)
    refused(plain, "alpha=0 is singular", X[60:], Y[60:])
    folds = OnePassRegressor(MAP, alpha=[0.1, 1.0]).fit(X, Y)
    refused(folds, "not known which fold", X[:5], Y[:5])
    fading = OnePassRegressor(MAP, alpha=1.0, decay=0.99).fit(X, Y)
    refused(fading, "decay does not know", X[:5], Y[:5])


def test_a_file_goes_on_forgetting(tmp_path):
    path = tmp_path / "model.craft"
    for model, y in learners(alpha=1.0):
        model.fit(X, y).save(path, resumable=True)
        again = craftmaps.load(path).forget(X[:100], y[:100])
        never = type(model)(MAP, alpha=1.0).fit(X[100:], y[100:])
        np.testing.assert_allclose(again.coef_, never.coef_, atol=1e-8)
        again.save(path, resumable=True)
        assert craftmaps.load(path).n_samples_seen_ == 500
        model.save(path)
        with pytest.raises(ValueError, match="no sums of its rows"):
            craftmaps.load(path).forget(X[:100], y[:100])


@pytest.mark.parametrize("alpha", [1.0, [0.1, 1.0, 10.0]])
@pytest.mark.parametrize("n_rows", [40, 600])  # fewer and more than features
@pytest.mark.parametrize("cuts", [[], [1, 2, 30]])
def test_decay_is_a_weight_for_each_row(alpha, n_rows, cuts):
    rows = X[:n_rows]
    given = np.random.default_rng(3).uniform(0.5, 2, n_rows)
    weights = given * 0.99 ** np.arange(n_rows - 1, -1, -1.0)
    for model, y in learners(alpha=alpha, decay=0.99):
        for part in np.split(np.arange(n_rows), cuts):
            model.partial_fit(X[part], y[part], sample_weight=given[part], **announced(model))
        by_weights = type(model)(MAP, alpha=alpha).fit(rows, y[:n_rows], weights)
        np.testing.assert_allclose(model.coef_, by_weights.coef_, rtol=1e-7, atol=1e-9)
        whole = type(model)(MAP, alpha=alpha, decay=0.99).fit(rows, y[:n_rows], given)
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-7, atol=1e-9)


def test_a_stream_that_changes_is_followed():
    model, still = OnePassRegressor(MAP, decay=0.97), OnePassRegressor(MAP)
    for learner in (model, still):
        learner.partial_fit(X, Y).partial_fit(X[:300], 5 - Y[:300])
    wanted = 5 - Y[300:]
    assert np.mean((model.predict(X[300:]) - wanted) ** 2) < 0.1 * np.var(wanted)
    assert np.mean((still.predict(X[300:]) - wanted) ** 2) > np.var(wanted)


def test_the_sample_of_a_fading_stream_is_recent():
    """A row of weight w stays with probability 1 - exp(-0.59 w), by which 1,024 rows are kept."""
    stream = OnePassRegressor(alpha=1.0, decay=1 - 1 / 2000)
    places = np.arange(100_000.0)
    stream.fit(places[:, None] / 1e5, places)
    age = 1e5 - stream._stream.sample.labels[:, 0]
    assert len(age) == 1024
    for limit in (200, 2000, 8000):
        chances = 1 - np.exp(-0.59 * np.exp(-np.arange(limit) / 2000))
        deviation = np.sqrt(np.sum(chances * (1 - chances)))
        assert abs((age <= limit).sum() - chances.sum()) < 5 * deviation


def test_decay_is_checked_and_is_for_one_stream():
    for decay in (0, 1.5, -1, "slow"):
        with pytest.raises(ValueError, match="decay must be None or a number above 0, at most 1"):
            OnePassRegressor(MAP, decay=decay).fit(X, Y)
    with pytest.raises(ValueError, match="partitions have no order"):
        fold.check_estimator(OnePassRegressor(MAP, decay=0.9))
    fold.check_estimator(OnePassRegressor(MAP, decay=1))
