"""Rows taken out of sums: as if they had never been there, or refused before anything changes."""

import numpy as np
import pytest

from craftmaps import NormalEquations
from craftmaps.learn.removal import places_of

pytestmark = pytest.mark.delicate

SUMS = ("hessian", "gradient", "y_square", "z_mean", "y_mean")


def data(n_rows=400, n_features=17, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_rows, n_features)) * rng.uniform(0.01, 10, n_features) + offset
    return Z, rng.standard_normal((n_rows, 2)) + offset, rng.uniform(0.1, 3, n_rows)


def assert_same(found, expected, tolerance=1e-10):
    assert found.n_rows == expected.n_rows
    assert found.weight == pytest.approx(expected.weight, rel=1e-12)
    for name in SUMS:
        wanted = getattr(expected, name)
        assert np.abs(getattr(found, name) - wanted).max() <= tolerance * np.abs(wanted).max(), name


@pytest.mark.parametrize("n_removed", [1, 100, 390])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_subtracting_is_never_having_added(n_removed, offset):
    Z, Y, weights = data(offset=offset)
    whole = NormalEquations().update(Z, Y, weights)
    gone, rest = slice(0, n_removed), slice(n_removed, None)
    part = NormalEquations().update(Z[gone], Y[gone], weights[gone])
    before = part.to_arrays()
    whole.subtract(part)
    assert_same(whole, NormalEquations().update(Z[rest], Y[rest], weights[rest]), 1e-9)
    for name, array in part.to_arrays()[0].items():
        assert np.array_equal(array, before[0][name])


@pytest.mark.parametrize("n_features", [5, 64, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_window_does_not_drift(n_features, dtype):
    """Two hundred blocks enter and leave; nothing is refused, and the last ten are what is left."""
    rng = np.random.default_rng(1)
    blocks = [rng.random((40, n_features)).astype(dtype) for _ in range(200)]
    targets = [rng.standard_normal(40) for _ in blocks]
    sums = NormalEquations()
    for i, (Z, y) in enumerate(zip(blocks, targets, strict=True)):
        sums.update(Z, y)
        if i >= 10:
            sums.subtract(NormalEquations().update(blocks[i - 10], targets[i - 10]))
    expected = NormalEquations().update(np.concatenate(blocks[-10:]), np.concatenate(targets[-10:]))
    assert_same(sums, expected, 1e-4 if dtype == np.float32 else 1e-11)


def refused(sums, part):
    before = sums.to_arrays()
    with pytest.raises(ValueError, match=r"never added|too little would be left"):
        sums.subtract(part)
    arrays, metadata = sums.to_arrays()
    assert metadata == before[1]
    for name, array in arrays.items():
        assert np.array_equal(array, before[0][name])


def test_rows_that_cannot_be_there_are_refused():
    Z, Y, _ = data()
    sums = NormalEquations().update(Z, Y)
    refused(sums, NormalEquations().update(100 * Z[:1], Y[:1]))
    refused(sums, NormalEquations().update(Z[:1], 100 * Y[:1]))
    refused(sums, NormalEquations().update(Z[:200] + 3 * Z.std(axis=0), Y[:200]))
    refused(sums, NormalEquations().update(Z[:1], Y[:1], [300.0]))  # more often than it came
    refused(sums, NormalEquations().update(Z, Y))  # nothing would be left
    refused(sums, NormalEquations().update(np.tile(Z, (2, 1)), np.tile(Y, (2, 1))))
    sums.subtract(NormalEquations().update(Z[:1], Y[:1]))  # which was there


def test_fewer_rows_than_features_show_every_stranger():
    Z, Y, _ = data(n_rows=20, n_features=60)
    sums = NormalEquations().update(Z[:19], Y[:19])
    refused(sums, NormalEquations().update(Z[19:], Y[19:]))
    sums.subtract(NormalEquations().update(Z[18:19], Y[18:19]))
    refused(sums, NormalEquations().update(Z[18:19], Y[18:19]))  # a second time


def test_scaling_is_weighting():
    Z, Y, weights = data()
    scaled = NormalEquations().update(Z, Y, weights).scale(0.25)
    assert_same(scaled, NormalEquations().update(Z, Y, weights / 4))
    assert NormalEquations().scale(0.5).weight == 0
    for factor in (-1, np.nan, "half"):
        with pytest.raises(ValueError, match="factor must be a number of at least 0"):
            scaled.scale(factor)


def test_other_sizes_are_named():
    Z, Y, _ = data()
    with pytest.raises(ValueError, match="17 features and 2 targets"):
        NormalEquations().update(Z, Y).subtract(NormalEquations().update(Z[:, 1:], Y))
    sums = NormalEquations().update(Z, Y)
    assert_same(sums.subtract(NormalEquations()), NormalEquations().update(Z, Y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_found_once_each(dtype):
    Z, Y, _ = data(n_rows=50)
    Z = Z.astype(dtype)
    Z[7], Y[7] = Z[3], Y[3]
    wanted = np.array([3, 3, 3, 20, 49])
    nearly = Z[wanted] * (1 + np.finfo(dtype).eps)
    assert places_of(nearly, Y[wanted], Z, Y).tolist() == [3, 7, -1, 20, 49]
    assert places_of(Z[:2], Y[2:4], Z, Y).tolist() == [-1, -1]  # the targets of other rows
    assert places_of(Z[:2], Y[:2], Z[:0], Y[:0]).tolist() == [-1, -1]
    near = Z[:1] * (1 + 1e-3)
    assert places_of(near, Y[:1], Z, Y).tolist() == [-1]
