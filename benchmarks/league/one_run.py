"""One learner on one table, in a process of its own: measures, as lines of JSON on stdout.

The first line says what is run, so that a run which is stopped can be written down too.
"""

import json
import platform
import re
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification, make_regression

from benchmarks.league.case import Case
from benchmarks.league.columns import plain
from benchmarks.league.datasets import CLASSIFICATION, DATASETS, Rows
from benchmarks.league.methods import METHODS
from benchmarks.league.ours import expectations
from reproduction.environment import environment

LEAST_PROBABILITY = 1e-15
WARM_UP_ROWS, WARM_UP_COLUMNS = 120, 5


def main(job: dict[str, Any]) -> None:
    limit_resources(job["time_limit"], job["memory_limit"])
    dataset = next(one for one in DATASETS if one.name == job["dataset"])
    method = next(one for one in METHODS if one.name == job["method"])
    rows = Rows.of(dataset, Path(job["folder"]), job["max_rows"])
    X, X_test = rows.X, rows.X_test
    if not method.is_ours:
        X, X_test = plain(X, X_test)
    about = environment()
    write(
        n_train=len(rows.y),
        n_test=len(rows.y_test),
        n_columns=X.shape[1],
        n_classes=rows.n_classes,
        max_rows=job["max_rows"] if rows.capped else None,
        cpu=about["cpu"],
        cores=about["cores"],
        python=platform.python_version(),
        versions={name: version(name) for name in {method.package, "scikit-learn", "numpy"}},
        commit=about["commit"] if method.is_ours else None,
    )
    case = Case(dataset.task, X, job["seed"], job["threads"], job["lightgbm_seconds"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matters of them shows in the errors
        warm_up(method.make, case)
        model = method.make(case)
        fitting = timed(lambda: model.fit(X, rows.y))
        predicting = timed(lambda: outputs(model, X_test, dataset.task))
    write(
        **scores(predicting["result"], rows),
        fit_seconds=fitting["seconds"],
        fit_cpu_seconds=fitting["cpu_seconds"],
        predict_seconds=predicting["seconds"],
        predict_cpu_seconds=predicting["cpu_seconds"],
        peak_bytes=peak_bytes(),
        **(expectations(model) if method.is_ours else {}),
    )


def write(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def limit_resources(seconds: float | None, gigabytes: float | None) -> None:
    """Have the system end this process when it takes more; time is that of the processor."""
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    if gigabytes is not None:
        size = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def warm_up(make: Callable[[Case], Any], case: Case) -> None:
    """Fit a few generated rows, so that imports and compilation are in nobody's time."""
    generated = make_classification if case.task == CLASSIFICATION else make_regression
    X, y = generated(WARM_UP_ROWS, WARM_UP_COLUMNS, random_state=0)
    make(replace(case, X=X, lightgbm_seconds=0.1)).fit(X, y).predict(X)


def timed(work: Callable[[], Any]) -> dict[str, Any]:
    """The result of `work`, its seconds, and the seconds of all its threads together."""
    start, cpu_start = time.perf_counter(), time.process_time()
    result = work()
    return {
        "result": result,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
    }


def outputs(model: Any, X: Any, task: str) -> np.ndarray:
    """Probabilities where a classifier has them, predictions otherwise."""
    has_probabilities = task == CLASSIFICATION and hasattr(model, "predict_proba")
    return np.asarray((model.predict_proba if has_probabilities else model.predict)(X))


def scores(predicted: np.ndarray, rows: Rows) -> dict[str, float | None]:
    """Share of wrong labels and log-loss; or root mean square error over the spread of targets."""
    truth = rows.y_test
    if rows.n_classes is None:
        error = np.sqrt(np.mean((np.ravel(predicted) - truth) ** 2)) / np.std(truth)
        return {"error": float(error), "log_loss": None}
    if predicted.ndim == 1:
        return {"error": float(np.mean(predicted != truth)), "log_loss": None}
    predicted = predicted.astype(float) / predicted.sum(axis=1, keepdims=True)
    known = np.where(truth >= 0, predicted[np.arange(len(truth)), truth], 0)
    return {
        "error": float(np.mean(predicted.argmax(axis=1) != truth)),
        "log_loss": float(-np.mean(np.log(np.maximum(known, LEAST_PROBABILITY)))),
    }


def peak_bytes() -> int:
    """Resident memory at its most; ru_maxrss would include the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
