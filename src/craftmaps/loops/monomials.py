"""Monomials of the entries of a row."""

import numpy as np

from craftmaps.loops.compiled import compiled


@compiled
def monomial_rows(X: np.ndarray, first: np.ndarray, scale: np.ndarray, Z: np.ndarray) -> None:
    """Set Z[i, first[n] + l] to the l-th monomial of degree n >= 1 of X[i], times its scale.

    first[n] is -1 for a degree that is not needed. `scale` has an entry for each monomial of all
    degrees. For each variable v in turn, the monomials of degree n are x_v times the monomials of
    degree n - 1 without variables before v, which are the last ones of degree n - 1.
    """
    d = X.shape[1]
    u = np.empty(scale.shape[0], X.dtype)
    tail = np.empty(d, np.int64)  # the first monomial without variables before v
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
