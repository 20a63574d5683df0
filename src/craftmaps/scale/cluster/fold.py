"""The fold that every cluster runs: a learner begun once, sums of partitions, merged in a tree.

An engine moves three things. The learner that was begun goes to every worker once: it has the
fitted map and has seen no row. Sums come back as bytes, without the map and with one triangle of
the Hessian: 4 E^2 bytes for E features. Merging takes sums and gives sums, in an order that depends
on the numbers of the partitions alone, so that the result is the same bit for bit in every run.

E features in float32 take 12 E^2 bytes while rows arrive (H and a work matrix) and 20 E^2 for a
moment at the end of a task, 24 E^2 while sums are merged, and `block_rows` rows of features.
"""

import pickle
from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_array

from craftmaps.learn import OnePassClassifier, OnePassRegressor
from craftmaps.learn.one_pass import FLOATS, solution_of, stream_of
from craftmaps.learn.stream import FeatureStream

FAN_IN = 4  # sums that one task merges
MAP_ROWS = 10_000  # first rows, on which the map is fitted
_FAR = 1 << 40  # between the first rows of two partitions whose lengths are not known


def check_estimator(estimator: Any) -> None:
    """Raise unless it is one of the two learners whose sums merge."""
    if not isinstance(estimator, OnePassClassifier | OnePassRegressor):
        raise TypeError(
            f"clusters fit a OnePassClassifier or a OnePassRegressor, not a "
            f"{type(estimator).__name__}; put any other transformer into its feature_map."
        )


def begin(estimator: Any, X: Any, y: Any, classes: Any = None) -> Any:
    """A learner like `estimator` that has fitted its map on the rows X and has learnt from none.

    A map that is None or a FrozenEstimator is used as it is.
    """
    learner = clone(estimator)
    unfitted, feature_map = learner.feature_map, None
    if unfitted is not None:
        rows = check_array(X, accept_sparse="csr", dtype=FLOATS)  # as a local fit gives them
        feature_map = clone(unfitted).fit(rows, y)
        learner.set_params(feature_map=FrozenEstimator(feature_map))
    learner.partial_fit(X[:1], y[:1], *([] if classes is None else [classes]))
    learner.feature_map, learner.feature_map_ = unfitted, feature_map
    learner._stream = learner._stream.emptied()
    learner._stream.feature_map = feature_map
    return learner


def sums_of(learner: Any, blocks: Iterable[Any], number: int, first_row: int | None) -> bytes:
    """The sums of partition `number`, from its blocks (X, y, sample_weight).

    `first_row` is the place of its first row among all rows. Where it is not known, partitions are
    placed far apart: rows are still drawn uniformly for calibration, and dealt evenly to folds.
    """
    part = copy(learner)
    stream = part._stream = learner._stream.emptied()
    stream.first_row = number * _FAR if first_row is None else first_row
    try:
        for X, y, weights in blocks:
            if X.shape[0] != len(y):
                raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}.")
            if len(y):
                part.partial_fit(X, y, sample_weight=weights)
    except ValueError as error:
        raise ValueError(f"partition {number}: {_first_sentence(error)}") from error
    return _to_bytes(stream)


def merged(learner: Any, parts: Iterable[Any]) -> bytes:
    """The sums of all parts, in their order; one of them is unpacked at a time."""
    parts = iter(parts)
    total = _from_bytes(learner, next(parts))
    for part in parts:
        total.merge(_from_bytes(learner, part))
    return _to_bytes(total)


def finish(learner: Any, sums: bytes) -> Any:
    """The learner with these sums, solved."""
    learner._stream = _from_bytes(learner, sums)
    solution_of(learner)
    return learner


def rows_for_map(estimator: Any, map_rows: int) -> int:
    """How many of the first rows the map is fitted on: one will do where it is fitted, or none."""
    feature_map = estimator.feature_map
    fixed = feature_map is None or isinstance(feature_map, FrozenEstimator)
    return 1 if fixed else map_rows


def for_prediction(estimator: Any) -> Any:
    """A copy of a fitted estimator that predicts and has no sums, to be sent to workers."""
    solution, stream = solution_of(estimator), stream_of(estimator)
    light = copy(estimator)
    light._stream = stream.emptied()
    light._stream.solution = solution
    if is_classifier(estimator):
        light._stream.temperature = estimator.temperature_
    return light


def no_predictions(estimator: Any, method: str, dtype: np.dtype) -> np.ndarray:
    """No rows of what a method returns for rows of this type."""
    if not callable(getattr(estimator, method, None)):
        raise ValueError(f"a {type(estimator).__name__} has no method {method!r}.")
    floats = np.dtype(dtype if dtype == np.float32 else np.float64)
    if not is_classifier(estimator):
        return np.empty((0, *np.shape(estimator.intercept_)), floats)
    if method == "predict":
        return np.empty(0, estimator.classes_.dtype)
    n_classes = len(estimator.classes_)
    one_column = method == "decision_function" and n_classes == 2
    return np.empty(0 if one_column else (0, n_classes), floats)


def labels_in(y: Any, number: int) -> tuple[np.ndarray, int]:
    """The different labels of a partition, and how many rows it has."""
    y = np.asarray(y)
    missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)
    if y.dtype == object:
        missing = np.array([_is_missing(value) for value in y], bool)
    if missing.any():
        raise ValueError(f"partition {number}: the label of row {missing.argmax()} is missing.")
    return np.unique(y), len(y)


def first_rows(lengths: Iterable[int]) -> list[int]:
    """The places of the first rows of partitions of these lengths."""
    return [0, *np.cumsum(list(lengths)).tolist()][:-1]


def _to_bytes(stream: FeatureStream) -> bytes:
    stream.settle()
    light = copy(stream)
    light.feature_map = light.encode = None  # type: ignore[assignment]  # the workers have them
    return pickle.dumps(light, protocol=5)


def _from_bytes(learner: Any, data: Any) -> FeatureStream:
    stream: FeatureStream = pickle.loads(data)
    stream.feature_map, stream.encode = learner._stream.feature_map, learner._stream.encode
    return stream


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"  # of pandas


def _first_sentence(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
