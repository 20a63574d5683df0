"""Kernel values for all pairs of rows of X and Y, where Y is prepared once.

Most functions here return a `Fill`: fill(X, out) writes the kernel between the rows of X and the
prepared rows of Y into `out`, in the calling thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from craftmaps.loops import distances
from craftmaps.threads import dense_block, for_each_product_block

Fill = Callable[[Any, np.ndarray], None]
_EQUAL = 32 * float(np.finfo(np.float64).eps)
_LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e120}  # their squares are finite
_CACHED_BYTES = 1 << 18
_MAX_SQUARED_LENGTH = 16.0  # if gamma |y|^2 is larger, kernel values lose more than one digit


def fill_blocks(fill: Fill, X: Any, out: np.ndarray, threads: bool = True) -> None:
    """Apply `fill` to all rows of X, block by block."""

    def task(start: int, stop: int) -> None:
        fill(X[start:stop], out[start:stop])

    row_bytes = out.itemsize * (X.shape[1] + out.shape[1])
    for_each_product_block(task, X.shape[0], row_bytes, threads)


def gaussian(Y: Any, gamma: float, dtype: np.dtype) -> Fill:
    """Fill exp(-gamma |x - y|^2), with one matrix product and one pass over its result.

    The product of rows far from the origin loses the digits in which they differ. If too many
    digits are lost, the mean of Y is subtracted first. If that is not enough, float64 is used.
    """
    others = _Others(Y, dtype, centred=False)
    if gamma * others.reach > _MAX_SQUARED_LENGTH:
        others = _Others(Y, dtype, centred=True)
    largest = float(np.finfo(dtype).max)  # gamma can exceed it if the rows are very short
    if (gamma * others.reach > _MAX_SQUARED_LENGTH or gamma > largest) and dtype == np.float32:
        others = _Others(Y, np.dtype(np.float64), centred=True)
    loop = distances.gaussian32 if others.dtype == np.float32 else distances.gaussian64
    factor = others.dtype.type(gamma)

    def fill(X: Any, out: np.ndarray) -> None:
        products, norms = others.products(X, out)
        loop(products, norms, others.norms, factor)
        if products is not out:
            out[:] = products

    return fill


def radial(Y: Any, function: Callable[[np.ndarray], np.ndarray]) -> Fill:
    """Fill function(|x - y|), in float64 because the square root halves the number of digits."""
    others = _Others(Y, np.dtype(np.float64), centred=True)

    def fill(X: Any, out: np.ndarray) -> None:
        products, norms = others.products(X, out)
        sums = norms[:, None] + others.norms
        squared = sums - 2 * products
        squared[squared <= _EQUAL * sums] = 0  # equal rows, up to rounding
        out[:] = function(np.sqrt(squared))

    return fill


def matern(
    Y: Any,
    scale: float,
    polynomial: tuple[float, float],
    function: Callable[[np.ndarray], np.ndarray],
    dtype: np.dtype,
) -> Fill:
    """Fill (1 + a s + b s^2) exp(-s) with s = scale |x - y| and `polynomial` = (a, b).

    This is `radial` with one matrix product and one pass in `dtype`. Sparse rows and numbers that
    are too large for `dtype` still use `radial` with the equivalent `function` of distances.
    """
    exact = radial(Y, function)
    least, largest = (1 / _LARGEST[dtype], _LARGEST[dtype])
    if sparse.issparse(Y) or not least < scale < largest:
        return exact
    others = _Others(Y, dtype, centred=True)
    originals = dense_block(Y, 0, Y.shape[0], dtype)  # subtracting the mean would round
    loop = distances.matern32 if dtype == np.float32 else distances.matern64
    factors = [dtype.type(value) for value in (scale, *polynomial)]

    def fill(X: Any, out: np.ndarray) -> None:
        moved = others.moved(X)
        norms = row_norms(moved, squared=True)
        if max(others.reach, float(norms.max(initial=0))) > largest:
            exact(X, out)
            return
        np.matmul(moved, others.rows.T, out=out)
        rows = dense_block(X, 0, X.shape[0], dtype)
        loop(out, norms, others.norms, rows, originals, *factors)

    return fill


def laplacian(Y: Any, gamma: float, dtype: np.dtype) -> Fill:
    """Fill exp(-gamma |x - y|_1)."""
    columns = np.ascontiguousarray(_scaled(Y, gamma, dtype, multiple=4).T)
    loop = distances.laplacian32 if dtype == np.float32 else distances.laplacian64

    def fill(X: Any, out: np.ndarray) -> None:
        loop(_scaled(X, gamma, dtype, multiple=4), columns, out)

    return fill


def cauchy(Y: Any, gamma: float, dtype: np.dtype) -> Fill:
    """Fill prod_i 1 / (1 + gamma^2 (x_i - y_i)^2)."""
    columns = np.ascontiguousarray(_scaled(Y, gamma, dtype).T)

    def fill(X: Any, out: np.ndarray) -> None:
        distances.cauchy_products(_scaled(X, gamma, dtype), columns, out)

    return fill


def _scaled(rows: Any, gamma: float, dtype: np.dtype, multiple: int = 1) -> np.ndarray:
    """Return gamma times the rows as a dense array, padded with columns of zeros."""
    dense = dense_block(rows, 0, rows.shape[0], dtype)
    n_columns = dense.shape[1]
    scaled = np.zeros((len(dense), n_columns + -n_columns % multiple), dtype)
    np.multiply(dense, dtype.type(gamma), out=scaled[:, :n_columns])
    return scaled


def of_differences(Y: Any, function: Callable[[np.ndarray], Any]) -> Fill:
    """Fill function(x - y), for a function of an array of differences."""
    others = dense_block(Y, 0, Y.shape[0], np.float64)
    step = max(1, (1 << 21) // max(1, others.size))

    def fill(X: Any, out: np.ndarray) -> None:
        for start in range(0, X.shape[0], step):
            block = dense_block(X, start, start + step, np.float64)
            values = np.asarray(function(block[:, None] - others))
            if values.shape != (len(block), len(others)):
                raise ValueError(
                    f"ShiftInvariant: value must return one number per difference, that is shape "
                    f"{(len(block), len(others))} here, got {values.shape}."
                )
            out[start : start + step] = values

    return fill


def of_products(Y: Any, function: Callable[[np.ndarray], np.ndarray], dtype: np.dtype) -> Fill:
    """Fill function(<x, y>)."""
    others = Y.astype(dtype, copy=False)
    step = max(1, _CACHED_BYTES // max(1, dtype.itemsize * Y.shape[0]))

    def fill(X: Any, out: np.ndarray) -> None:
        products = _products(X.astype(dtype, copy=False), others, out)
        for start in range(0, len(out), step):  # keep temporary matrices in the cache
            out[start : start + step] = function(products[start : start + step])

    return fill


class _Others:
    """Rows Y and their squared norms, minus their mean if `centred` (unless Y is sparse)."""

    def __init__(self, Y: Any, dtype: np.dtype, centred: bool) -> None:
        self.dtype = dtype
        self.mean = None
        if centred and not sparse.issparse(Y):
            self.mean = Y.mean(axis=0, dtype=np.float64).astype(dtype)
        self.rows = self.moved(Y)
        self.norms = row_norms(self.rows, squared=True)
        self.reach = float(self.norms.max(initial=0))

    def products(self, X: Any, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return <x, y>, in `out` if possible, and |x|^2."""
        moved = self.moved(X)
        return _products(moved, self.rows, out), row_norms(moved, squared=True)

    def moved(self, rows: Any) -> Any:
        """Return the rows in the precision of Y, minus the mean of Y."""
        if self.mean is None:
            return rows.astype(self.dtype, copy=False)
        if sparse.issparse(rows):
            rows = rows.toarray()
        return rows.astype(self.dtype, copy=False) - self.mean


def _products(X: Any, Y: Any, out: np.ndarray) -> np.ndarray:
    """Compute X Y', in `out` if possible."""
    if sparse.issparse(X) or sparse.issparse(Y) or X.dtype != out.dtype:
        return np.asarray(safe_sparse_dot(X, Y.T, dense_output=True))
    return np.matmul(X, Y.T, out=out)


def onnx_squared_distances(g: Any, x: str, landmarks: np.ndarray) -> str:
    """Add |x - l|^2 to an ONNX graph, after subtracting the mean of the landmarks."""
    mean = landmarks.mean(axis=0)
    moved, others = g.add("Sub", x, mean), landmarks - mean
    norms = g.add("ReduceSum", g.add("Mul", moved, moved), [1], keepdims=1)
    sums = g.add("Add", norms, np.square(others).sum(axis=1))
    products = g.add("MatMul", moved, -2 * others.T)
    return str(g.add("Relu", g.add("Add", sums, products)))


def onnx_differences(g: Any, x: str, landmarks: np.ndarray, gamma: float) -> str:
    """Add gamma (x - l) to an ONNX graph, as a tensor of shape (rows, landmarks, columns)."""
    differences = g.add("Sub", g.add("Unsqueeze", x, [1]), landmarks)
    return str(g.add("Mul", differences, np.float64(gamma)))


def onnx_series(g: Any, t: str, coefficients: Sequence[float]) -> str:
    """Add sum_n a_n t^n to an ONNX graph, by Horner's rule."""
    value = g.add("Mul", t, np.float64(0))
    for a in reversed(coefficients):
        value = g.add("Add", g.add("Mul", value, t), np.float64(a))
    return str(value)
