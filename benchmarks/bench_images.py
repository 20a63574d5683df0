"""Gradients of images: how many cells, what they gain on rows left out, and what they cost."""

from typing import Any

import numpy as np

from benchmarks.harness import DATA, alternating, table
from craftmaps import CraftMap, ImageMap, OnePassClassifier, Polynomial
from craftmaps.maps.parts.images import gradients
from craftmaps.threads import at_most_threads
from reproduction.rows import unit_rows

SETS = {"mnist": 7, "usps": 5, "coil100": 5}  # and the degree that CRAFT Table 1 has
CELLS = (3, 4, 5, 6, 7, 9)
COMPONENTS = 1024
LEARNED, LEFT = 10_000, 5000  # rows, at most
SEEDS = 3


def report() -> str:
    if not DATA:
        return "## Images as gradients\n\nSkipped: CRAFTMAPS_DATA is not set."
    header = ["data", "pixels", *(f"{cells} x {cells}" for cells in CELLS)]
    return (
        "## Images as gradients\n\n"
        f"Errors in % of OnePassClassifier with {COMPONENTS:,} features of CraftMap, for pixels in "
        "rows of length 1 and for gradients in several grids of cells (ImageMap). The models learn "
        f"from a random two thirds of the training rows, at most {LEARNED:,}. The errors are for "
        f"other training rows, at most {LEFT:,}; no test row was used. Mean and standard deviation "
        f"of {SEEDS} splits.\n\n"
        f"{table(header, [errors(name, degree) for name, degree in SETS.items()])}\n"
        f"Time of one row of MNIST on one thread:\n\n{costs()}"
    )


def errors(name: str, degree: int) -> list[str]:
    data = unit_rows(name)
    inner = CraftMap(Polynomial(degree), COMPONENTS, random_state=0)
    maps = [inner, *(ImageMap(inner, cells=cells) for cells in CELLS)]
    found = []
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(data.X_train))
        n_learned = min(LEARNED, 2 * len(order) // 3)
        learned, left = order[:n_learned], order[n_learned : n_learned + LEFT]

        def error(feature_map: Any, learned: Any = learned, left: Any = left) -> float:
            model = OnePassClassifier(feature_map).fit(data.X_train[learned], data.y_train[learned])
            return 100 * (1 - model.score(data.X_train[left], data.y_train[left]))

        found.append([error(feature_map) for feature_map in maps])
        print(name, seed, np.round(found[-1], 2), flush=True)
    pairs = zip(np.mean(found, axis=0), np.std(found, axis=0, ddof=1), strict=True)
    return [name, *(f"{mean:.2f} ± {spread:.2f}" for mean, spread in pairs)]


def costs() -> str:
    X = unit_rows("mnist").X_train[:4000]
    seen = gradients(X)
    works = {f"gradients in {c} x {c} cells": lambda c=c: gradients(X, c) for c in (5, 7)}
    for label, rows in (("pixels", X), ("gradients in 5 x 5 cells", seen)):
        for size in (1024, 4096):
            fitted = CraftMap(Polynomial(7), size, random_state=0).fit(rows)
            works[f"CraftMap of {label}, {size:,} features"] = lambda fitted=fitted, rows=rows: (
                fitted.transform(rows)
            )
    with at_most_threads(1):
        times = alternating(works)
    lines = [(name, f"{1e6 * took / len(X):.1f}") for name, took in times.items()]
    return table(["work", "us"], lines)
