"""The first fit of a process, and the prediction of one row, in CPU time."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from benchmarks.harness import DATA, table
from craftmaps import CraftMap, OnePassClassifier, Polynomial

FIRST_FIT = """
import time
import numpy as np
from craftmaps import CraftMap, OnePassClassifier, Polynomial
X = np.random.default_rng(0).random((1000, 64), dtype=np.float32)
X /= np.linalg.norm(X, axis=1, keepdims=True)
start = time.process_time()
OnePassClassifier(CraftMap(Polynomial(7), 512, random_state=0)).fit(X, np.arange(1000) % 3)
print(time.process_time() - start)
"""


def report() -> str:
    with tempfile.TemporaryDirectory() as folder:
        first, later = first_fit(folder), first_fit(folder)
    text = "## First use\n\nCPU time, float32.\n\n" + table(
        ["work", "measured", "bar", "aim"],
        [
            ["first fit ever (no compiled code on disk), 64 columns, E = 512", first, "4 s", "2 s"],
            ["first fit of a later process, after the import", later, "1 s", "0.3 s"],
        ],
    )
    if DATA:
        text += "\n" + table(["prediction of one row of MNIST", "median"], one_row())
    return text


def first_fit(folder: str) -> str:
    """CPU seconds of a fit in a process of its own, with compiled code in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", FIRST_FIT], env=environment, capture_output=True, check=True
    )
    return f"{float(result.stdout):.2f} s"


def one_row() -> list[list[str]]:
    with np.load(Path(str(DATA)) / "mnist.npz") as data:
        X = normalize(data["X_train"][:4000].reshape(4000, -1).astype(np.float32))
        y = data["y_train"][:4000]
    machine = SVC(gamma=1.0).fit(X.astype(np.float64), y)
    learner = OnePassClassifier(CraftMap(Polynomial(7), 1024, random_state=0), alpha=0.01).fit(X, y)
    row, exact = X[:1], X[:1].astype(np.float64)
    slow, fast = medians(lambda: machine.predict(exact), lambda: learner.predict(row))
    return [
        [f"SVC, {len(machine.support_)} support vectors", f"{1e6 * slow:.0f} us"],
        ["OnePassClassifier of CraftMap, E = 1,024", f"{1e6 * fast:.0f} us ({slow / fast:.1f} x)"],
    ]


def medians(*works: Callable[[], Any]) -> list[float]:
    """Median CPU times of works that are called in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(300):
        for work, values in zip(works, times, strict=True):
            start = time.process_time()
            work()
            values.append(time.process_time() - start)
    return [statistics.median(values[10:]) for values in times]
