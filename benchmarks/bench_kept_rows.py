"""Fewer rows than features: conjugate gradients against the space that the rows span."""

from typing import Any

import numpy as np

from benchmarks.grid import prepared
from benchmarks.harness import DATA, once, table
from craftmaps import CraftMap, OnePassClassifier, Polynomial, RandomMaclaurin
from craftmaps.learn.solvers.conjugate_gradients import KeptRows

ROWS = (2048, 4096)
MAPS = {
    "RandomMaclaurin": RandomMaclaurin(Polynomial(7), random_state=0),
    "CraftMap": CraftMap(Polynomial(7), random_state=0),
}
ALPHAS = (1.0, 100.0)


def report() -> str:
    if not DATA:
        return "## Fewer rows than features\n\nSkipped: CRAFTMAPS_DATA is not set."
    X, y, X_test, _ = prepared("mnist", "unit norm")
    lines = [
        line(name, X[:n], y[:n], X_test, alpha) for name in MAPS for n in ROWS for alpha in ALPHAS
    ]
    header = ["map", "rows", "features", "alpha", "span, s", "iteration, s", "ratio"]
    header += ["difference of predictions", "other classes"]
    return (
        "## Fewer rows than features\n\n"
        "Rows of MNIST of length 1, the kernel (1 + t)^7, twice as many features as rows, in "
        "single precision; times of learning alone. Differences are root mean squares over those "
        f"of the predictions for {len(X_test)} test rows.\n\n{table(header, lines)}\n"
    )


def line(name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, alpha: float) -> list[Any]:
    n = len(X)
    feature_map = MAPS[name].set_params(n_components=2 * n).fit(X)
    Z, Z_test = feature_map.transform(X), feature_map.transform(X_test)
    spanned = OnePassClassifier(alpha=alpha)
    in_span = once(lambda: spanned.fit(Z, y))
    Y = np.where(y[:, None] == spanned.classes_, 1.0, -1.0)
    found = []
    by_iteration = once(lambda: found.append(KeptRows(Z, None, True).solve(Y, alpha)))
    expected = spanned.decision_function(Z_test)
    predicted = Z_test @ found[0].coef + found[0].intercept
    difference = np.sqrt(np.mean((predicted - expected) ** 2) / np.mean(expected**2))
    others = (predicted.argmax(axis=1) != expected.argmax(axis=1)).sum()
    ratio = in_span / by_iteration
    print(name, n, alpha, in_span, by_iteration, difference, others, flush=True)
    shown = [f"{in_span:.1f}", f"{by_iteration:.1f}", f"{ratio:.1f}", f"{difference:.0e}", others]
    return [name, n, 2 * n, f"{alpha:g}", *shown]
