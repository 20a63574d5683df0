"""Accuracy and CPU time: exact SVMs against linear ones on random features (KK and PP)."""

import functools
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

from craftmaps.kernels import DotProductKernel, Polynomial
from craftmaps.learn import KernelClassifier, OnePassClassifier
from craftmaps.threads import at_most_threads
from reproduction.dot_maps import MAPS, kernel_of, map_of
from reproduction.rows import Rows, rows_of
from reproduction.spec import Run, key_of

EXACT = "K + LIBSVM"
LIBLINEAR = "LIBLINEAR"
OURS: dict[str, Callable[..., Any]] = {
    "one pass": OnePassClassifier,
    "log-loss": functools.partial(KernelClassifier, loss="log"),
}
METHODS = (EXACT, *(f"{name} + {by}" for name in MAPS for by in (LIBLINEAR, *OURS)))

_PENALTIES = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]  # (1 + t)^10 reaches 1,024
_SEARCH_ROWS = 1000
_LIBSVM_CACHE_MEGABYTES = 1000
_KERNEL_BLOCK_ROWS = 1000


def measure(run: Run) -> dict[str, float]:
    """Accuracy in per cent and CPU seconds on one thread.

    Training includes the construction of features or of the Gram matrix; testing is that of all
    rows that were not trained on, by the time of those that were tested. The choice of C, by 3-fold
    cross-validation on up to 1,000 training rows, is not counted. That of alpha, by the library's
    own learners, is.
    """
    method = run["method"]
    with at_most_threads(1):
        if method == EXACT:
            return _exact(key_of({name: run[name] for name in run if name != "size"}))
        name, _, learner = method.partition(" + ")
        rows = rows_of(run)
        drawn = map_of(
            name,
            kernel_of(run["kernel"], rows.X_train),
            run["size"],
            n_columns=rows.X_train.shape[1],
            seed=run["seed"],
        )
        return _linear(drawn, rows) if learner == LIBLINEAR else _ours(OURS[learner](drawn), rows)


def _linear(drawn: Any, rows: Rows) -> dict[str, float]:
    drawn.fit(rows.X_train[:64]).transform(rows.X_train[:64])  # compiles
    Z, map_seconds = _timed(lambda: drawn.fit_transform(rows.X_train))
    model = LinearSVC(dual=True, tol=0.1, random_state=0)  # as LIBLINEAR is by default
    model.C = best_penalty(model, Z, rows.y_train)
    _, fit_seconds = _timed(lambda: model.fit(Z, rows.y_train))
    found, test_seconds = _timed(lambda: model.predict(drawn.transform(rows.X_test)))
    return _values(rows, found, map_seconds + fit_seconds, test_seconds) | {
        "map_seconds": map_seconds,
        "fit_seconds": fit_seconds,
        "C": model.C,
        "converged": float(np.max(model.n_iter_) < model.max_iter),
    }


def _ours(model: Any, rows: Rows) -> dict[str, float]:
    model.fit(rows.X_train[:64].astype(np.float32), np.arange(64) % 2)  # compiles
    _, train_seconds = _timed(lambda: model.fit(rows.X_train.astype(np.float32), rows.y_train))
    found, test_seconds = _timed(lambda: model.predict(rows.X_test.astype(np.float32)))
    return _values(rows, found, train_seconds, test_seconds) | {"alpha": float(model.alpha_)}


@functools.cache
def _exact(key: str) -> dict[str, float]:
    """The exact SVM of a run, given as its key: the same for every number of random features."""
    run = json.loads(key)
    rows = rows_of(run)
    kernel = kernel_of(run["kernel"], rows.X_train)
    if isinstance(kernel, Polynomial):
        of_kernel = {"degree": kernel.degree, "gamma": kernel.gamma, "coef0": kernel.coef0}
        model = SVC(kernel="poly", cache_size=_LIBSVM_CACHE_MEGABYTES, **of_kernel)
        X, gram_seconds = rows.X_train, 0.0
    else:
        model = SVC(kernel="precomputed", cache_size=_LIBSVM_CACHE_MEGABYTES)
        X, gram_seconds = _timed(lambda: kernel(rows.X_train))
    model.C = best_penalty(model, X, rows.y_train)
    _, fit_seconds = _timed(lambda: model.fit(X, rows.y_train))
    found, test_seconds = _timed(lambda: _predicted(model, kernel, rows))
    return _values(rows, found, gram_seconds + fit_seconds, test_seconds) | {
        "C": model.C,
        "support_vectors": float(model.n_support_.sum()),
    }


def _predicted(model: SVC, kernel: DotProductKernel, rows: Rows) -> np.ndarray:
    if model.kernel != "precomputed":
        return np.asarray(model.predict(rows.X_test))
    found = []
    for start in range(0, len(rows.X_test), _KERNEL_BLOCK_ROWS):
        X = rows.X_test[start : start + _KERNEL_BLOCK_ROWS]
        K = np.zeros((len(X), len(rows.X_train)))  # columns of the other rows are not read
        K[:, model.support_] = kernel(X, rows.X_train[model.support_])
        found.append(model.predict(K))
    return np.concatenate(found)


def best_penalty(model: Any, X: np.ndarray, y: np.ndarray, n_rows: int = _SEARCH_ROWS) -> float:
    """C by cross-validation on the first rows; the smallest of equal ones."""
    few = slice(n_rows)
    X = X[few, few] if getattr(model, "kernel", "") == "precomputed" else X[few]
    search = GridSearchCV(model, {"C": _PENALTIES}, cv=3).fit(X, y[few])
    return float(search.best_params_["C"])


def _values(
    rows: Rows, found: np.ndarray, train_seconds: float, test_seconds: float
) -> dict[str, float]:
    return {
        "accuracy": 100 * float(np.mean(found == rows.y_test)),
        "train_seconds": train_seconds,
        "test_seconds": test_seconds * rows.n_tested / len(rows.y_test),
    }


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = call()
    return result, time.process_time() - start
