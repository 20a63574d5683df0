"""The comparison of maps measures what it says."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from craftmaps import (
    CraftMap,
    Nystroem,
    OnePassClassifier,
    Polynomial,
    ScaledMap,
    TensorSketch,
)
from craftmaps.diagnose import compare, gram_error
from craftmaps.diagnose.compare import pareto_front

KERNEL = Polynomial(degree=5)


@pytest.fixture(scope="module")
def data():
    X, y = load_digits(return_X_y=True)
    return normalize(X), y


@pytest.fixture(scope="module")
def found(data):
    maps = {"craft": CraftMap(KERNEL), "sketch": TensorSketch(KERNEL)}
    return compare(*data, maps, n_components=(32, 128), seeds=2)


def test_errors_and_sizes_are_those_of_the_models(data, found):
    X, X_test, y, y_test = train_test_split(*data, test_size=0.25, random_state=0)
    errors = []
    for seed in (0, 1):
        model = OnePassClassifier(CraftMap(KERNEL, 128, random_state=seed)).fit(X, y)
        errors.append(1 - model.score(X_test, y_test))
    row = next(row for row in found.rows if (row.name, row.n_components) == ("craft", 128))
    assert row.error == pytest.approx(np.mean(errors))
    assert row.error_spread == pytest.approx(np.std(errors, ddof=1))
    expected = gram_error(CraftMap(KERNEL, 128), X_test, "frobenius", seeds=5)
    assert row.kernel_error == pytest.approx(expected.value, rel=0.25)
    needed = (model.feature_map_, model.coef_.astype(np.float32), model.intercept_)
    assert row.model_bytes == len(pickle.dumps(needed))
    assert row.peak_bytes > 8 * 128**2


def test_table_frame_and_plot(found, tmp_path):
    lines = str(found).splitlines()
    assert len(lines) == 5
    assert "craft" in lines[1]
    frame = found.to_frame()
    assert frame.shape == (4, 9)
    assert frame.groupby("name").error.min()["craft"] == min(
        row.error for row in found.rows if row.name == "craft"
    )
    figure = found.plot(tmp_path / "compare.png")
    assert (tmp_path / "compare.png").stat().st_size > 10_000
    assert [axes.get_xlabel() for axes in figure.axes] == ["training, seconds", "model, kB"]


def test_a_size_is_the_number_of_columns_that_came_out(data):
    X, y = data
    found = compare(X[:80], y[:80], Nystroem(KERNEL), n_components=(16, 500), seeds=1)
    assert [row.n_components for row in found.rows] == [16, 60]


def test_maps_with_a_map_inside(data):
    X, y = data
    found = compare(X, y, ScaledMap(CraftMap(KERNEL)), n_components=np.int64(32), seeds=2)
    assert [row.n_components for row in found.rows] == [32]
    errors = gram_error(ScaledMap(CraftMap(KERNEL, 32, random_state=0)), X, seeds=4).values
    assert len(set(errors)) == 4


def test_wrong_calls(data):
    with pytest.raises(ValueError, match="task must be one of"):
        compare(*data, CraftMap(KERNEL), 32, task="classify")
    with pytest.raises(ValueError, match="nothing to compare"):
        compare(*data, {}, 32)


def test_pareto_front():
    cost = np.array([1.0, 2.0, 3.0, 4.0, 1.0])
    error = np.array([5.0, 6.0, 2.0, 2.0, 7.0])
    assert pareto_front(cost, error) == [0, 2]


def test_regression(data):
    X, _ = data
    found = compare(X, X[:, 10] * X[:, 20] + 0.5, CraftMap(KERNEL), n_components=64, seeds=1)
    assert not found.classification
    assert found.rows[0].error < 1
    assert "CraftMap" in str(found)
