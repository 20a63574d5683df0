"""Ridge classification with all rows for landmarks, against a direct solution and the learner."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from craftmaps import Gaussian, MetricMap, Nystroem, OnePassClassifier, Polynomial
from reproduction import classification, dual

pytestmark = pytest.mark.delicate

X, Y = load_digits(return_X_y=True)
UNIT = normalize(X).astype(np.float32)
TRAIN, TEST = slice(900), slice(900, None)


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_coefficients_are_those_of_a_direct_solution(alpha):
    kernel, rng = Polynomial(5), np.random.default_rng(0)
    rows, targets = UNIT[:500], rng.normal([0, 5, -100], size=(500, 3))
    coef, intercept = dual.dual_ridge(kernel, rows, targets, alpha)
    centre = np.eye(500) - 1 / 500
    K = kernel(rows.astype(np.float64))
    expected = np.linalg.solve(centre @ K @ centre + alpha * np.eye(500), centre @ targets)
    predicted = K @ expected + (targets - K @ expected).mean(axis=0)
    found = K @ coef + intercept
    np.testing.assert_allclose(found, predicted, atol=1e-3)
    without = K @ np.linalg.solve(K + alpha * np.eye(500), targets)
    assert np.abs(without - predicted).max() > 10 * np.abs(found - predicted).max()


def test_a_penalty_that_single_precision_does_not_see_is_refused():
    with pytest.raises(ValueError, match=r"alpha=0.001 is lost .* give at least 0\.0019"):
        dual.dual_ridge(Polynomial(5), UNIT[:500], np.ones((500, 1)), 1e-3)


@pytest.mark.parametrize("kind", ["pixels", "metric", "scaled"])
@pytest.mark.parametrize("codes", ["one-vs-rest", "random"])
def test_predictions_are_those_of_as_many_landmarks(kind, codes):
    def model(n_landmarks):
        kernel = Gaussian(0.02) if kind == "scaled" else Polynomial(5)
        inner = Nystroem(kernel, n_landmarks, landmarks="kmeans", random_state=0)
        learner = OnePassClassifier(
            MetricMap(inner, power=0.25) if kind == "metric" else inner,
            alpha=0.1,
            codes=codes,
            n_bits=None if codes == "one-vs-rest" else 60,
            random_state=0,
        )
        first = StandardScaler() if kind == "scaled" else "passthrough"
        return make_pipeline(first, learner)

    rows = X if kind == "scaled" else UNIT.astype(np.float64)
    found = dual.predictions(
        model(60).fit(rows[TRAIN], Y[TRAIN]), rows[TRAIN], Y[TRAIN], rows[TEST]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model(900).fit(rows[TRAIN], Y[TRAIN]).predict(rows[TEST])
        few = model(60).fit(rows[TRAIN], Y[TRAIN]).predict(rows[TEST])
    assert np.mean(found != expected) < 0.003
    assert np.mean(few != expected) > 0.01


def test_a_run_with_as_many_landmarks_as_many_rows(monkeypatch):
    """The dual is solved where rows are many, and has about the error of their features."""
    run = {"measure": "classification", "data": "digits", "degree": 5, "bits": 50, "size": 2000}
    runs = [run | {"method": method, "seed": 0} for method in ("Exact", "Nystroem k-means")]
    calls, solve = [], dual.dual_ridge
    monkeypatch.setattr(dual, "dual_ridge", lambda *args: calls.append(args) or solve(*args))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        direct = [classification.measure(one) for one in runs]
        assert not calls
        monkeypatch.setattr(classification, "MANY", 500)
        monkeypatch.setattr(classification, "_SIZE_OF_ALPHA", 300)
        solved = [classification.measure(one) for one in runs]
        assert len(calls) == 2
        classification.measure(run | {"method": "CRAFT v2", "seed": 0})  # has no landmarks
        assert len(calls) == 2
    for one, other in zip(solved, direct, strict=True):
        assert one["error"] < other["error"] + 1
