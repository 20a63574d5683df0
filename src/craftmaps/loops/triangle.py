"""Sums over one triangle of a symmetric matrix, in place and on all threads."""

import numpy as np

from craftmaps.loops.compiled import compiled
from craftmaps.loops.rows import for_each_block


def add_to_triangle(
    total: np.ndarray, part: np.ndarray | None, scales: np.ndarray, vectors: np.ndarray
) -> None:
    """total += part + sum_r scales[r] vectors[r] vectors[r]^T, in the lower triangle only.

    `total` is a Fortran-ordered float64 matrix, `part` one of the same shape and order, float32 or
    float64, or None for zero. Nothing as large as `total` is allocated.
    """
    weighted = vectors * scales[:, None]
    upper = total.T  # the loops walk along contiguous rows of the transpose

    def task(start: int, stop: int) -> None:
        if part is not None:
            _add_part(upper, part.T, start, stop)
        for left, right in zip(weighted, vectors, strict=True):
            _add_outer(upper, left, right, start, stop)

    row_bytes = len(total) * (8 + (0 if part is None else part.itemsize))
    for_each_block(task, len(total), row_bytes, max_rows=64)


@compiled
def _add_part(total, part, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        for j in range(i, total.shape[0]):
            total[i, j] += part[i, j]


@compiled
def _add_outer(total, left, right, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        scale = left[i]
        for j in range(i, total.shape[0]):
            total[i, j] += scale * right[j]
