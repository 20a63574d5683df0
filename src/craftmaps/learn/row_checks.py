"""Checks of rows and weights before anything is learned from them."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from craftmaps.tables.table import column_of_text
from craftmaps.tables.values import is_missing

_LEAST_WEIGHT, _LARGEST_WEIGHT = 1e-30, 1e30  # sums hold such weights in single precision too


def checked_weights(weights: Any, X: Any) -> np.ndarray | None:
    """Return the weights of rows as an array, or raise ValueError if they are no weights."""
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight must be {X.shape[0]} numbers, one per row, got shape {weights.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight must be finite and not negative, and is {weights[bad[0]]} for row "
            f"{bad[0]}."
        )
    largest = weights.max(initial=0.0)
    if largest and not _LEAST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"the largest sample_weight is {largest:.3g}, and sums of rows are exact for weights "
            f"between {_LEAST_WEIGHT:g} and {_LARGEST_WEIGHT:g}; divide all weights by the same "
            f"number, or give 0 to rows that should not count."
        )
    return np.asarray(weights)


def check_targets(learner: Any, y: Any) -> None:
    """Raise ValueError if targets are missing, or if a regressor gets text as targets."""
    y = np.asarray(y)
    if y.dtype.kind in "mM" and not is_classifier(learner):
        raise ValueError(
            f"{type(learner).__name__} takes numbers as targets, got {y.dtype}; convert the "
            f"targets to numbers, for instance to days since the first one."
        )
    if y.dtype.kind not in "OUT" or y.ndim != 1:
        return
    targets = y.tolist()
    if not {*map(type, targets)} <= {str}:
        missing = next((row for row, target in enumerate(targets) if is_missing(target)), None)
        if missing is not None:
            raise ValueError(
                f"Input y contains NaN: the target of row {missing} is missing. Leave out rows "
                f"without a target."
            )
    text = next((target for target in targets if isinstance(target, str)), None)
    if text is not None and not is_classifier(learner):
        raise ValueError(
            f"{type(learner).__name__} takes numbers as targets, got the text {text!r}; convert "
            f"the targets to numbers, or use KernelClassifier to predict classes."
        )


def refuse_text(learner: Any, X: Any) -> None:
    """Raise ValueError if a column of the table X holds text or dates instead of numbers."""
    name = column_of_text(X)
    if name is None:
        return
    if hasattr(learner, "encoder"):
        way_out = "set encoder='auto'"
    elif not hasattr(learner, "predict"):
        way_out = "encode it with TableEncoder first"
    else:
        kind = "KernelClassifier" if is_classifier(learner) else "KernelRegressor"
        way_out = f"use {kind}, which encodes such tables"
    raise ValueError(
        f"{type(learner).__name__} takes numbers, but column {name!r} holds text or dates; "
        f"{way_out}."
    )
