"""Errors of approximate Gram matrices (CRAFT Figures 5, 6 and 7a, DE Figure 4)."""

from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from craftmaps.diagnose.errors import dense
from craftmaps.diagnose.errors import measure as error_of
from craftmaps.kernels import Gaussian
from reproduction.datasets import load
from reproduction.methods import GAUSSIAN, feature_map, kernel_of
from reproduction.rows import unit_rows
from reproduction.spec import Run


def measure(run: Run) -> dict[str, float]:
    """The error of one map on a sample of rows, in the metric that the run names."""
    rng = np.random.default_rng(run["seed"] if run.get("new_rows") else 0)
    X = _rows(run, rng)
    method = run["method"]
    kernel: Any = _wide(X) if method in GAUSSIAN else kernel_of(run)
    n_up = run["up_factor"] * run["size"] if "up_factor" in run else run.get("n_up")
    chosen = feature_map(
        method, kernel, run["size"], n_columns=X.shape[1], seed=run["seed"], n_up=n_up
    )
    Z = dense(chosen.fit(X).transform(X))
    return {"error": error_of(Z @ Z.T, np.asarray(kernel(X), dtype=np.float64), run["metric"])}


def _rows(run: Run, rng: np.random.Generator) -> np.ndarray:
    if run.get("scaling") == "cube":  # DE: "data is normalized in unit hypercube"
        X = np.asarray(load(run["data"]).X_train, dtype=np.float32)
        low, high = X.min(axis=0), X.max(axis=0)
        X = (X - low) / np.where(high > low, high - low, 1)
    else:
        X = unit_rows(run["data"]).X_train
    chosen = rng.choice(len(X), min(run["rows"], len(X)), replace=False)
    return np.asarray(X[chosen])


def _wide(X: np.ndarray) -> Gaussian:
    """DE s.5: the bandwidth is the mean distance of the points from their mean."""
    width = float(pairwise_distances(X, X.mean(axis=0, keepdims=True)).mean())
    return Gaussian(1 / (2 * width**2))
