"""The error of predictions and its text, for searches and comparisons."""

import numpy as np

_QUANTILE = 1.645  # 90% of a normal distribution lie within this many standard deviations
_VARIANCES = 3  # of a mean of the judged rows: their own, and that of half as many other rows


def prediction_error(predicted: np.ndarray, truth: np.ndarray, classification: bool) -> float:
    """Return the share of wrong labels, or the RMSE in standard deviations of the target."""
    if classification:
        return float(np.mean(predicted != truth))
    return float(np.sqrt(np.mean((predicted - truth) ** 2)) / (np.std(truth) or 1.0))


def interval_of_share(wrong: np.ndarray) -> tuple[float, float]:
    """Return a 90% interval for the share of wrong labels among half as many other rows.

    This is the interval of Agresti and Coull, which also works for small shares. It is wider by the
    square root of three, because the share among the other rows varies as well. A test set often
    has half as many rows as the training set.
    """
    n = len(wrong) + _QUANTILE**2
    share = (float(np.sum(wrong)) + _QUANTILE**2 / 2) / n
    spread = _QUANTILE * np.sqrt(_VARIANCES * share * (1 - share) / n)
    return float(max(0.0, share - spread)), float(min(1.0, share + spread))


def interval_of_rmse(squares: np.ndarray) -> tuple[float, float]:
    """Return a 90% interval for the root mean squared error of half as many other rows.

    A few large errors make up most of the mean, so it is more often far above than far below the
    expectation. The upper end is that of a normal distribution of its logarithm.
    """
    spread = _QUANTILE * float(np.std(squares)) * np.sqrt(_VARIANCES / len(squares))
    mean = float(np.mean(squares))
    high = mean * np.exp(spread / mean) if mean > 0 else 0.0
    return float(np.sqrt(max(0.0, mean - spread))), float(np.sqrt(high))


def error_text(error: float, classification: bool) -> str:
    """Format an error as a percentage of wrong labels, or as a plain number."""
    return f"{error:.2%}" if classification else f"{error:.4f}"


def error_axis(classification: bool) -> tuple[str, float]:
    """Return the label of an axis of errors, and the factor from errors to its unit."""
    return ("wrong labels, %", 100.0) if classification else ("RMSE / deviation of y", 1.0)
