"""Functions of all pairs of rows, written block by block into a buffer."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from craftmaps.loops import distances
from craftmaps.loops.rows import dense_block, for_each_block

_ROWS = 1024
_ROUNDING = 1e-5  # error of a float32 kernel value above which float64 is used


def fill_gaussian(X: Any, Y: Any, gamma: float, out: np.ndarray) -> None:
    """out = exp(-gamma |x - y|^2), by one matrix product and one pass over its result.

    The product of rows far from the origin would lose the digits in which they differ. So the mean
    of Y is subtracted first, and float32 is given up for the product where it still loses too many.
    """
    work = _Centred(Y, out.dtype)
    rounding = gamma * float(work.norms.max(initial=0)) * float(np.finfo(out.dtype).eps)
    if out.dtype == np.float32 and (rounding > _ROUNDING or sparse.issparse(Y)):
        work = _Centred(Y, np.dtype(np.float64))
    for start in range(0, X.shape[0], _ROWS):
        target = out[start : start + _ROWS]
        products, norms = work.products(X[start : start + _ROWS], target)
        _exponentials(products, norms, work.norms, gamma)
        if products is not target:
            target[:] = products


def fill_radial(
    X: Any, Y: Any, function: Callable[[np.ndarray], np.ndarray], out: np.ndarray
) -> None:
    """out = function(|x - y|). In float64: a square root turns its rounding into that of float32."""
    work = _Centred(Y, np.dtype(np.float64))
    for start in range(0, X.shape[0], _ROWS):
        target = out[start : start + _ROWS]
        products, norms = work.products(X[start : start + _ROWS], target)

        def task(
            first: int,
            last: int,
            products: np.ndarray = products,
            norms: np.ndarray = norms,
            target: np.ndarray = target,
        ) -> None:
            squared = norms[first:last, None] + work.norms - 2 * products[first:last]
            target[first:last] = function(np.sqrt(np.maximum(squared, 0)))

        for_each_block(task, len(target), 8 * out.shape[1])


def fill_laplacian(X: Any, Y: Any, gamma: float, out: np.ndarray) -> None:
    """out = exp(-gamma |x - y|_1)."""

    def loop(block: np.ndarray, columns: np.ndarray, target: np.ndarray) -> None:
        distances.absolute_differences(block, columns, target)
        np.exp(-target, out=target)

    _by_columns(X, Y, gamma, loop, out)


def fill_cauchy(X: Any, Y: Any, gamma: float, out: np.ndarray) -> None:
    """out = prod_i 1 / (1 + gamma^2 (x_i - y_i)^2)."""
    _by_columns(X, Y, gamma, distances.cauchy_products, out)


def fill_function(
    X: Any, Y: Any, function: Callable[[np.ndarray], Any], gamma: float, out: np.ndarray
) -> None:
    """out = function(gamma (x - y)), for a function of an array of differences."""
    others = dense_block(Y, 0, Y.shape[0], np.float64)
    rows = max(1, (1 << 21) // max(1, others.size))
    for start in range(0, X.shape[0], rows):
        block = dense_block(X, start, start + rows, np.float64)
        values = np.asarray(function(gamma * (block[:, None] - others)))
        if values.shape != (len(block), len(others)):
            raise ValueError(
                f"ShiftInvariant: value must return one number per difference, that is shape "
                f"{(len(block), len(others))} here, got {values.shape}."
            )
        out[start : start + rows] = values


def fill_values(function: Callable[[np.ndarray], np.ndarray], out: np.ndarray) -> None:
    """Replace each entry t of `out` by function(t), on all threads."""

    def task(start: int, stop: int) -> None:
        out[start:stop] = function(out[start:stop])

    for_each_block(task, len(out), 2 * out.itemsize * out.shape[1])


class _Centred:
    """Rows Y less their mean (sparse ones stay as they are), with squared norms."""

    def __init__(self, Y: Any, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.mean = None if sparse.issparse(Y) else Y.mean(axis=0, dtype=np.float64).astype(dtype)
        self.rows = self._moved(Y)
        self.norms = row_norms(self.rows, squared=True)

    def products(self, X: Any, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """<x, y> of centred rows, in `out` if that is possible, and |x|^2."""
        moved = self._moved(X)
        norms = row_norms(moved, squared=True)
        if out.dtype == self.dtype and not (sparse.issparse(moved) or sparse.issparse(self.rows)):
            return np.matmul(moved, self.rows.T, out=out), norms
        return np.asarray(safe_sparse_dot(moved, self.rows.T, dense_output=True)), norms

    def _moved(self, rows: Any) -> Any:
        if self.mean is None:
            return rows.astype(self.dtype, copy=False)
        if sparse.issparse(rows):
            rows = rows.toarray()
        return rows.astype(self.dtype, copy=False) - self.mean


def _exponentials(products: np.ndarray, norms: np.ndarray, others: np.ndarray, g: float) -> None:
    single = products.dtype == np.float32
    loop = distances.gaussian32 if single else distances.gaussian64
    gamma = products.dtype.type(g)

    def task(start: int, stop: int) -> None:
        loop(products[start:stop], norms[start:stop], others, gamma)

    for_each_block(task, len(products), products.itemsize * products.shape[1])


def _by_columns(
    X: Any, Y: Any, gamma: float, loop: Callable[..., None], out: np.ndarray
) -> None:
    """Run `loop` on blocks of gamma X, on all threads, with gamma Y transposed."""
    scale = out.dtype.type(gamma)
    columns = np.ascontiguousarray(dense_block(Y, 0, Y.shape[0], out.dtype).T) * scale

    def task(start: int, stop: int) -> None:
        loop(dense_block(X, start, stop, out.dtype) * scale, columns, out[start:stop])

    for_each_block(task, X.shape[0], out.itemsize * (X.shape[1] + out.shape[1]))
