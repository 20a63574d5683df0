"""Compare maps on the same data: error, kernel error, time, memory and model size."""

import pickle
import time
import tracemalloc
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array

from craftmaps.diagnose.errors import gram_error
from craftmaps.learn import OnePassClassifier, OnePassRegressor
from craftmaps.plots import finish, new_figure
from craftmaps.search.prediction_error import error_axis, error_text, prediction_error
from craftmaps.search.targets import is_classification

_KERNEL_ERROR_ROWS = 500


@dataclass(frozen=True)
class Measured:
    """Measurements of one map of one size, averaged over seeds.

    Times are in seconds (`predict_seconds` per row). `peak_bytes` is the peak memory of training,
    and `model_bytes` is the size of the arrays that predictions need.
    """

    name: str
    n_components: int
    error: float
    error_spread: float
    kernel_error: float
    fit_seconds: float
    predict_seconds: float
    peak_bytes: float
    model_bytes: float


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`, which can be printed, plotted or turned into a data frame."""

    rows: list[Measured]
    classification: bool
    n_seeds: int

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows) + 2
        head = f"{'map':<{width}}{'size':>6}{'error':>16}{'kernel':>9}{'fit':>10}{'predict':>12}"
        lines = [head + f"{'memory':>10}{'model':>10}"]
        for row in self.rows:
            error = error_text(row.error, self.classification)
            if self.n_seeds > 1:
                error += f" ({error_text(row.error_spread, self.classification)})"
            lines.append(
                f"{row.name:<{width}}{row.n_components:>6}{error:>16}"
                f"{row.kernel_error:>9.3f}{row.fit_seconds:>8.2f} s"
                f"{1e6 * row.predict_seconds:>6.1f} us/row{row.peak_bytes / 1e6:>7.1f} MB"
                f"{row.model_bytes / 1e3:>7.0f} kB"
            )
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per map and size."""
        try:
            import pandas as pd
        except ImportError as missing:
            raise ImportError("to_frame needs pandas, which is not installed.") from missing
        return pd.DataFrame([vars(row) for row in self.rows])

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the error against training time and against model size; returns the figure.

        A line joins the points that no other point beats in both: the Pareto front.
        """
        figure, panels = new_figure(10.5, 4.4, 2)
        error_label, unit = error_axis(self.classification)
        costs = (
            ("training, seconds", [row.fit_seconds for row in self.rows]),
            ("model, kB", [row.model_bytes / 1e3 for row in self.rows]),
        )
        errors = np.array([unit * row.error for row in self.rows])
        names = list(dict.fromkeys(row.name for row in self.rows))
        for axes, (label, cost) in zip(panels, costs, strict=True):
            for name in names:
                mine = [i for i, row in enumerate(self.rows) if row.name == name]
                axes.plot(np.take(cost, mine), errors[mine], "o", markersize=6, label=name)
            front = pareto_front(np.array(cost), errors)
            axes.plot(np.take(cost, front), errors[front], color="0.5", linewidth=1, zorder=0)
            axes.set_xscale("log", subs=[2, 5])
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("{x:g}" if max(cost) < 30 * min(cost) else "")
            axes.set_xlabel(label)
            axes.set_ylabel(error_label)
            axes.set_ylim(bottom=0)
        panels[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        return finish(figure, path)


def compare(
    X: Any,
    y: Any,
    maps: Any,
    n_components: int | Sequence[int] = (256, 1024),
    seeds: int | Iterable[int] = 3,
    *,
    test_size: float = 0.25,
    task: str = "auto",
    random_state: Any = 0,
) -> Comparison:
    """Train a one-pass learner on each map at each size, and measure its error and its cost.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, already scaled as the maps need them.
    y : array-like of shape (n_samples,)
        Targets.
    maps : map or dict of str to map
        The maps to compare.
    n_components : int or sequence of ints, default=(256, 1024)
        Sizes at which each map is measured.
    seeds : int or sequence of ints, default=3
        Values of `random_state` of the maps. An int n means the seeds 0 to n - 1.
    test_size : float, default=0.25
        Share of the rows on which the error is measured.
    task : {"auto", "classification", "regression"}, default="auto"
        The kind of learner. "auto" infers it from y.
    random_state : int, RandomState instance or None, default=0
        Seed for splitting the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from craftmaps import CraftMap, Polynomial, TensorSketch
    >>> from craftmaps.diagnose import compare
    >>> X, y = load_digits(return_X_y=True)
    >>> maps = {"craft": CraftMap(Polynomial(5)), "sketch": TensorSketch(Polynomial(5))}
    >>> comparison = compare(normalize(X), y, maps, n_components=128, seeds=2)
    >>> [row.name for row in comparison.rows]
    ['craft', 'sketch']
    """
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    y = np.asarray(y)
    classification = is_classification(task, y)
    split = train_test_split(X, y, test_size=test_size, random_state=random_state)
    named = maps if isinstance(maps, dict) else {type(maps).__name__: maps}
    if not named:
        raise ValueError("maps is empty: there is nothing to compare.")
    sizes = list(n_components) if isinstance(n_components, Iterable) else [n_components]
    numbers = list(seeds) if isinstance(seeds, Iterable) else list(range(seeds))
    learner = OnePassClassifier if classification else OnePassRegressor
    rows = []
    for name, feature_map in named.items():
        for number, size in enumerate(sizes):
            sized = clone(feature_map).set_params(n_components=size)
            if number == 0:
                _warm_up(learner(sized), split)
            rows.append(_measured(name, sized, learner, split, numbers))
    return Comparison(rows, classification, len(numbers))


def pareto_front(cost: np.ndarray, error: np.ndarray) -> list[int]:
    """Return the indices of the Pareto-optimal points, in order of cost."""
    front: list[int] = []
    for i in np.lexsort((error, cost)):
        if not front or error[i] < error[front[-1]]:
            front.append(int(i))
    return front


def _measured(name: str, feature_map: Any, learner: Any, split: Any, seeds: list[int]) -> Measured:
    X, X_test, y, y_test = split
    measured = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            model = learner(clone(feature_map).set_params(random_state=seed))
            start = time.perf_counter()
            model.fit(X, y)
            middle = time.perf_counter()
            predicted = model.predict(X_test)
            end = time.perf_counter()
            kernel_error = gram_error(
                model.feature_map_, X_test, "frobenius", seeds=None, n_rows=_KERNEL_ERROR_ROWS
            )
            measured.append(
                [
                    prediction_error(predicted, y_test, learner is OnePassClassifier),
                    float(kernel_error),
                    middle - start,
                    (end - middle) / len(y_test),
                ]
            )
        peak = _peak(clone(model), X, y)
    needed = (model.feature_map_, model.coef_.astype(np.float32), model.intercept_)
    error, kernel, fit, predict = np.mean(measured, axis=0)
    errors = [values[0] for values in measured]
    spread = float(np.std(errors, ddof=1)) if len(errors) > 1 else float("nan")
    size = model.coef_.shape[-1]  # there are no more Nyström features than rows
    return Measured(
        name, size, error, spread, kernel, fit, predict, peak, float(len(pickle.dumps(needed)))
    )


def _warm_up(model: Any, split: Any) -> None:
    """Run the model once, so that no measured time includes a compilation."""
    X, X_test, y, _ = split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y).predict(X_test[:1])


def _peak(model: Any, X: Any, y: Any) -> float:
    """Measure the peak memory of training, without timing because tracing is slow."""
    tracemalloc.start()
    try:
        model.fit(X, y)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
