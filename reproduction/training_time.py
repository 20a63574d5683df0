"""Test error and CPU time of training: our learners, the papers', and those of other libraries."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from craftmaps.learn import KernelClassifier
from craftmaps.threads import at_most_threads
from reproduction.classification import model_of
from reproduction.datasets import Dataset, Missing
from reproduction.rows import raw_rows, unit_rows
from reproduction.spec import Run
from reproduction.svm import best_penalty

SEARCHED = "KernelClassifier()"  # with its defaults, and a budget of as many components
_SEARCH_ROWS = 4000  # for C
_WARM_UP_ROWS = 500
_LIBSVM_CACHE_MEGABYTES = 1000


def measure(run: Run) -> dict[str, float]:
    """Test error in per cent, and CPU seconds of the fit on one thread.

    The size is a number of features, of training rows (LIBSVM), or of boosting rounds (LightGBM).
    The choice of C by cross-validation on 4,000 training rows is not counted; the library's own
    learners choose alpha, and `KernelClassifier()` its map, as part of the fit.
    """
    method, size = run["method"], run["size"]
    raw = method == SEARCHED or method in PEERS
    data = (raw_rows if raw else unit_rows)(run["data"], run["seed"])
    X, y = data.X_train[: run.get("train_rows")], data.y_train[: run.get("train_rows")]
    with at_most_threads(1):
        if method in PEERS:
            X, y = (X[:size], y[:size]) if method == "LIBSVM" else (X, y)
            model = PEERS[method](X, y, run)
        elif method == SEARCHED:
            model = KernelClassifier(budget=size, random_state=run["seed"])
        else:
            model = model_of(run, data, size)
        if method not in PEERS:
            model.fit(X[:_WARM_UP_ROWS], y[:_WARM_UP_ROWS])  # compiles
        start = time.process_time()
        model.fit(X, y)
        took = time.process_time() - start
        return {"error": _error(model, data), "train_seconds": took}


def _error(model: Any, data: Dataset) -> float:
    assert data.X_test is not None
    return 100 * float(np.mean(model.predict(data.X_test) != data.y_test))


def _support_vectors(X: np.ndarray, y: np.ndarray, run: Run) -> SVC:
    model = SVC(cache_size=_LIBSVM_CACHE_MEGABYTES)  # the width is by the variance of X
    return model.set_params(C=best_penalty(model, X, y, _SEARCH_ROWS))


def _nystroem(X: np.ndarray, y: np.ndarray, run: Run) -> Any:
    gamma = 1 / (X.shape[1] * float(X.var()))  # as SVC has it by default
    drawn = Nystroem(gamma=gamma, n_components=run["size"], random_state=run["seed"])
    linear = LogisticRegression(max_iter=1000)
    Z = drawn.fit(X).transform(X[:_SEARCH_ROWS])
    return make_pipeline(
        drawn, linear.set_params(C=best_penalty(linear, Z, y[:_SEARCH_ROWS], _SEARCH_ROWS))
    )


def _boosted_trees(X: np.ndarray, y: np.ndarray, run: Run) -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise Missing("LightGBM is not installed: pip install lightgbm.") from None
    return LGBMClassifier(
        n_estimators=run["size"], n_jobs=1, random_state=run["seed"], verbosity=-1
    )


PEERS: dict[str, Callable[[np.ndarray, np.ndarray, Run], Any]] = {
    "LIBSVM": _support_vectors,
    "Nystroem + LogisticRegression": _nystroem,
    "LightGBM": _boosted_trees,
}
