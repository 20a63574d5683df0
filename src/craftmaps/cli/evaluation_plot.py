"""Plot the calibration and the errors of a model."""

from typing import Any

import numpy as np

from craftmaps.cli.measures import share
from craftmaps.plots import finish, new_figure

_N_BINS = 10
_MAX_NAMED_CLASSES = 20
_MAX_POINTS = 5_000  # drawn one by one


def save(path: str, drawn: dict[str, Any]) -> None:
    """Write the picture of a classifier or of a regressor; `drawn` is what `evaluate` collects."""
    figure, (left, right) = new_figure(10, 4.2, n_axes=2)
    if "classes" in drawn:
        _calibration(left, **drawn)
        _confusion(right, drawn["classes"], drawn["confusion"])
    else:
        _agreement(left, drawn["y"], drawn["predicted"])
        _residuals(right, drawn["predicted"] - drawn["y"])
    finish(figure, path)


def _calibration(axes: Any, classes: Any, y: Any, predicted: Any, scores: Any, **_: Any) -> None:
    """Plot how often predictions of a given confidence are correct."""
    axes.set_title("Calibration")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    if scores is not None:
        if len(classes) == 2:
            confidence, right = scores[:, 1], y == 1
            axes.set_xlabel(f"predicted probability of {classes[1]}")
            axes.set_ylabel(f"share of {classes[1]} (95% intervals)")
        else:
            confidence, right = scores.max(axis=1), y == predicted
            axes.set_xlabel("probability of the predicted class")
            axes.set_ylabel("share of correct predictions (95% intervals)")
        _reliability(axes, confidence, right)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def _reliability(axes: Any, confidence: np.ndarray, right: np.ndarray) -> None:
    """Plot the share of correct rows in each tenth of the rows, sorted by confidence."""
    for some in np.array_split(np.argsort(confidence, kind="stable"), _N_BINS):
        if len(some):
            value, (low, high) = share(right[some])
            bar = [[value - low], [high - value]]
            axes.errorbar(confidence[some].mean(), value, bar, fmt="o", color="C0", markersize=4)


def _confusion(axes: Any, classes: np.ndarray, counts: np.ndarray) -> None:
    """Plot the share of each class that is predicted as each class."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_title("Errors: rows of a class by what was predicted")
    axes.set_xlabel("predicted class")
    axes.set_ylabel("class")
    if len(classes) > _MAX_NAMED_CLASSES:
        return
    places = range(len(classes))
    axes.set_xticks(places, [str(label) for label in classes], rotation=45, ha="right")
    axes.set_yticks(places, [str(label) for label in classes])
    for i in places:
        for j in places:
            color = "white" if shares[i, j] > 0.5 else "black"
            axes.text(j, i, f"{counts[i, j]}", ha="center", va="center", color=color, fontsize=8)


def _agreement(axes: Any, y: np.ndarray, predicted: np.ndarray) -> None:
    """Plot predictions against targets."""
    some = np.random.default_rng(0).permutation(len(y))[:_MAX_POINTS]
    axes.plot(predicted[some], y[some], ".", markersize=3, alpha=0.5)
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    axes.plot(ends, ends, color="0.7", linewidth=1)
    axes.set_title("Calibration")
    axes.set_xlabel("predicted")
    axes.set_ylabel("target")


def _residuals(axes: Any, residuals: np.ndarray) -> None:
    axes.hist(residuals, bins=50)
    axes.axvline(0, color="0.7", linewidth=1)
    axes.set_title("Errors")
    axes.set_xlabel("predicted minus target")
    axes.set_ylabel("rows")
