"""Test error against the number of rows of one pass over a jittered stream (CRAFT Figure 7b)."""

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from craftmaps.learn import OnePassClassifier
from reproduction import methods
from reproduction.datasets import Dataset, load
from reproduction.images import jittered
from reproduction.spec import Run


def measure(run: Run) -> dict[str, Any]:
    """Numbers of rows, and the test errors after them."""
    data = load(run["data"])
    method, size = run["method"], run["size"]
    kernel, n_columns = methods.kernel_of(run), data.X_train.shape[1]
    chosen = methods.feature_map(method, kernel, size, n_columns=n_columns, seed=run["seed"])
    codes = {} if method in methods.OURS else {"codes": "random", "n_bits": run["bits"]}
    errors = stream_errors(chosen, data, run["row_counts"], run["seed"], **codes)
    return {"rows": run["row_counts"], "error": errors}


def stream_errors(
    feature_map: Any,
    dataset: Dataset,
    rows: list[int],
    seed: int = 0,
    *,
    codes: Any = "one-vs-rest",
    n_bits: int | None = None,
    alpha: Any = "gcv",
    **jitter: Any,
) -> list[float]:
    """Test error in per cent after each of these numbers of rows, in one pass.

    The stream is the training images and then jittered copies of them, each row of length 1. The
    learner is solved where an error is asked for, and goes on. The map is fitted on the first block
    of 4,096 rows, unless it comes as a `sklearn.frozen.FrozenEstimator`.

    Parameters
    ----------
    feature_map : transformer
    dataset : Dataset
        Of square images on a background of zeros, with test rows.
    rows : list of int
        Numbers of rows, ascending.
    seed : int, default=0
        Of the stream and of random codes.
    codes, n_bits, alpha
        As in OnePassClassifier.
    **jitter
        shift, angle, scale, shear and elastic of `reproduction.images.jittered`.
    """
    if dataset.X_test is None or dataset.y_test is None:
        raise ValueError(f"{dataset.name} has no test rows; divide it with datasets.split.")
    if not rows or rows[0] < 1 or sorted(set(rows)) != list(rows):
        raise ValueError(f"rows must be ascending numbers of at least 1, got {rows!r}.")
    model = OnePassClassifier(
        feature_map, alpha=alpha, codes=codes, n_bits=n_bits, random_state=seed
    )
    X_test, classes = normalize(dataset.X_test), np.unique(dataset.y_train)
    errors: list[float] = []
    done = 0
    for X, y in jittered(dataset.X_train, dataset.y_train, rows[-1], seed=seed, **jitter):
        X = normalize(X, copy=False)
        start = 0
        for mark in (row - done for row in rows if done < row <= done + len(X)):
            model.partial_fit(X[start:mark], y[start:mark], classes)
            errors.append(100 * (1 - model.score(X_test, dataset.y_test)))
            start = mark
        if start < len(X):
            model.partial_fit(X[start:], y[start:], classes)
        done += len(X)
    return errors
