"""feature_map="local" against "auto": test errors and CPU times on tables of 13,000 rows or more.

`python -m benchmarks local` measures all tables, and `python -m benchmarks.bench_local covertype`
some of them.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import DATA, table
from benchmarks.league.datasets import CLASSIFICATION, DATASETS, Rows
from craftmaps import KernelClassifier, KernelRegressor

TABLES: tuple[tuple[str, int | None], ...] = (  # the name, and how many training rows are used
    ("california", None),
    ("magic", None),
    ("protein", None),
    ("ijcnn1", None),
    ("covertype", 50_000),
    ("covertype", None),
)
MOST_ROWS_OF_AUTO = 100_000  # with more rows, only feature_map="local" is measured
HEADER = ("data", "rows", "feature map", "test error", "expected", "log-loss", "CPU s", "predict")


def report() -> str:
    if not DATA:
        return "## Local machines\n\nSkipped: CRAFTMAPS_DATA is not set."
    lines = [line for name, rows in TABLES for line in measured(name, rows)]
    return (
        "## Local machines\n\n"
        "An exact kernel in each leaf of a tree (`feature_map='local'`) against Nyström features "
        "for all rows ('auto'), both at their defaults, in one thread. Errors are shares of wrong "
        "classes, or RMSE in standard deviations of the target. 'expected' is the error that the "
        "model itself expects. The last columns are the CPU seconds of the fit, with the search, "
        f"and the CPU microseconds of a prediction.\n\n{table(HEADER, lines)}"
    )


def measured(name: str, max_rows: int | None) -> list[list[Any]]:
    """One line for each feature map."""
    dataset = next(one for one in DATASETS if one.name == name)
    rows = Rows.of(dataset, Path(str(DATA)), max_rows)
    kind = KernelClassifier if dataset.task == CLASSIFICATION else KernelRegressor
    maps = ("local", "auto") if len(rows.y) <= MOST_ROWS_OF_AUTO else ("local",)
    return [line(name, rows, kind(feature_map, random_state=0)) for feature_map in maps]


def line(name: str, rows: Rows, model: Any) -> list[Any]:
    start = time.process_time()
    model.fit(rows.X, rows.y)
    fitted = time.process_time()
    predicted = model.predict(rows.X_test)
    per_row = (time.process_time() - fitted) / len(predicted)
    loss = ""
    if rows.n_classes:
        error = float(np.mean(predicted != rows.y_test))
        right = model.predict_proba(rows.X_test)[np.arange(len(predicted)), rows.y_test]
        loss = f"{-np.log(np.maximum(right, 1e-15)).mean():.4f}"
    else:
        error = float(np.sqrt(np.mean((predicted - rows.y_test) ** 2)) / rows.y_test.std())
    found = [name, f"{len(rows.y):,}", model.feature_map, f"{error:.4f}"]
    found += [f"{model.report_.error:.4f}", loss, f"{fitted - start:.0f}", f"{1e6 * per_row:.0f}"]
    print(found, flush=True)
    return found


if __name__ == "__main__":
    lines = [one for name, rows in TABLES if name in sys.argv[1:] for one in measured(name, rows)]
    print(table(HEADER, lines))
