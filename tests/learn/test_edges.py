"""Weights, seeds and values at the edge of floating point: a result, or one sentence."""

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning

from craftmaps import (
    FourierFeatures,
    Gaussian,
    KernelRegressor,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
    TensorSketch,
)

X = np.random.default_rng(0).standard_normal((60, 4))
Y = X[:, 0]
SKETCH = TensorSketch(Polynomial(2), 30, random_state=0)
LEARNERS = [
    OnePassRegressor(SKETCH),
    OnePassRegressor(SKETCH, alpha=1.0),
    KernelRegressor(SKETCH, loss="huber", alpha=1.0),
    OnePassClassifier(SKETCH),
]
every_learner = pytest.mark.parametrize("learner", LEARNERS)
MAPS = [
    SKETCH,
    RandomMaclaurin(Polynomial(2), 30, random_state=0),
    FourierFeatures(Gaussian("scale"), 20, random_state=0),
    FourierFeatures(Gaussian("median"), 20, random_state=0),
    Nystroem(Gaussian("scale"), 10, random_state=0),
    ScaledMap(SKETCH, columns="standard"),
]


def fitted(learner, weights):
    y = Y > 0 if isinstance(learner, OnePassClassifier) else Y
    return learner.fit(X, y, sample_weight=weights)


@every_learner
@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e300, 1e308])
def test_weights_that_are_all_at_an_edge_get_a_sentence(learner, weight):
    with pytest.raises(ValueError, match=r"largest sample_weight is .*divide all weights"):
        fitted(learner, np.full(60, weight))
    with pytest.raises(
        ValueError, match=r"largest sample_weight|weights of all rows|weight of all"
    ):
        fitted(learner, np.where(np.arange(60) < 2, weight, 0.0))


@every_learner
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, -5e-324])
def test_numbers_that_are_no_weights_are_named_with_their_row(learner, weight):
    weights = np.where(np.arange(60) == 7, weight, 1.0)
    with pytest.raises(ValueError, match=f"finite and not negative, and is {weight} for row 7"):
        fitted(learner, weights)


@pytest.mark.parametrize("learner", LEARNERS[1:3])  # alpha is given
def test_a_weight_of_next_to_nothing_beside_others_counts_nothing(learner):
    tiny, none = (np.where(np.arange(60) == 7, weight, 1.0) for weight in (5e-324, 0.0))
    np.testing.assert_allclose(
        fitted(learner, tiny).coef_, fitted(learner, none).coef_, rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("seed", [-1, 2**32, 2**70, 1e300, 5e-324, "one"])
def test_seeds_that_are_none_get_a_sentence(seed):
    for estimator in (
        RandomMaclaurin(Polynomial(2), 30, random_state=seed),
        OnePassClassifier(codes="random", n_bits=8, random_state=seed),
    ):
        with pytest.raises(ValueError, match=r"random_state must be .*, got "):
            estimator.fit(X, Y > 0)


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("value", [1e300, 1e308, -1e300])
def test_values_whose_squares_overflow_get_a_sentence(feature_map, value):
    rows = X.copy()
    rows[3, 1] = value
    with pytest.raises(ValueError, match=r"values up to 1e\+30.*divide them"):
        feature_map.fit(rows, Y)
    with pytest.raises(ValueError, match=r"values up to 1e\+30.*divide them"):
        OnePassRegressor(feature_map).fit(rows, Y)


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("value", [5e-324, 1e-300])
def test_values_next_to_zero_are_learned_from(feature_map, value):
    rows = X.copy()
    rows[3, 1] = value
    assert np.isfinite(OnePassRegressor(feature_map).fit(rows, Y).predict(rows)).all()


@pytest.mark.parametrize("learner", LEARNERS[:3])
def test_targets_whose_squares_overflow_get_a_sentence(learner):
    for targets in (Y * 1e300, np.where(np.arange(60) == 3, 1e300, Y)):
        with pytest.raises(ValueError, match=r"y has values up to .*divide them"):
            learner.fit(X, targets)


@pytest.mark.parametrize("scale", [1e-160, 1e-156])
def test_rows_whose_squares_are_next_to_zero_get_a_sentence(scale):
    with pytest.warns(LinAlgWarning, match="singular to working precision"):
        model = OnePassRegressor().fit(X * scale, Y)
    assert np.isfinite(model.predict(X * scale)).all()


def test_alpha_is_chosen_for_rows_whose_squares_are_next_to_the_largest_number():
    assert np.isfinite(OnePassRegressor().fit(X * 1e150, Y).predict(X * 1e150)).all()
    with pytest.raises(ValueError, match="too large"):
        OnePassRegressor().fit(X * 5e152, Y)
