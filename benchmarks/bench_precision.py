"""Products of features in single and double precision: what is learned, and how long it takes."""

from typing import Any

import numpy as np

from benchmarks.grid import prepared
from benchmarks.harness import DATA, once, table
from craftmaps import CraftMap, FourierFeatures, Gaussian, OnePassClassifier, Polynomial
from craftmaps.learn import row_sums

SETS = ("letter", "nursery", "pendigits", "usps", "mnist")
MAPS = {
    "CraftMap(Polynomial(5))": CraftMap(Polynomial(5), 4096, random_state=0),
    "FourierFeatures()": FourierFeatures(Gaussian("median"), 4096, random_state=0),
}
ROWS = 12_000


def report() -> str:
    if not DATA:
        return "## Single and double precision\n\nSkipped: CRAFTMAPS_DATA is not set."
    lines = [line(name, label) for name in SETS for label in MAPS]
    header = ["data", "map", "single, %", "settled, %", "float64 rows, %"]
    header += ["settled on", "s, single", "s, settled", "s, float64 rows"]
    return (
        "## Single and double precision\n\n"
        f"Test errors of OnePassClassifier with 4,096 features of up to {ROWS:,} rows of length 1, "
        "in float32: with products of features in float32, with what the learner settles on by "
        f"itself, and of the same rows in float64; times of the fits.\n\n{table(header, lines)}\n"
    )


def line(name: str, label: str) -> list[Any]:
    X, y, X_test, y_test = prepared(name, "unit norm")
    X, y = X[:ROWS], y[:ROWS]
    errors, times, model = [], [], OnePassClassifier(MAPS[label]).fit(X[:100], y[:100])  # compiles
    looks = row_sums.loses_directions
    for dtype, looking in ((np.float32, lambda Z: False), (np.float32, looks), (np.float64, looks)):
        row_sums.loses_directions = looking
        times.append(once(lambda dtype=dtype: model.fit(X.astype(dtype), y)))
        errors.append(100 * (1 - model.score(X_test.astype(dtype), y_test)))
        if dtype is np.float32:
            settled = model._stream.folds[0].precision.name
    print(name, label, errors, times, settled, flush=True)
    shown = [f"{error:.2f}" for error in errors], [f"{took:.1f}" for took in times]
    return [name, label, *shown[0], settled, *shown[1]]
