"""Fits of several passes that are stopped and go on: the same model, with fewer passes to make."""

import numpy as np
import pytest
from numba.core import config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from craftmaps import KernelClassifier, KernelRegressor, Polynomial, RandomMaclaurin
from craftmaps.learn import rows_again

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1500, 5))
LABELS = (X[:, 0] * X[:, 1] > 0) + 1 * (X[:, 2] > 1)
NUMBERS = X[:, 0] * X[:, 1] + 0.1 * RNG.standard_normal(1500)


class Blocks:
    """Blocks that can be iterated again, and that stop the process at one of these times."""

    def __init__(self, y, stop_at=None, X=X):
        self._X, self._y, self._stop_at = X, y, stop_at
        self.times = 0

    def __iter__(self):
        self.times += 1
        if self.times == self._stop_at:
            raise KeyboardInterrupt
        step = len(self._X) // 3
        for start in range(0, len(self._X), step):
            yield self._X[start : start + step], self._y[start : start + step]


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
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    again = Blocks(y)
    same = kind(drawn, **options).fit_blocks(again, checkpoint=tmp_path)
    assert again.times == 1  # to see that they are the same
    np.testing.assert_array_equal(same.coef_, model.coef_)


LOSSES = [(KernelClassifier, "log"), (KernelRegressor, "huber"), (KernelRegressor, "quantile")]


@pytest.mark.parametrize(("kind", "loss"), LOSSES)
def test_a_stopped_fit_on_several_threads_goes_on_to_the_same_bytes(
    tmp_path, monkeypatch, kind, loss
):
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 4)
    many = np.random.default_rng(1).standard_normal((9000, 5))
    y = many[:, 0] * many[:, 1] if kind is KernelRegressor else many[:, 0] * many[:, 1] > 0.1
    feature_map = RandomMaclaurin(Polynomial(2), 60, random_state=0)
    model = kind(feature_map, loss=loss, alpha=[1.0, 100.0])
    unstopped = clone(model).fit_blocks(Blocks(y, X=many))
    for stop_at in (4, 9):
        folder = tmp_path / str(stop_at)
        with pytest.raises(KeyboardInterrupt):
            clone(model).fit_blocks(Blocks(y, stop_at, many), checkpoint=folder, checkpoint_every=0)
        resumed = clone(model).fit_blocks(Blocks(y, X=many), checkpoint=folder)
        resumed.save(tmp_path / "resumed.craft")
        unstopped.save(tmp_path / "unstopped.craft")
        expected = (tmp_path / "unstopped.craft").read_bytes()
        assert (tmp_path / "resumed.craft").read_bytes() == expected


def test_other_rows_are_refused(tmp_path):
    feature_map = RandomMaclaurin(Polynomial(2), 30, random_state=0)
    KernelClassifier(feature_map, alpha=1.0).fit_blocks(Blocks(LABELS), checkpoint=tmp_path)
    other = np.roll(LABELS, 1)
    with pytest.raises(ValueError, match="has learned from 1500 rows, but the 1500 rows given now"):
        KernelClassifier(feature_map, alpha=1.0).fit_blocks(Blocks(other), checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"was made with alpha=1\.0, not 2\.0"):
        KernelClassifier(feature_map, alpha=2.0).fit_blocks(Blocks(LABELS), checkpoint=tmp_path)
