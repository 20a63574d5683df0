"""Compiled loops against explicit matrices, and how rows are cut into blocks."""

import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard

import oracles
from craftmaps import threads as rows
from craftmaps.loops.hadamard import hadamard_rows
from craftmaps.loops.sketch import sketch_dense, sketch_sparse
from craftmaps.maps.parts.hadamard_products import HadamardProducts, padded_length

FLOATS = [(np.float64, 1e-12), (np.float32, 2e-5)]


@pytest.mark.parametrize("size", [2**k for k in range(13)])
@pytest.mark.parametrize(("dtype", "rtol"), FLOATS)
def test_hadamard_transform(size, dtype, rtol):
    """Every length up to 4096: scalar code, vectors of eight, and butterflies of 2, 4 and 8."""
    X = np.random.default_rng(size).normal(size=(3, size)).astype(dtype)
    expected = X.astype(float) @ hadamard(size, dtype=float)
    hadamard_rows(X)
    np.testing.assert_allclose(X, expected, rtol=0, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("size", [1, 8, 64, 512])
def test_hadamard_transform_of_whole_numbers_is_exact(size):
    X = np.random.default_rng(0).integers(-8, 9, (4, size)).astype(np.float32)
    expected = X @ hadamard(size)
    hadamard_rows(X)
    np.testing.assert_array_equal(X, expected)


def test_padded_length():
    assert [padded_length(d) for d in (1, 2, 3, 4, 5, 8, 9, 784, 1024, 1025)] == [
        *(1, 2, 4, 4, 8, 8, 16, 1024, 1024, 2048)
    ]


def draw(counts, d, complex_to_real, seed=0):
    """Products with counts[n] features of degree n, and the number of columns they fill."""
    counts = np.array(counts)
    weights = 1.0 / (1 + np.arange(len(counts)))
    rng = np.random.default_rng(seed)
    first = 3
    parts = 2 if complex_to_real else 1
    products = HadamardProducts.draw(counts, weights, first, d, complex_to_real, rng)
    return products, first + parts * int(counts[1:].sum())


SHAPES = [
    # counts of features by degree, columns of the rows
    ([0, 1], 1),
    ([0, 5, 3, 2], 1),
    ([0, 3, 4, 5], 2),
    ([0, 40, 40], 3),  # more than size^1: new rotations; more than size^2
    ([0, 17, 0, 9], 5),
    ([0, 0, 300], 16),  # more than size^2 features: a second set of rotations
    ([0, 70, 131, 66], 60),
    ([0, 9, 64, 257, 65], 64),
    ([0, 300, 300], 200),  # runs of 256, cut off and complete
    ([0, 1100, 513], 500),  # slices that do not divide the run, several runs
    ([0] * 5 + [11, 12, 13, 14, 15, 16, 17, 18], 33),  # chains longer than seven factors
    ([0] * 20 + [37], 70),
    ([0] * 20 + [19], 6),
]


@pytest.mark.parametrize(("counts", "d"), SHAPES)
@pytest.mark.parametrize("complex_to_real", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), FLOATS)
def test_products_of_rotated_rows(counts, d, complex_to_real, dtype, rtol):
    """Against explicit Hadamard matrices, feature by feature."""
    products, n_columns = draw(counts, d, complex_to_real)
    X = np.random.default_rng(1).normal(size=(2, d)) / np.sqrt(d)
    out = np.full((2, n_columns + 2), np.nan, dtype=dtype)
    products.fill(X.astype(dtype), out)
    expected = oracles.hadamard_features(products, X.astype(dtype).astype(float), n_columns + 2)
    np.testing.assert_allclose(out, expected, rtol=0, atol=5 * rtol * np.abs(expected).max())


@pytest.mark.parametrize("fold", [None, 20, 67])
@pytest.mark.parametrize(("counts", "d"), [shape for shape in SHAPES if shape[1] <= 33])
@pytest.mark.parametrize(("dtype", "rtol"), FLOATS)
def test_rows_one_by_one_and_side_by_side(counts, d, fold, dtype, rtol, monkeypatch):
    """Both loops make the same features, the latter to the last bit whatever rows are beside."""
    weights, rng = 1.0 / (1 + np.arange(len(counts))), np.random.default_rng(0)
    products = HadamardProducts.draw(np.array(counts), weights, 3, d, False, rng, fold)
    X = np.random.default_rng(1).normal(size=(130, d)).astype(dtype) / np.sqrt(d).astype(dtype)
    found = []
    for in_tiles in (False, True):
        monkeypatch.setattr(HadamardProducts, "_in_tiles", lambda self, out, it=in_tiles: it)
        out = np.zeros((130, 5 + (fold or sum(counts))), dtype)
        products.fill(X, out)
        found.append(out)
    np.testing.assert_allclose(*found, rtol=0, atol=5 * rtol * np.abs(found[0]).max())
    for some in (slice(0, 1), slice(3, 68), slice(100, 130)):
        out = np.zeros((some.stop - some.start, found[1].shape[1]), dtype)
        products.fill(X[some], out)
        np.testing.assert_array_equal(out, found[1][some])


def test_few_columns_are_worked_on_side_by_side():
    for d, n_columns, in_tiles in (
        (4, 5000, True),
        (8, 1024, True),
        (32, 1024, True),
        (32, 1025, False),
        (33, 64, False),
    ):
        products, _ = draw([0, 5, 5], d, False)
        assert products._in_tiles(np.empty((1, n_columns), np.float32)) == in_tiles


@pytest.mark.parametrize(("counts", "d"), SHAPES)
@pytest.mark.parametrize("complex_to_real", [False, True])
def test_each_column_is_written_by_one_feature_of_its_own(counts, d, complex_to_real):
    """Blocks tile the columns; a rotation uses every column once; no feature comes twice."""
    products, n_columns = draw(counts, d, complex_to_real)
    parts = 2 if complex_to_real else 1
    covered = np.zeros(n_columns, dtype=int)
    for column, length in zip(products.column, products.length, strict=True):
        covered[column : column + parts * length] += 1
    assert (covered[:3] == 0).all()
    assert (covered[3:] == 1).all()
    for k in range(0, len(products.gather), parts):
        used = products.gather[k : k + parts].ravel()
        used = used[used < 2 * d] % d
        assert sorted(used) == list(range(d))
    for n in range(1, len(counts)):
        sets = [tuples for tuples in oracles.run_indices(products, n) if tuples]
        assert sum(map(len, sets)) == counts[n]
        assert all(len(set(tuples)) == len(tuples) for tuples in sets)  # without replacement
        assert all(len(tuples) == padded_length(d) ** n for tuples in sets[:-1])  # until all spent


def test_no_random_feature_at_all():
    products, _ = draw([5, 0, 0], 7, False)
    out = np.full((3, 4), np.nan)
    products.fill(np.ones((3, 7)), out)
    np.testing.assert_array_equal(out, 0)


@pytest.mark.parametrize("degree", [12, 20, 40])
@pytest.mark.parametrize("d", [784, 5000])
def test_high_degrees_of_wide_rows(degree, d):
    """There are more runs to choose from than any integer type counts."""
    products, n_columns = draw([0] * degree + [d + 5], d, False)
    assert len(products.rotations) == 2
    out = np.empty((1, n_columns))
    products.fill(np.full((1, d), 1 / np.sqrt(d)), out)
    assert np.isfinite(out).all()


@pytest.mark.parametrize(("dtype", "rtol"), FLOATS)
def test_count_sketch_of_dense_and_sparse_rows(dtype, rtol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 30)) * (rng.random((6, 30)) < 0.3)
    X[2] = 0
    bucket = rng.integers(0, 7, 30).astype(np.int32)
    sign = (1 - 2 * rng.integers(0, 2, 30)).astype(dtype)
    start = rng.normal(size=(6, 7))
    expected = start + [oracles.count_sketch(x, bucket, sign, 7) for x in X]
    dense, from_sparse = start.astype(dtype), start.astype(dtype)
    sketch_dense(X.astype(dtype), bucket, sign, dense)
    S = sparse.csr_matrix(X.astype(dtype))
    sketch_sparse(S.data, S.indices, S.indptr.astype(np.int64), bucket, sign, from_sparse)
    np.testing.assert_allclose(dense, expected, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(from_sparse, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 511, 512, 513, 5000])
@pytest.mark.parametrize("row_bytes", [0, 8, 1 << 10, 1 << 30])
def test_blocks_cover_every_row_once(monkeypatch, threads, n_rows, row_bytes):
    monkeypatch.setattr(rows.config, "NUMBA_NUM_THREADS", threads)
    seen, lock = [], threading.Lock()

    def task(start, stop):
        with lock:
            seen.append((start, stop))

    rows.for_each_block(task, n_rows, row_bytes)
    assert [i for start, stop in sorted(seen) for i in range(start, stop)] == list(range(n_rows))
    assert max(stop - start for start, stop in seen) * row_bytes <= max(rows.BLOCK_BYTES, row_bytes)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_block_reaches_the_caller(monkeypatch, threads):
    monkeypatch.setattr(rows.config, "NUMBA_NUM_THREADS", threads)

    def task(start, stop):
        if stop == 1000:
            raise ZeroDivisionError("in the last block")

    with pytest.raises(ZeroDivisionError, match="in the last block"):
        rows.for_each_block(task, 1000, 8)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_loop_within_a_loop_ends(monkeypatch, threads):
    """Each caller does its own work, so none waits for threads that wait themselves."""
    monkeypatch.setattr(rows.config, "NUMBA_NUM_THREADS", threads)
    seen = np.zeros((40, 30), dtype=int)

    def outer(start, stop):
        for i in range(start, stop):
            rows.for_each_block(partial(inner, i), 30, rows.BLOCK_BYTES)

    def inner(i, start, stop):
        seen[i, start:stop] += 1

    rows.for_each_block(outer, 40, rows.BLOCK_BYTES)
    assert (seen == 1).all()


@pytest.mark.parametrize(
    ("at_once", "workers", "share"), [(None, 4, 1), (1, 1, 4), (2, 2, 2), (100, 4, 1)]
)
def test_tasks_that_need_much_memory_run_a_few_at_a_time(at_once, workers, share, monkeypatch):
    monkeypatch.setattr(rows.config, "NUMBA_NUM_THREADS", 4)
    all_at_work = threading.Barrier(workers)

    def task(item):
        all_at_work.wait(20)  # fails if fewer tasks run at the same time
        return item, threading.get_ident(), rows.n_threads()

    items, idents, shares = zip(*rows.on_threads(task, range(8), at_once), strict=True)
    assert items == tuple(range(8))
    assert len(set(idents)) == workers
    assert set(shares) == {share}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_loops_run_on_threads_after_a_fork():
    """A child has none of its parent's threads, and must not wait for them."""
    program = """
import os, threading
from craftmaps import threads as rows
rows.config.NUMBA_NUM_THREADS = 2
both = threading.Barrier(2)
def run():
    met = []
    rows.for_each_block(lambda start, stop: met.append(both.wait(20)), 2, rows.BLOCK_BYTES)
    assert sorted(met) == [0, 1]
run()
child = os.fork()
if child == 0:
    both = threading.Barrier(2)
    run()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
run()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)


def test_dense_blocks_are_writable_and_ordered():
    X = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    X.flags.writeable = False
    for source in (X, sparse.csr_matrix(X), sparse.csr_array(X)):
        block = rows.dense_block(source, 1, 3, np.float32)
        assert block.flags.c_contiguous
        assert block.flags.writeable
        assert block.dtype == np.float32
        np.testing.assert_array_equal(block, X[1:3])
    np.testing.assert_array_equal(X, np.arange(12.0).reshape(4, 3))


def test_no_rows_are_no_work():
    called = []
    rows.for_each_block(lambda start, stop: called.append(start), 0, 8)
    assert called == []
