"""Time of `KernelClassifier()` and `KernelRegressor()` from rows to a model, with the search."""

import time
from typing import Any

import numpy as np

from benchmarks.harness import table
from craftmaps import KernelClassifier, KernelRegressor

SIZES = ((500, 10), (1000, 20), (2000, 32), (10_000, 50), (100_000, 50))
COMPONENTS = 1024
TIMES = ("1s", "2s", "5s", "10s")
TIMED_SIZES = ((2000, 32), (10_000, 50))
HEADER = ("rows", "columns", "budget", "numbers", "search", "classes", "search")


def report() -> str:
    fitted(KernelClassifier, *rows_of(300, 5, True), 64)  # compiles the loops
    fitted(KernelRegressor, *rows_of(300, 5, False), 64)
    lines = [line(n, d, COMPONENTS) for n, d in SIZES]
    lines += [line(n, d, budget) for budget in TIMES for n, d in TIMED_SIZES]
    return (
        "## Time of the search\n\n"
        "Seconds of `fit` with `feature_map='auto'`, all threads, and the seconds of the search "
        "inside. Tables are made up: two columns interact, two others count alone, the rest is "
        "noise. A budget is a number of features, or a time.\n\n" + table(HEADER, lines)
    )


def line(n_rows: int, n_columns: int, budget: Any) -> list[Any]:
    cells: list[Any] = [f"{n_rows:,}", n_columns, budget]
    for kind, classes in ((KernelRegressor, False), (KernelClassifier, True)):
        seconds, search = fitted(kind, *rows_of(n_rows, n_columns, classes), budget)
        cells += [f"{seconds:.1f}", f"{search:.1f}"]
    print(cells, flush=True)
    return cells


def rows_of(n_rows: int, n_columns: int, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    smooth = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.5 * X[:, 3]
    y = smooth + 0.3 * rng.standard_normal(n_rows)
    return X, y > np.median(y) if classes else y


def fitted(kind: Any, X: np.ndarray, y: np.ndarray, budget: Any) -> tuple[float, float]:
    start = time.perf_counter()
    model = kind(budget=budget, random_state=0).fit(X, y)
    return time.perf_counter() - start, model.report_.seconds
