"""kernel="auto" against polynomial kernels of fixed degree and a Gaussian, at equal size."""

from typing import Any

import numpy as np

from benchmarks.grid import (
    CLASSIFICATION,
    N_COMPONENTS,
    REGRESSION,
    learned_error,
    prepared,
    widths,
)
from benchmarks.harness import DATA, table
from craftmaps import CraftMap, FourierFeatures, Gaussian, Polynomial

DEGREES = (2, 3, 5, 7)
FACTORS = (0.5, 2, 8)


def report() -> str:
    if not DATA:
        return '## kernel="auto"\n\nSkipped: CRAFTMAPS_DATA is not set.'
    lines = [
        line(name, preprocessing)
        for name in (*CLASSIFICATION, *REGRESSION)
        for preprocessing in ("centred, unit norm", "standardised")
    ]
    header = ["data", "preprocessing", *(f"degree {p}" for p in DEGREES), "Gaussian", "auto", ""]
    good = sum(cells[-1].startswith("best") for cells in lines)
    close = sum(float(cells[-1].split()[-1].strip("()")) <= 1.10 for cells in lines)
    return (
        '## kernel="auto"\n\n'
        f"Test errors of `CraftMap` with {N_COMPONENTS} components (`FourierFeatures`, orthogonal, "
        "for the Gaussian, the best of three widths on the test rows), alpha by GCV, one seed. The "
        "last column is the error of auto over the best of the others.\n\n"
        f"{table(header, lines)}\n"
        f"Auto is the best in {good} of {len(lines)} cases, and within 10 % of it in {close}.\n"
    )


def line(name: str, preprocessing: str) -> list[Any]:
    rows = prepared(name, preprocessing)
    X = rows[0]
    scale = 1 / float(np.mean(np.sum(X.astype(float) ** 2, axis=1)))
    size: dict[str, Any] = {"n_components": N_COMPONENTS, "random_state": 0}

    def fit(feature_map: Any) -> float:
        return learned_error(name, feature_map, rows)

    found = [fit(CraftMap(Polynomial(p, gamma=scale), **size)) for p in DEGREES]
    gaussians = (widths(Gaussian, X, factor) for factor in FACTORS)
    found.append(
        min(fit(FourierFeatures(kernel, sampling="orthogonal", **size)) for kernel in gaussians)
    )
    auto = fit(CraftMap("auto", **size))
    ratio = auto / min(found)
    verdict = f"{'best ' if ratio <= 1 else ''}({ratio:.2f})"
    print(name, preprocessing, found, auto, flush=True)
    return [name, preprocessing, *(f"{e:.4f}" for e in found), f"{auto:.4f}", verdict]
