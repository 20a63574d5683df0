"""Spectra of approximate Gram matrices, and the weights that are learned (CRAFT Figure 2)."""

from typing import Any

import numpy as np

from craftmaps.diagnose import effective_rank, weight_histogram
from craftmaps.diagnose.errors import dense
from craftmaps.diagnose.spectrum import spectrum
from craftmaps.learn import OnePassClassifier
from reproduction.methods import feature_map, kernel_of
from reproduction.rows import unit_rows
from reproduction.spec import Run


def measure(run: Run) -> dict[str, Any]:
    """Eigenvalues in decreasing order, the effective rank, and a histogram of weights.

    Rows are a sample of the training rows, for the weights those of two classes.
    """
    data = unit_rows(run["data"])
    X, y = data.X_train, data.y_train
    if run.get("classes"):
        kept = np.isin(y, run["classes"])
        X, y = X[kept], y[kept]
    chosen = np.random.default_rng(0).choice(len(X), min(run["rows"], len(X)), replace=False)
    X, y = X[chosen], y[chosen]
    if run["method"] == "Exact":
        return _spectrum(kernel_of(run)(X))
    fitted = feature_map(
        run["method"],
        kernel_of(run),
        run["size"],
        n_columns=X.shape[1],
        seed=run["seed"],
        n_up=run.get("n_up"),
    ).fit(X)
    Z = dense(fitted.transform(X))
    if not run.get("classes"):
        return _spectrum(Z @ Z.T)
    found = weight_histogram({"": OnePassClassifier(alpha=1.0).fit(Z, y)})
    return {
        "weight": ((found.edges[1:] + found.edges[:-1]) / 2).tolist(),
        "share": found.shares[""].tolist(),
        "idle": found.idle[""],
    }


def _spectrum(gram: np.ndarray) -> dict[str, Any]:
    values = spectrum(np.asarray(gram, dtype=np.float64))
    return {
        "rank": list(range(1, len(values) + 1)),
        "eigenvalue": values.tolist(),
        "effective_rank": effective_rank(values),
    }
