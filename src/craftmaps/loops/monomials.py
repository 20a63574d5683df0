"""The monomials of a row's entries."""

import numpy as np

from craftmaps.loops.compiled import compiled


@compiled
def monomial_rows(X: np.ndarray, first: np.ndarray, scale: np.ndarray, Z: np.ndarray) -> None:
    """Z[i, first[n] + l] = the l-th monomial of degree n >= 1 in the row X[i], times its scale.

    first[n] is -1 for a degree that is not wanted; `scale` goes through the monomials of all
    degrees. Those of degree n are x_v times each of degree n - 1 that has no variable before v, for
    one v after another: they stand together, at the end of that degree.
    """
    d = X.shape[1]
    u = np.empty(scale.shape[0], X.dtype)
    tail = np.empty(d, np.int64)  # where the monomials without a variable before v begin
    for i in range(X.shape[0]):
        start, end = 0, d
        for v in range(d):
            u[v] = X[i, v]
            tail[v] = v
        for n in range(1, first.shape[0]):
            if n > 1:
                place = end
                for v in range(d):
                    x, low = u[v], tail[v]
                    tail[v] = place
                    for j in range(end - low):
                        u[place + j] = x * u[low + j]
                    place += end - low
                start, end = end, place
            if first[n] >= 0:
                for l in range(end - start):
                    Z[i, first[n] + l] = scale[start + l] * u[start + l]
