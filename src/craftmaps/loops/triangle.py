"""Add to one triangle of a symmetric matrix, in place and with all threads."""

import numpy as np

from craftmaps.loops.compiled import compiled
from craftmaps.threads import for_each_block


def add_to_triangle(
    total: np.ndarray, part: np.ndarray | None, scales: np.ndarray, vectors: np.ndarray
) -> None:
    """Add part + sum_r scales[r] vectors[r] vectors[r]^T to the lower triangle of `total`.

    `total` is a Fortran-ordered float64 matrix. `part` is a float32 or float64 matrix of the same
    shape and order, or None for zero. Nothing as large as `total` is allocated.
    """
    weighted = vectors * scales[:, None]
    upper = total.T  # the loops walk along contiguous rows of the transpose

    def task(start: int, stop: int) -> None:
        if part is None:
            _add_outer(upper, weighted, vectors, start, stop)
        else:
            _add_all(upper, part.T, weighted, vectors, start, stop)

    row_bytes = len(total) * (8 + (0 if part is None else part.itemsize))
    for_each_block(task, len(total), row_bytes, max_rows=64)


@compiled
def _add_outer(total, weighted, vectors, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        for r in range(vectors.shape[0]):
            scale = weighted[r, i]
            for j in range(i, total.shape[0]):
                total[i, j] += scale * vectors[r, j]


@compiled
def _add_all(total, part, weighted, vectors, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):  # all terms of a row while it is in the cache
        for j in range(i, total.shape[0]):
            total[i, j] += part[i, j]
        _add_outer(total, weighted, vectors, i, i + 1)
