"""Count sketches: each entry of a row is added, with a sign, to the bucket of its column."""

import numpy as np

from craftmaps.loops.compiled import compiled


@compiled
def sketch_dense(X: np.ndarray, bucket: np.ndarray, sign: np.ndarray, out: np.ndarray) -> None:
    """Add sign[j] X[i, j] to out[i, bucket[j]]."""
    for i in range(X.shape[0]):
        row, sketch = X[i], out[i]
        for j in range(row.shape[0]):
            sketch[bucket[j]] += sign[j] * row[j]


@compiled
def fold_rows(U: np.ndarray, sign: np.ndarray, out: np.ndarray) -> None:
    """Set out[i, l] = sum_b sign[bE + l] U[i, bE + l], where `out` has E columns."""
    width = out.shape[1]
    for i in range(U.shape[0]):
        target = out[i]
        target[:] = 0
        for start in range(0, U.shape[1], width):
            row, signs = U[i, start : start + width], sign[start : start + width]
            for l in range(row.shape[0]):
                target[l] += signs[l] * row[l]


@compiled
def sketch_sparse(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    bucket: np.ndarray,
    sign: np.ndarray,
    out: np.ndarray,
) -> None:
    """Do the same as `sketch_dense` for the rows of a CSR matrix."""
    for i in range(out.shape[0]):
        sketch = out[i]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            sketch[bucket[j]] += sign[j] * data[k]
