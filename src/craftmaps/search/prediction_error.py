"""The error of predictions, and how it is written: the same in searches and comparisons."""

import numpy as np

_QUANTILE = 1.645  # of a normal distribution: 90% of it lies within so many deviations
_VARIANCES = 3  # of a mean of the judged rows: their own, and that of half as many other rows


def prediction_error(predicted: np.ndarray, truth: np.ndarray, classification: bool) -> float:
    """Share of wrong labels, or root mean square error in standard deviations of the target."""
    if classification:
        return float(np.mean(predicted != truth))
    return float(np.sqrt(np.mean((predicted - truth) ** 2)) / (np.std(truth) or 1.0))


def interval_of_share(wrong: np.ndarray) -> tuple[float, float]:
    """Where the share of wrong labels among half as many other rows lies in 90% of cases.

    This is the interval by Agresti and Coull, which is right for small shares too. It is wider by
    the square root of three, because the share among the other rows varies as well. A test set is
    often half as large as the rows that a model learned from.
    """
    n = len(wrong) + _QUANTILE**2
    share = (float(np.sum(wrong)) + _QUANTILE**2 / 2) / n
    spread = _QUANTILE * np.sqrt(_VARIANCES * share * (1 - share) / n)
    return float(max(0.0, share - spread)), float(min(1.0, share + spread))


def interval_of_rmse(squares: np.ndarray) -> tuple[float, float]:
    """Where the root mean squared error of half as many other rows lies in 90% of cases."""
    spread = _QUANTILE * float(np.std(squares)) * np.sqrt(_VARIANCES / len(squares))
    mean = float(np.mean(squares))
    return float(np.sqrt(max(0.0, mean - spread))), float(np.sqrt(mean + spread))


def error_text(error: float, classification: bool) -> str:
    """An error as it is printed: a percentage of wrong labels, or a plain number."""
    return f"{error:.2%}" if classification else f"{error:.4f}"


def error_axis(classification: bool) -> tuple[str, float]:
    """The label of an axis of errors, and the factor that brings errors to its unit."""
    return ("wrong labels, %", 100.0) if classification else ("RMSE / deviation of y", 1.0)
