"""Sums that add: against direct sums, in any blocks, any order, at any offset."""

import pickle
import tracemalloc

import numpy as np
import pytest

from craftmaps import NormalEquations
from craftmaps.learn.solvers import memory, ridge

pytestmark = pytest.mark.delicate

ROWS, FEATURES, TARGETS = 300, 17, 3


def data(dtype=np.float64, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    Z = (rng.standard_normal((ROWS, FEATURES)) + offset).astype(dtype)
    Y = rng.standard_normal((ROWS, TARGETS)) + offset
    weights = rng.integers(0, 4, ROWS).astype(float)
    return Z, Y, weights


def direct(Z, Y, weights=None):
    """H, G, means and |y|^2 as their definitions say, in extended precision."""
    Z, Y = Z.astype(np.longdouble), Y.astype(np.longdouble)
    w = np.ones(len(Z)) if weights is None else weights
    z_mean, y_mean = w @ Z / w.sum(), w @ Y / w.sum()
    Zc, Yc = Z - z_mean, Y - y_mean
    H, G, square = (w[:, None] * Zc).T @ Zc, (w[:, None] * Zc).T @ Yc, w @ Yc**2
    return {"hessian": H, "gradient": G, "y_square": square, "z_mean": z_mean, "y_mean": y_mean}


def assert_equal(equations, expected, tolerance):
    for name, value in expected.items():
        found = getattr(equations, name)
        scale = np.abs(value).max()
        assert np.abs(found - value).max() <= tolerance * scale, name


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-6)])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_their_definition(dtype, tolerance, weighted):
    Z, Y, weights = data(dtype)
    weights = weights if weighted else None
    assert_equal(NormalEquations().update(Z, Y, weights), direct(Z, Y, weights), tolerance)


@pytest.mark.parametrize("sizes", [[300], [1] * 300, [7, 290, 3], [150, 0, 150]])
def test_blocks_make_no_difference(sizes):
    Z, Y, weights = data()
    equations, start = NormalEquations(), 0
    for size in sizes:
        rows = slice(start, start + size)
        equations.update(Z[rows], Y[rows], weights[rows])
        start += size
    assert equations.n_rows == ROWS
    assert_equal(equations, direct(Z, Y, weights), 1e-12)


def test_more_rows_than_one_update_holds():
    rng = np.random.default_rng(0)
    Z, Y = rng.standard_normal((10_000, 4)), rng.standard_normal((10_000, 1))
    assert_equal(NormalEquations().update(Z, Y), direct(Z, Y), 1e-12)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)])
def test_merging_in_any_order(order):
    Z, Y, weights = data()
    cuts = [slice(0, 10), slice(10, 11), slice(11, 200), slice(200, 300)]
    parts = [NormalEquations().update(Z[c], Y[c], weights[c]) for c in cuts]
    whole = NormalEquations()
    for i in order:
        whole.merge(parts[i])
    assert_equal(whole, direct(Z, Y, weights), 1e-12)
    left = NormalEquations().merge(parts[0]).merge(parts[1])
    right = NormalEquations().merge(parts[2]).merge(parts[3])
    assert_equal(left.merge(right), direct(Z, Y, weights), 1e-12)
    assert_equal(parts[2], direct(Z[cuts[2]], Y[cuts[2]], weights[cuts[2]]), 1e-12)


def test_merging_with_nothing():
    Z, Y, _ = data()
    assert_equal(NormalEquations().update(Z, Y).merge(NormalEquations()), direct(Z, Y), 1e-13)
    assert_equal(NormalEquations().merge(NormalEquations().update(Z, Y)), direct(Z, Y), 1e-13)
    assert NormalEquations().merge(NormalEquations()).n_rows == 0


def test_weights_are_repetitions():
    Z, Y, weights = data()
    times = weights.astype(int)
    repeated = NormalEquations().update(Z.repeat(times, axis=0), Y.repeat(times, axis=0))
    weighted = NormalEquations().update(Z, Y, weights)
    assert weighted.weight == repeated.weight
    assert_equal(weighted, {name: getattr(repeated, name) for name in direct(Z, Y)}, 1e-12)
    nothing = NormalEquations().update(Z, Y, np.zeros(ROWS))
    assert nothing.weight == 0
    assert_equal(nothing.merge(weighted), direct(Z, Y, weights), 1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [1e6, -3e4])
def test_large_offsets_do_not_square(dtype, offset):
    Z, Y, _ = data(dtype, offset)
    # a mean rounded to float64 is off by eps * offset, and nothing worse may come of it
    tolerance = 1e-6 if dtype == np.float32 else 4 * np.finfo(np.float64).eps * abs(offset)
    expected = direct(Z, Y)
    equations = NormalEquations()
    for start in range(0, ROWS, 50):
        equations.update(Z[start : start + 50], Y[start : start + 50])
    assert_equal(equations, expected, tolerance)
    # the sums that are usually kept miss the same tolerance by far
    naive = Z.T @ Z - ROWS * np.outer(Z.mean(axis=0), Z.mean(axis=0))
    error = np.abs(naive - expected["hessian"]).max() / np.abs(expected["hessian"]).max()
    assert error > 100 * tolerance


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_offsets_that_wander_from_block_to_block(dtype):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((ROWS, FEATURES)).astype(dtype)
    Y = rng.standard_normal((ROWS, TARGETS))
    levels = np.repeat([0.0, 1e5, -1e5, 2e5, 0.0, 7.0], 50)[:, None].astype(dtype)
    Z += levels * np.arange(FEATURES, dtype=dtype)
    equations = NormalEquations()
    for start in range(0, ROWS, 50):
        equations.update(Z[start : start + 50], Y[start : start + 50])
    within = NormalEquations().update(Z[50:100], Y[50:100])
    assert_equal(equations, direct(Z, Y), 1e-6 if dtype == np.float32 else 1e-12)
    assert_equal(within, direct(Z[50:100], Y[50:100]), 1e-6 if dtype == np.float32 else 1e-9)


def test_constant_columns_have_no_variance():
    Z, Y, _ = data(np.float32)
    Z[:, 3] = 123456.7
    H = NormalEquations().update(Z, Y).hessian
    assert np.abs(H[3]).max() == 0


def test_input_is_left_alone_unless_allowed():
    Z, Y, weights = data(offset=10)
    before = Z.copy()
    Z.setflags(write=False)
    NormalEquations().update(Z, Y, weights)
    assert np.array_equal(Z, before)
    assert_equal(
        NormalEquations().update(Z.copy(), Y, weights, overwrite=True),
        direct(before, Y, weights),
        1e-12,
    )


def test_lists_integers_and_one_target_are_welcome():
    equations = NormalEquations().update([[1, 2], [3, 5]], [0, 1])
    assert equations.hessian.tolist() == [[2, 3], [3, 4.5]]
    assert equations.gradient.tolist() == [[1], [1.5]]


def test_arrays_and_pickle_bring_everything_back():
    Z, Y, weights = data(np.float32)
    equations = NormalEquations().update(Z[:100], Y[:100], weights[:100])
    arrays, metadata = equations.to_arrays()
    assert all(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in arrays.values())
    assert arrays["hessian"].shape == (FEATURES * (FEATURES + 1) // 2,)
    assert all(isinstance(v, int | float | str) for v in metadata.values())
    for again in (
        NormalEquations.from_arrays(arrays, metadata),
        pickle.loads(pickle.dumps(equations)),
    ):
        assert np.array_equal(again.hessian, equations.hessian)
        again.update(Z[100:], Y[100:], weights[100:])
        assert_equal(again, direct(Z, Y, weights), 1e-6)
        assert again.precision == np.float32
    empty = pickle.loads(pickle.dumps(NormalEquations()))
    assert_equal(empty.update(Z, Y), direct(Z, Y), 1e-6)


def test_targets_announced_late_are_as_if_always_known():
    Z, Y, weights = data()
    Y[:100, [0, 2]] = -1.0
    late = NormalEquations().update(Z[:100], Y[:100, [1]], weights[:100])
    late.add_constant_targets(np.array([0, 2]), -1.0)
    late.update(Z[100:], Y[100:], weights[100:])
    assert_equal(late, direct(Z, Y, weights), 1e-12)


def test_wrong_input_is_named():
    Z, Y, _ = data()
    equations = NormalEquations().update(Z, Y)
    with pytest.raises(ValueError, match=r"17 features and 3 targets.*16 features"):
        equations.update(Z[:, 1:], Y)
    with pytest.raises(ValueError, match=r"17 features and 3 targets.*1 targets"):
        equations.merge(NormalEquations().update(Z, Y[:, 0]))
    with pytest.raises(ValueError, match="the same number of rows"):
        NormalEquations().update(Z, Y[:5])
    for weights in (-np.ones(ROWS), np.ones(5), np.full(ROWS, np.nan)):
        with pytest.raises(ValueError, match="sample_weight must be 300 finite numbers"):
            NormalEquations().update(Z, Y, weights)


@pytest.mark.parametrize("large", [np.inf, np.nan, 1e25])
def test_features_that_overflow_are_named(large):
    Z, Y, _ = data(np.float32)
    equations = NormalEquations().update(Z, Y)
    broken = Z.copy()
    broken[7, 2] = large
    with pytest.raises(ValueError, match=r"too large for float32.*scale the rows"):
        equations.update(broken, Y)
    assert_equal(equations, direct(Z, Y), 1e-6)  # and did no harm


def test_refuses_what_does_not_fit_before_allocating(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**9)
    tracemalloc.start()
    with pytest.raises(MemoryError, match=r"need 8\.00 GB, and 1\.00 GB.*about 11180 features"):
        NormalEquations().update(np.zeros((1, 31_622)), np.zeros(1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7


def test_available_memory_is_plausible():
    available = memory.available_bytes()
    assert available is None or 10**6 < available < 10**15


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("copy", [True, False])
def test_uses_the_memory_it_declares(dtype, copy):
    size, rows = 1200, 100
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((rows, size)).astype(dtype), rng.standard_normal(rows)
    NormalEquations().update(Z[:2], y[:2])  # compiles outside the measurement
    declared = memory.equations_bytes(size, 1, Z.itemsize, copy=copy)
    tracemalloc.start()
    equations = NormalEquations()
    for _ in range(3):
        equations.update(Z, y)
    if copy:
        equations.system()
    else:
        ridge.solve(equations, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    columns_at_a_time = 8 * 128 * size
    assert 0.9 * declared < peak < declared + 4 * Z.nbytes + columns_at_a_time
