"""Ridge classification with all rows as landmarks, in the memory of their kernel matrix.

When the n landmarks are the rows themselves, their features Z satisfy Z Z^T = K. The coefficients
are then Z^T c with (K + alpha I) c = y, so no feature has to be computed. K is in single precision:
for the 60,000 rows of MNIST it takes 14 GB.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning, cho_factor, cho_solve, solve_triangular

from craftmaps.learn import OnePassClassifier
from craftmaps.learn.codes import CodeMatrix, OneVsRest
from craftmaps.learn.solvers.conjugate_gradients import (
    block_conjugate_gradients,
    independent_targets,
)
from craftmaps.maps import Nystroem
from craftmaps.maps.wrapped import WrappedMap

_KERNEL_BLOCK_ROWS = 1000
_MAX_SAMPLE_ROWS = 4096  # the preconditioner is made of the kernel of at most so many rows
_SAMPLE_STEP = 8  # and of at most one row in eight
_SOLVED_DIGITS = 2 / 3  # share of the digits of single precision, as in the learner


def has_landmarks(model: Any) -> bool:
    """Whether the map of a pipeline, fitted or not, has landmarks."""
    found = model[-1].feature_map
    while isinstance(found, WrappedMap):
        found = found.feature_map
    return isinstance(found, Nystroem)


def predictions(model: Any, X: np.ndarray, y: np.ndarray, X_test: Any) -> np.ndarray:
    """Labels of test rows as if all rows X were landmarks of the Nyström map of a fitted pipeline.

    Kernel, scaling, metric, code and alpha come from the pipeline.
    """
    learner, (rows, kernel) = model[-1], _seen(model, X)
    code, labels = _code_of(learner), np.searchsorted(learner.classes_, y)
    targets = code.encode(labels).astype(np.float64)
    coef, intercept = dual_ridge(kernel, rows, targets, float(learner.alpha_))
    narrow = coef.astype(rows.dtype)
    found = []
    for some in _blocks(len(X_test)):
        predicted = kernel(_seen(model, X_test[some])[0], rows) @ narrow + intercept
        found.append(code.scores(predicted).argmax(axis=1))
    return np.asarray(learner.classes_[np.concatenate(found)])


def _code_of(learner: OnePassClassifier) -> OneVsRest | CodeMatrix:
    if learner.code_matrix_ is None:
        return OneVsRest(len(learner.classes_))
    return CodeMatrix(learner.code_matrix_, learner.decoding)


def dual_ridge(
    kernel: Any, X: np.ndarray, Y: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """c and b of the predictions K(x, X) c + b, ridge regression with an intercept.

    (C K C + alpha I) c = C Y with C = I - 1 1^T / n, by conjugate gradients for all targets
    together. The preconditioner is F F^T + alpha I, F F^T being the Nyström approximation of the
    centred kernel by some of the rows (Diaz, Epperly, Frangella, Tropp and Webber 2023).
    """
    K = np.empty((len(X), len(X)), np.float32)
    for some in _blocks(len(X)):
        K[some] = kernel(X[some], X)
    least = float(np.finfo(np.float32).eps) * float(K.trace(dtype=np.float64))
    if alpha < least:
        raise ValueError(
            f"alpha={alpha:.3g} is lost in a kernel matrix of single precision; give at least "
            f"{least:.3g}."
        )

    def times(V: np.ndarray) -> np.ndarray:
        return _centred((K @ _centred(V).astype(np.float32)).astype(np.float64)) + alpha * V

    _, basis, back = independent_targets(Y, np.ones(len(Y)))
    tolerance = float(np.finfo(np.float32).eps) ** _SOLVED_DIGITS
    solved, reached = block_conjugate_gradients(
        times, _preconditioner(K, alpha), basis, basis.shape[1], tolerance
    )
    if not reached:
        warnings.warn(f"the dual was not solved at alpha={alpha}.", LinAlgWarning, stacklevel=2)
    coef = _centred(solved @ back)
    return coef, Y.mean(axis=0) - (K @ coef.astype(np.float32)).mean(axis=0, dtype=np.float64)


def _preconditioner(K: np.ndarray, alpha: float) -> Any:
    """(F F^T + alpha I)^-1, by the inverse of F^T F + alpha I."""
    known = slice(None, None, max(_SAMPLE_STEP, -(-len(K) // _MAX_SAMPLE_ROWS)))
    columns = np.ascontiguousarray(K[:, known])
    small = columns[known].astype(np.float64)
    small[np.diag_indices(len(small))] += np.finfo(np.float32).eps * np.trace(small)
    lower = np.linalg.cholesky(small).astype(np.float32)
    F = np.ascontiguousarray(solve_triangular(lower, columns.T, lower=True).T)
    F -= F.mean(axis=0)
    inner = (F.T @ F).astype(np.float64)
    inner[np.diag_indices(len(inner))] += alpha
    factor = cho_factor(inner)

    def precondition(R: np.ndarray) -> np.ndarray:
        part = cho_solve(factor, (F.T @ R.astype(np.float32)).astype(np.float64))
        return np.asarray(R - F @ part.astype(np.float32)) / alpha

    return precondition


def _centred(V: np.ndarray) -> np.ndarray:
    return np.asarray(V - V.mean(axis=0))


def _seen(model: Any, X: np.ndarray) -> tuple[np.ndarray, Any]:
    """Rows as the kernel of a fitted pipeline sees them, and that kernel."""
    X = model[:-1].transform(X)
    found = model[-1].feature_map_
    while isinstance(found, WrappedMap):
        X = found._prepared(X).astype(X.dtype, copy=False)
        found = found.feature_map_
    return np.asarray(X), found.kernel_


def _blocks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _KERNEL_BLOCK_ROWS):
        yield slice(start, start + _KERNEL_BLOCK_ROWS)
