"""Checks of rows and weights before anything is learned from them."""

import os
from typing import Any

import narwhals.stable.v2 as nw
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


def checked_targets(learner: Any, y: Any) -> Any:
    """Return targets in a type of NumPy, or raise ValueError if they cannot be learned.

    Whole numbers and booleans that may be missing in pandas keep their type here; scikit-learn
    would turn them into floating-point numbers.
    """
    if isinstance(y, str):
        raise ValueError(f"y is the text {y!r}; give the targets themselves, such as table[{y!r}].")
    series = nw.from_native(y, series_only=True, pass_through=True)
    targets = series.to_numpy() if isinstance(series, nw.Series) else y
    array = np.asarray(targets)
    if array.ndim == 1 and array.dtype.kind in "OUTf":
        missing = np.flatnonzero(_missing(array))
        if len(missing):
            raise ValueError(
                f"Input y contains NaN: the target of row {missing[0]} is missing. Leave out rows "
                f"without a target."
            )
    if is_classifier(learner):
        return _labels(array) if array.ndim == 1 else targets
    _refuse_no_numbers(learner, array)
    return targets


def _missing(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    return np.array([is_missing(target) for target in array.tolist()], bool)


def _labels(labels: np.ndarray) -> np.ndarray:
    """Return labels in a type that scikit-learn takes and that model files can contain."""
    if labels.dtype.kind == "T":
        return np.asarray(labels.tolist(), dtype=str)
    if labels.dtype in (np.float16, np.longdouble):
        return np.asarray(labels, dtype=np.float64)
    kinds = {type(label) for label in labels.tolist()} if labels.dtype == object else set()
    if not all(issubclass(kind, str) for kind in kinds):
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"Unknown label type: the labels are objects of type {listed}; convert all of them to "
            f"text, or to an array of numbers."
        )
    return labels


def _refuse_no_numbers(learner: Any, targets: np.ndarray) -> None:
    """Raise ValueError if the targets of a regressor are dates, durations or text."""
    if targets.dtype.kind in "mM":
        raise ValueError(
            f"{type(learner).__name__} takes numbers as targets, got {targets.dtype}; convert the "
            f"targets to numbers, for instance to days since the first one."
        )
    if targets.dtype.kind not in "OUT" or targets.ndim != 1:
        return
    text = next((target for target in targets.tolist() if isinstance(target, str)), None)
    if text is not None:
        raise ValueError(
            f"{type(learner).__name__} takes numbers as targets, got the text {text!r}; convert "
            f"the targets to numbers, or use KernelClassifier to predict classes."
        )


def refuse_text(learner: Any, X: Any) -> None:
    """Raise an error if X is no rows, or if one of its columns holds text instead of numbers."""
    if isinstance(X, str | os.PathLike):
        path = os.fspath(X)
        raise TypeError(
            f"X is the path {path!r} instead of rows; use "
            f"fit_blocks(craftmaps.scale.read({path!r}, target=...)), or read the file first."
        )
    is_records = isinstance(X, list) and bool(X) and isinstance(X[0], dict)
    if is_records or getattr(getattr(X, "dtype", None), "names", None):
        raise TypeError(
            f"X is a {'list of dicts' if is_records else 'structured array'}; make a data frame of "
            f"it, as in pandas.DataFrame(X)."
        )
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
