"""Fits of several passes that are stopped and go on: the same model, with fewer passes to make."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from craftmaps import KernelClassifier, KernelRegressor, Polynomial, RandomMaclaurin
from craftmaps.learn import rows_again

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1500, 5))
LABELS = (X[:, 0] * X[:, 1] > 0) + 1 * (X[:, 2] > 1)
NUMBERS = X[:, 0] * X[:, 1] + 0.1 * RNG.standard_normal(1500)


class Blocks:
    """Blocks that can be iterated again, and that stop the process at one of these times."""

    def __init__(self, y, stop_at=None):
        self._y, self._stop_at = y, stop_at
        self.times = 0

    def __iter__(self):
        self.times += 1
        if self.times == self._stop_at:
            raise KeyboardInterrupt
        for start in range(0, len(X), 400):
            yield X[start : start + 400], self._y[start : start + 400]


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch):
    """Features are made again in each pass, so that each pass reads the blocks."""
    monkeypatch.setattr(rows_again, "available_bytes", lambda: 1000)


MODELS = [(KernelClassifier, {}, LABELS), (KernelRegressor, {"loss": "huber"}, NUMBERS)]


@pytest.mark.parametrize(("kind", "options", "y"), MODELS)
def test_a_stopped_fit_goes_on_to_the_same_model(tmp_path, kind, options, y):
    drawn = RandomMaclaurin(Polynomial(2), 30, projection="gaussian")  # without random_state
    with pytest.raises(KeyboardInterrupt):
        kind(drawn, **options).fit_blocks(
            Blocks(y, stop_at=15), checkpoint=tmp_path, checkpoint_every=0
        )
    rest = Blocks(y)
    model = kind(drawn, **options).fit_blocks(rest, checkpoint=tmp_path, checkpoint_every=0)
    whole = Blocks(y)
    expected = kind(FrozenEstimator(model.feature_map_), **options).fit_blocks(whole)
    assert rest.times < whole.times - 8
    assert model.n_passes_ == expected.n_passes_
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-8)
    again = Blocks(y)
    same = kind(drawn, **options).fit_blocks(again, checkpoint=tmp_path)
    assert again.times == 1  # to see that they are the same
    np.testing.assert_array_equal(same.coef_, model.coef_)


def test_other_rows_are_refused(tmp_path):
    feature_map = RandomMaclaurin(Polynomial(2), 30, random_state=0)
    KernelClassifier(feature_map, alpha=1.0).fit_blocks(Blocks(LABELS), checkpoint=tmp_path)
    other = np.roll(LABELS, 1)
    with pytest.raises(ValueError, match="has learned from 1500 rows, and the 1500 rows that are"):
        KernelClassifier(feature_map, alpha=1.0).fit_blocks(Blocks(other), checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"has alpha=1\.0, and here it is 2\.0"):
        KernelClassifier(feature_map, alpha=2.0).fit_blocks(Blocks(LABELS), checkpoint=tmp_path)
