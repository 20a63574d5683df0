"""Kernel values for all pairs of rows, without temporary matrices."""

import numpy as np

from craftmaps.loops.compiled import contracted

_TILE = 128  # columns that are accumulated at a time, in the first-level cache
_WIDE_TILE = 512
# If |x - y|^2 / (|x|^2 + |y|^2) is smaller, the distance is computed from differences.
_NEAR64, _NEAR32 = 1e-6, 1 / 256
_ROUND64, _ROUND32 = 6755399441055744.0, 12582912.0  # 1.5 * 2^52, 1.5 * 2^23: adding them rounds


@contracted
def _exp64(x: float) -> float:
    """Compute exp(x) for x <= 0 by arithmetic that the compiler can vectorize."""
    shifted = x * 1.4426950408889634 + _ROUND64
    k = shifted - _ROUND64
    r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    r2 = r * r
    low = (1.0 + r) + r2 * (0.5 + r * 0.16666666666666666)
    mid = (0.041666666666666664 + r * 0.008333333333333333) + r2 * (
        0.001388888888888889 + r * 1.984126984126984e-4
    )
    high = (2.48015873015873e-5 + r * 2.7557319223985893e-6) + r2 * (
        2.755731922398589e-7 + r * 2.505210838544172e-8
    )
    r4 = r2 * r2
    value = low + r4 * (mid + r4 * (high + r4 * 2.08767569878681e-9))
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return value * power if x > -708.0 else 0.0


@contracted
def _exp32(x: np.float32) -> np.float32:
    """Compute exp(x) for x <= 0 in float32, see `_exp64`."""
    shifted = x * np.float32(1.4426950408889634) + np.float32(_ROUND32)
    k = shifted - np.float32(_ROUND32)
    r = (x - k * np.float32(0.693359375)) - k * np.float32(-2.12194440e-4)
    value = np.float32(1.9875691500e-4)
    value = value * r + np.float32(1.3981999507e-3)
    value = value * r + np.float32(8.3334519073e-3)
    value = value * r + np.float32(4.1665795894e-2)
    value = value * r + np.float32(1.6666665459e-1)
    value = value * r + np.float32(5.0000001201e-1)
    value = value * r * r + r + np.float32(1)
    power = np.int32((np.float32(shifted).view(np.int32) + 127) << 23).view(np.float32)
    return value * power if x > np.float32(-87.0) else np.float32(0)


@contracted
def gaussian64(G: np.ndarray, xx: np.ndarray, yy: np.ndarray, gamma: float) -> None:
    """Set G[i, j] = exp(-gamma max(0, xx[i] + yy[j] - 2 G[i, j])), given inner products in G."""
    for i in range(G.shape[0]):
        row = G[i]
        for j in range(row.shape[0]):
            squared = (xx[i] + yy[j]) - 2.0 * row[j]
            row[j] = _exp64(-gamma * (squared if squared > 0.0 else 0.0))


@contracted
def gaussian32(G: np.ndarray, xx: np.ndarray, yy: np.ndarray, gamma: np.float32) -> None:
    """Do the same as `gaussian64` in float32."""
    for i in range(G.shape[0]):
        row = G[i]
        for j in range(row.shape[0]):
            squared = (xx[i] + yy[j]) - np.float32(2) * row[j]
            squared = squared if squared > np.float32(0) else np.float32(0)
            row[j] = _exp32(-gamma * squared)


@contracted
def matern64(
    G: np.ndarray,
    xx: np.ndarray,
    yy: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    scale: float,
    a: float,
    b: float,
) -> None:
    """Set G[i, j] = (1 + a s + b s^2) exp(-s) with s = scale |x_i - y_j|.

    G contains the inner products of the rows at first.
    """
    for i in range(G.shape[0]):
        _distances(G[i], xx[i], yy, X[i], Y, _NEAR64)
        _decay64(G[i], scale, a, b)


@contracted
def matern32(
    G: np.ndarray,
    xx: np.ndarray,
    yy: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    scale: np.float32,
    a: np.float32,
    b: np.float32,
) -> None:
    """Do the same as `matern64` in float32."""
    for i in range(G.shape[0]):
        _distances(G[i], xx[i], yy, X[i], Y, _NEAR32)
        _decay32(G[i], scale, a, b)


@contracted
def _distances(
    row: np.ndarray, xx: float, yy: np.ndarray, x: np.ndarray, Y: np.ndarray, near: float
) -> None:
    """Replace <x, y_j> by |x - y_j|, computed from differences if the rows are near each other.

    For near rows, |x|^2 + |y|^2 - 2 <x, y> loses most digits, and the root magnifies the error.
    """
    share = row.dtype.type(near)
    two, zero = row.dtype.type(2), row.dtype.type(0)
    n_near = 0
    for j in range(row.shape[0]):
        sums = xx + yy[j]
        squared = sums - two * row[j]
        n_near += squared <= share * sums
        row[j] = squared
    if n_near:
        for j in range(row.shape[0]):
            if row[j] <= share * (xx + yy[j]):
                squared = zero
                for k in range(x.shape[0]):
                    squared += (x[k] - Y[j, k]) * (x[k] - Y[j, k])
                row[j] = squared
    for j in range(row.shape[0]):
        row[j] = np.sqrt(row[j])


@contracted
def _decay64(row: np.ndarray, scale: float, a: float, b: float) -> None:
    """Replace s by (1 + a s + b s^2) exp(-s), with s multiplied by `scale` first."""
    for j in range(row.shape[0]):
        s = scale * row[j]
        row[j] = (1.0 + s * (a + b * s)) * _exp64(-s)


@contracted
def _decay32(row: np.ndarray, scale: np.float32, a: np.float32, b: np.float32) -> None:
    """Do the same as `_decay64` in float32."""
    for j in range(row.shape[0]):
        s = scale * row[j]
        row[j] = (np.float32(1) + s * (a + b * s)) * _exp32(-s)


@contracted
def laplacian64(X: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Set out[i, j] = exp(-sum_k |X[i, k] - columns[k, j]|).

    `columns` is the transpose of the other matrix, and has a multiple of 4 rows.
    """
    _absolute_differences(X, columns, out)
    for i in range(out.shape[0]):
        _decay64(out[i], 1.0, 0.0, 0.0)


@contracted
def laplacian32(X: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Do the same as `laplacian64` in float32."""
    _absolute_differences(X, columns, out)
    for i in range(out.shape[0]):
        _decay32(out[i], np.float32(1), np.float32(0), np.float32(0))


@contracted
def _absolute_differences(X: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Set out[i, j] = sum_k |X[i, k] - columns[k, j]|.

    Sums of two rows and four columns are computed together, so they mostly stay in registers.
    """
    n_rows, d = X.shape
    for start in range(0, columns.shape[1], _WIDE_TILE):
        stop = min(start + _WIDE_TILE, columns.shape[1])
        out[:, start:stop] = 0
        for k in range(0, d, 4):
            y0, y1 = columns[k, start:stop], columns[k + 1, start:stop]
            y2, y3 = columns[k + 2, start:stop], columns[k + 3, start:stop]
            for i in range(0, n_rows - 1, 2):
                a0, a1, a2, a3 = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
                b0, b1, b2, b3 = X[i + 1, k], X[i + 1, k + 1], X[i + 1, k + 2], X[i + 1, k + 3]
                a, b = out[i, start:stop], out[i + 1, start:stop]
                for j in range(stop - start):
                    p0, p1, p2, p3 = y0[j], y1[j], y2[j], y3[j]
                    a[j] += (abs(a0 - p0) + abs(a1 - p1)) + (abs(a2 - p2) + abs(a3 - p3))
                    b[j] += (abs(b0 - p0) + abs(b1 - p1)) + (abs(b2 - p2) + abs(b3 - p3))
            if n_rows % 2:
                i = n_rows - 1
                a0, a1, a2, a3 = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
                a = out[i, start:stop]
                for j in range(stop - start):
                    p0, p1, p2, p3 = y0[j], y1[j], y2[j], y3[j]
                    a[j] += (abs(a0 - p0) + abs(a1 - p1)) + (abs(a2 - p2) + abs(a3 - p3))


@contracted
def cauchy_products(X: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Set out[i, j] = prod_k 1 / (1 + (X[i, k] - columns[k, j])^2)."""
    one = X.dtype.type(1)
    for start in range(0, columns.shape[1], _TILE):
        stop = min(start + _TILE, columns.shape[1])
        for i in range(X.shape[0]):
            product = out[i, start:stop]
            product[:] = 1
            for k in range(X.shape[1]):
                x, y = X[i, k], columns[k, start:stop]
                for j in range(stop - start):
                    product[j] *= one + (x - y[j]) * (x - y[j])
            for j in range(stop - start):
                product[j] = one / product[j]
