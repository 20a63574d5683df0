"""How good the advice of `recommend` is: against a full grid, and against plain defaults."""

import os
import time
import warnings
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from benchmarks.grid import (
    CLASSIFICATION,
    N_COMPONENTS,
    REGRESSION,
    full_grid,
    is_classification,
    load,
)
from benchmarks.harness import DATA, table
from craftmaps import CraftMap, FourierFeatures, OnePassClassifier, OnePassRegressor
from craftmaps.diagnose import recommend

KEPT = "Grids that an earlier run had kept were not run again; their times are of that run.\n\n"
HEADER = [
    "data",
    "recommend",
    "best of the grid",
    "ratio (bar 1.10)",
    "time, s",
    "grid, s",
    "share of the grid's time (bar 10 %)",
    "plain: CraftMap",
    "plain: FourierFeatures",
    "advice",
]


def report() -> str:
    if not DATA:
        return "## Advice against a full grid\n\nSkipped: CRAFTMAPS_DATA is not set."
    lines = [line(name) for name in (*CLASSIFICATION, *REGRESSION)]
    good = [cells for cells in lines if float(cells[3]) <= 1.10]
    quick = [cells for cells in lines if float(cells[6].split()[0]) <= 10]
    safe = [cells for cells in lines if float(cells[1]) <= min(float(cells[7]), float(cells[8]))]
    return (
        "## Advice against a full grid\n\n"
        f"`recommend(X, y, budget={N_COMPONENTS})` on the training rows, its estimator fitted to "
        "all of them; errors on the test rows (share of wrong labels; for california and kin8nm "
        "root mean square error over the standard deviation). The grid has every map of the "
        f"library at {N_COMPONENTS} components, several kernels, four preprocessings and all "
        "alphas, and its best is picked on the test rows. Plain is `CraftMap()` on unit-norm rows "
        "and `FourierFeatures()` on standardised rows, of the same size.\n\n"
        f"{KEPT if 'CRAFTMAPS_GRIDS' in os.environ else ''}{table(HEADER, lines)}\n"
        f"Within 10 % of the best of the grid: {len(good)} of {len(lines)}. In at most 10 % of its "
        f"time: {len(quick)} of {len(lines)}. Not worse than either plain default: {len(safe)} of "
        f"{len(lines)}.\n"
    )


def line(name: str) -> list[Any]:
    X, y, X_test, y_test = load(name)
    points = full_grid(name)
    recommend(X[:200], y[:200], budget=64)  # compiles
    start = time.perf_counter()
    advice = recommend(X, y, budget=N_COMPONENTS)
    seconds = time.perf_counter() - start
    learner = OnePassClassifier if is_classification(name) else OnePassRegressor
    size: dict[str, Any] = {"n_components": N_COMPONENTS, "random_state": 0}
    models = [
        advice.estimator,
        make_pipeline(Normalizer(), learner(CraftMap(**size))),
        make_pipeline(StandardScaler(), learner(FourierFeatures(**size))),
    ]
    errors = [test_error(name, model, X, y, X_test, y_test) for model in models]
    best = min(points, key=lambda point: point.error)
    whole = sum(point.seconds for point in points)
    print(f"{name}: {errors}, {best}, {seconds:.1f} of {whole:.0f} s\n{advice}", flush=True)
    return [
        name,
        f"{errors[0]:.4f}",
        f"{best.error:.4f}",
        f"{errors[0] / best.error:.2f}",
        f"{seconds:.1f}",
        f"{whole:.0f}",
        f"{100 * seconds / whole:.0f} %",
        f"{errors[1]:.4f}",
        f"{errors[2]:.4f}",
        f"{advice.report.kernel} on {advice.report.preparation}",
    ]


def test_error(name: str, model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.fit(X, y).predict(X_test)
    if is_classification(name):
        return float(np.mean(predicted != y_test))
    return float(np.sqrt(np.mean((predicted - y_test) ** 2)) / np.std(y_test))
