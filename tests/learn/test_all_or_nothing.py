"""A partial_fit that fails changes nothing, whatever made it fail, and can be repeated."""

import signal
import threading
import time
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from craftmaps import NormalEquations, OnePassClassifier, OnePassRegressor

N, BLOCK_ROWS = 120, 32  # a block of rows fills the buffer several times


class Root(TransformerMixin, BaseEstimator):
    """Makes NaN of a negative entry."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        with np.errstate(invalid="ignore"):
            return np.sqrt(X)


class Interrupting(Root):
    """Sends Ctrl-C to its own process when it meets a row that begins with 0.5."""

    def transform(self, X):
        if (X[:, 0] == 0.5).any():
            signal.raise_signal(signal.SIGINT)
        return super().transform(X)


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6)) + 0.6
    return X, rng.integers(0, 3, n)


def state_of(learner):
    """Everything that the learner holds, as plain values; solving changes it, so it is a copy."""
    if not hasattr(learner, "_stream"):
        return sorted(vars(learner))
    stream = deepcopy(learner._stream).__getstate__()
    sums = [fold.to_arrays() for fold in stream.pop("folds")]
    sample = vars(stream.pop("sample"))
    solution = stream.pop("solution")
    stream["encode"] = type(stream["encode"]).__name__
    stream["feature_map"] = repr(stream["feature_map"])
    stream["solution"] = None if solution is None else solution.coef
    fitted = {
        name: vars(learner)[name]
        for name in ("classes_", "_n_targets", "_probe")
        if name in vars(learner)
    }
    return {"stream": stream, "sums": sums, "sample": sample, "fitted": fitted}


def assert_same(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)  # to the last bit
    else:
        assert one == other


def bad_feature(X, y):
    X = X.copy()
    X[-3, 2] = -1.0
    return {"X": X, "y": y}, ValueError


def huge_feature(X, y):
    X = X.copy()
    X[-3, 2] = 1e308
    return {"X": X * [1, 1, 1e308, 1, 1, 1], "y": y}, ValueError


def bad_label(X, y):
    return {"X": X, "y": np.where(np.arange(len(y)) == len(y) - 2, 7, y)}, ValueError


def bad_weight(X, y):
    weights = np.ones(len(y))
    weights[-1] = -1.0
    return {"X": X, "y": y, "sample_weight": weights}, ValueError


def new_class_and_bad_feature(X, y):
    return bad_feature(X, y)[0] | {"classes": [0, 1, 2, 3]}, ValueError


def interrupted(X, y):
    X = X.copy()
    X[-1, 0] = 0.5
    return {"X": X, "y": y}, KeyboardInterrupt


FAULTS = [bad_feature, huge_feature, bad_weight, interrupted]
LATER_FAULTS = [bad_label, new_class_and_bad_feature]  # the first block may have any labels
BEGINNINGS = [0, 20, N]  # nothing yet, rows in the buffer, rows in the sums
CASES = [(fault, before) for fault in FAULTS for before in BEGINNINGS]
CASES += [(fault, before) for fault in LATER_FAULTS for before in BEGINNINGS[1:]]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("alpha", [0.1, "auto", (0.1, 1.0)])
@pytest.mark.parametrize(("fault", "before"), CASES)
def test_a_failed_partial_fit_changes_nothing(fault, before, alpha):
    X, y = rows(2 * N)
    first, then = slice(before), slice(N, None)

    def begun():
        learner = OnePassClassifier(Interrupting(), alpha=alpha, block_rows=BLOCK_ROWS)
        return learner.partial_fit(X[first], y[first], classes=[0, 1, 2]) if before else learner

    learner, untouched = begun(), begun()
    state = state_of(learner)
    arguments, error = fault(X[then], y[then])
    for _ in range(2):
        with pytest.raises(error):
            learner.partial_fit(**arguments)
        assert_same(state_of(learner), state)
    for either in (learner, untouched):
        either.partial_fit(X[then], y[then], classes=[0, 1, 2])
    assert learner.n_samples_seen_ == before + N
    np.testing.assert_array_equal(learner.coef_, untouched.coef_)
    np.testing.assert_array_equal(learner.predict_proba(X), untouched.predict_proba(X))


@pytest.mark.parametrize("before", [20, N])
def test_a_failed_partial_fit_of_a_learner_that_fades_changes_nothing(before):
    X, y = rows(2 * N)
    learner = OnePassRegressor(Root(), alpha=1.0, decay=0.99, block_rows=BLOCK_ROWS)
    learner.partial_fit(X[:before], y[:before])
    state = state_of(learner)
    with pytest.raises(ValueError, match="not finite"):
        learner.partial_fit(bad_feature(X, y)[0]["X"], y)
    assert_same(state_of(learner), state)


@pytest.mark.parametrize("before", [5, N])  # rows in the buffer, rows in the sums
def test_a_failed_forget_changes_nothing(before):
    X, y = rows(2 * N)
    learner = OnePassRegressor(alpha=1.0, block_rows=BLOCK_ROWS)
    learner.partial_fit(X[:before], y[:before])
    state = state_of(learner)
    with pytest.raises(ValueError, match=r"never|left|more|rows"):
        learner.forget(X[:before] + 5.0, y[:before])
    assert_same(state_of(learner), state)


def test_a_failed_partial_fit_of_a_regressor_changes_nothing():
    X, y = rows(2 * N)
    learner = OnePassRegressor(Root(), block_rows=BLOCK_ROWS).partial_fit(X[:50], y[:50])
    known = learner.coef_.copy()
    with pytest.raises(ValueError, match="not finite"):
        learner.partial_fit(bad_feature(X, y)[0]["X"], y)
    assert learner.solution_ is learner.solution_
    np.testing.assert_array_equal(learner.coef_, known)
    assert learner.n_samples_seen_ == 50


@pytest.mark.slow
@pytest.mark.parametrize("question", ["partial_fit", "predict", "merge"])
def test_an_interruption_at_any_moment_changes_nothing(question):
    """A signal after each of many delays, which reach every step of learning and of solving."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, 150)), rng.standard_normal(4000)
    other = OnePassRegressor(alpha=1.0, block_rows=256).partial_fit(X, y)
    asks = {
        "partial_fit": lambda learner: learner.partial_fit(X, y),
        "predict": lambda learner: learner.predict(X[:5]),
        "merge": lambda learner: learner.merge(other),
    }

    def begun():
        return OnePassRegressor(alpha=1.0, block_rows=256).partial_fit(X[:1000], y[:1000])

    def seconds():
        learner, start = begun(), time.perf_counter()
        asks[question](learner)
        return time.perf_counter() - start

    interrupted, longest = 0, 1.5 * min(seconds() for _ in range(5))
    for delay in np.linspace(0, longest, 60):
        learner = begun()
        state = state_of(learner)
        timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()
            asks[question](learner)
            timer.cancel()
            timer.join()
        except KeyboardInterrupt:
            interrupted += 1
            timer.join()
            if learner.n_samples_seen_ == 1000 and learner._stream.solution is None:
                assert_same(state_of(learner), state)
                asks[question](learner)
        expected = begun()
        asks[question](expected)
        np.testing.assert_array_equal(learner.coef_, expected.coef_)
    assert interrupted > 5


def test_a_failed_fit_of_blocks_leaves_no_model():
    X, y = rows()
    learner = OnePassClassifier(Root(), block_rows=BLOCK_ROWS)
    with pytest.raises(ValueError, match="not finite"):
        learner.fit_blocks([(X, y), (bad_feature(X, y)[0]["X"], y)])
    assert not hasattr(learner, "_stream")


def test_other_threads_predict_from_the_old_model_while_rows_are_added():
    X, y = rows()
    inside, go_on = threading.Event(), threading.Event()

    class Waiting(Root):
        def transform(self, X):
            if threading.current_thread() is adding:
                inside.set()
                go_on.wait(60)
            return super().transform(X)

    adding = None
    learner = OnePassClassifier(Waiting()).fit(X, y)
    before = learner.predict_proba(X)
    adding = threading.Thread(target=lambda: learner.partial_fit(X[::-1], y))
    adding.start()
    assert inside.wait(60)
    np.testing.assert_array_equal(learner.predict_proba(X), before)
    go_on.set()
    adding.join()
    assert learner.n_samples_seen_ == 2 * N
    assert np.abs(learner.predict_proba(X) - before).max() > 1e-3


@pytest.mark.parametrize("value", [np.nan, 1e200])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_sums_take_all_rows_or_none(value):
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((10_000, 5)), rng.standard_normal(10_000)
    sums = NormalEquations().update(Z[:50], y[:50])
    before = sums.to_arrays()
    Z[9_000, 3] = value
    with pytest.raises(ValueError, match="not finite"):
        sums.update(Z, y)
    assert_same(sums.to_arrays(), before)
