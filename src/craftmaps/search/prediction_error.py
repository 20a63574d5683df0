"""The error of predictions, and how it is written: the same in searches and comparisons."""

import numpy as np


def prediction_error(predicted: np.ndarray, truth: np.ndarray, classification: bool) -> float:
    """Share of wrong labels, or root mean square error in standard deviations of the target."""
    if classification:
        return float(np.mean(predicted != truth))
    return float(np.sqrt(np.mean((predicted - truth) ** 2)) / (np.std(truth) or 1.0))


def error_text(error: float, classification: bool) -> str:
    """An error as it is printed: a percentage of wrong labels, or a plain number."""
    return f"{error:.2%}" if classification else f"{error:.4f}"


def error_axis(classification: bool) -> tuple[str, float]:
    """The label of an axis of errors, and the factor that brings errors to its unit."""
    return ("wrong labels, %", 100.0) if classification else ("RMSE / deviation of y", 1.0)
