"""Which rows need products in double precision, and that a stream settles it once."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from craftmaps import FourierFeatures, Gaussian, OnePassClassifier, load
from craftmaps.learn import row_sums
from craftmaps.learn.solvers import choose
from craftmaps.learn.solvers.precision import loses_directions

pytestmark = pytest.mark.delicate


def features(n_columns, n_rows=1500, dtype=np.float32):
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns)).astype(dtype)
    return FourierFeatures(Gaussian("median"), 2000, random_state=0).fit_transform(X)


def test_few_columns_need_double_products_and_many_do_not():
    assert loses_directions(features(3))
    assert not loses_directions(features(100))
    assert not loses_directions(features(3, dtype=np.float64) * 1e-9 + features(100).astype(float))


def test_scale_offset_and_some_equal_rows_do_not_matter():
    Z = features(100)
    assert not loses_directions(1e-6 * Z)
    assert not loses_directions(Z + 10)
    Z[:200] = Z[200]  # rows without a direction of their own
    assert not loses_directions(Z)


def test_few_rows_do_not_tell():
    assert loses_directions(features(100)[:100])


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_features_that_are_not_finite_are_left_to_the_sums(wrong):
    Z = features(3)
    Z[5, 6] = wrong
    assert not loses_directions(Z)


@pytest.fixture
def looked(monkeypatch):
    """How many times rows are looked at, though features are few."""
    calls = []
    monkeypatch.setattr(choose, "DOUBLE_PRECISION_FEATURES", 0)
    monkeypatch.setattr(row_sums, "loses_directions", lambda Z: calls.append(len(Z)) or True)
    return calls


def test_the_first_rows_settle_it_for_all(looked, tmp_path):
    X, y = load_digits(return_X_y=True)
    model = OnePassClassifier(alpha=1.0, block_rows=600).fit(X.astype(np.float32), y)
    assert looked == [600]
    assert model._stream.folds[0].precision == np.float64
    model.save(tmp_path / "model", resumable=True)
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        again.partial_fit(X[:700].astype(np.float32), y[:700])
        again.merge(model)
    assert model._stream.emptied()._doubles
    OnePassClassifier(alpha=1.0, block_rows=600).fit(X, y)  # in float64 there is nothing to settle
    assert looked == [600]
