"""A window over a stream: as if older blocks had never come."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

import craftmaps
from craftmaps import (
    FourierFeatures,
    Gaussian,
    KernelPCA,
    KernelRegressor,
    OnePassClassifier,
    OnePassRegressor,
    Window,
)

X = np.random.default_rng(0).standard_normal((700, 3))
Y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(700)
LABELS = np.array(["low", "high"])[(Y > 0).astype(int)]
MAP = FrozenEstimator(FourierFeatures(Gaussian(0.3), 64, random_state=0).fit(X))
BLOCKS = [slice(start, start + 100) for start in range(0, 700, 100)]
LEARNERS = {
    "regressor": (OnePassRegressor(MAP, block_rows=30), Y),
    "classifier": (OnePassClassifier(MAP, alpha=1.0), LABELS),
    "folds": (OnePassRegressor(MAP, alpha=[0.01, 1.0], n_folds=3), Y),
    "squared": (KernelRegressor(MAP, alpha=1.0), Y),
    "components": (KernelPCA(MAP, 3), Y),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_older_blocks_are_as_if_never_seen(name, tmp_path):
    estimator, y = LEARNERS[name]
    window = Window(estimator, n_blocks=3)
    for i, rows in enumerate(BLOCKS):
        window.partial_fit(X[rows], y[rows], classes=np.unique(y) if y is LABELS else None)
        if i == 4:  # and goes on from a file
            window.save(tmp_path / "window.craft")
            window = craftmaps.load(tmp_path / "window.craft")
        model = window.model()
        seen = slice(BLOCKS[max(0, i - 2)].start, rows.stop)
        assert model.n_samples_seen_ == seen.stop - seen.start
        expected = type(estimator)(**estimator.get_params(deep=False)).fit(X[seen], y[seen])
        if name == "components":
            found, wanted = model.explained_variance_, expected.explained_variance_
        else:
            found, wanted = model.coef_, expected.coef_
        np.testing.assert_allclose(found, wanted, atol=1e-7)
    assert not hasattr(estimator, "_stream")


def test_a_model_is_the_users_own():
    window = Window(OnePassRegressor(MAP, alpha=1.0), 2).partial_fit(X[:300], Y[:300])
    before = window.model().predict(X)
    window.model().partial_fit(X, Y).forget(X[:100], Y[:100])
    assert np.array_equal(window.model().predict(X), before)
    with pytest.raises(ValueError, match="NaN"):
        window.partial_fit(np.full((2, 3), np.nan), Y[:2])
    assert np.array_equal(window.model().predict(X), before)


def test_complaints():
    for wrong in (FourierFeatures(), KernelRegressor(MAP, loss="huber"), None):
        with pytest.raises(ValueError, match="learners with partial_fit and merge"):
            Window(wrong)
    with pytest.raises(ValueError, match="decay=None"):
        Window(OnePassRegressor(MAP, decay=0.9))
    for n_blocks in (0, 1.5):
        with pytest.raises(ValueError, match="n_blocks must be an integer of at least 1"):
            Window(OnePassRegressor(MAP), n_blocks)
    with pytest.raises(NotFittedError, match="call partial_fit first"):
        Window(OnePassRegressor(MAP)).model()
