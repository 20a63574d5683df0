"""Checks that the parts of a learner from a file fit together."""

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from craftmaps.learn.codes import Unchanged
from craftmaps.maps.base import FeatureMap
from craftmaps.storage.expect import expect, expect_array, expect_indices
from craftmaps.tables import TableEncoder
from craftmaps.validation import is_integer, is_number


def check_regressor(model: Any) -> None:
    """Raise ValueError unless map, sums, coefficients and targets of a regressor agree."""
    expect(isinstance(model._stream.encode, Unchanged), "targets without a code")
    expect(not model._one_target or model._n_targets == 1, "one target")
    _check_learner(model, model._n_targets)
    sample, buffer = model._stream.sample, model._stream.buffer
    if len(sample.Z):
        expect_array("targets of the sample", sample.labels, "f", (None, model._n_targets))
    if buffer.filled:
        expect_array("targets of rows", buffer.y, "f", (None, model._n_targets))


def check_classifier(model: Any) -> None:
    """Raise ValueError unless map, sums, coefficients, codes and classes agree."""
    code, stream = model._code, model._stream
    expect_array("classes", model.classes_, "biufUO", (code.n_classes,))
    expect(stream.encode is code, "one code for the learner and its sums")
    _check_learner(model, code.n_bits)
    _expect_labels("labels of the sample", stream.sample.labels, code.n_classes)
    expect(not stream._closed or stream.temperature is not None, "a temperature")
    expect(not stream.by_class or len(stream.folds) == code.n_classes, "sums for each class")
    if stream.buffer.filled:
        _, used, _, _ = stream.buffer.used()
        _expect_labels("labels of rows", used, code.n_classes)


def _expect_labels(name: str, labels: np.ndarray, n_classes: int) -> None:
    """Raise ValueError unless labels are class indices of a type that more classes fit in.

    In a smaller integer type, indices of more classes would wrap around. In uint64, NumPy would
    turn them into floating point.
    """
    expect(not labels.size or labels.dtype == np.int64, f"{name} of type int64")
    expect_indices(name, labels, n_classes, (None,))


def check_components(model: Any) -> None:
    """Raise ValueError unless map, sums and components agree."""
    expect(isinstance(model._stream.encode, Unchanged), "no code")
    solution = model._stream.solution
    _check_learner(model, 0, None if solution is None else len(solution.intercept))
    expect(solution is None or hasattr(solution, "variances"), "components with their variances")


def check_stream(stream: Any) -> None:
    """Raise ValueError unless the rows, sums and results of a stream agree."""
    buffer, n_features = stream.buffer, stream.n_features
    n, capacity = buffer.filled, buffer.capacity
    counts = (n_features - 1, n, capacity - n, stream.n_rows, stream.first_row)
    expect(min(*counts, len(stream.folds) - 1) >= 0, "features, and rows that fit the buffer")
    expect(stream.first_row + stream.n_rows < 1 << 53, "a number of rows")
    expect(0 <= stream.n_forgotten <= stream.n_rows, "no more rows forgotten than seen")
    expect(0 < stream.decay <= 1, "a decay between 0 and 1")
    expect(capacity > 0 or stream._closed, "a buffer for more rows")
    expect_array("Z", buffer.Z, "f", (None, n_features))
    expect_array("weights", buffer.weights, "f", (capacity,))
    expect_array("index", buffer.index, "i", (capacity,))
    expect(buffer.y.dtype.kind in "iuf" and buffer.y.ndim <= 2, "targets that are numbers")
    expect(len(buffer.y) == capacity or not n, "a target for each row")
    expect_array("Z of the sample", stream.sample.Z, "f", (None, n_features))
    for fold in stream.folds:
        expect(fold.n_features in (0, n_features), "sums of as many features")
    if stream.posterior is not None:
        expect_array("centre", stream.posterior.centre, "f", (n_features,))
        expect(stream.conformal is not None, "errors beside their covariance")
    if stream.solution is not None:
        expect_array("coef", stream.solution.coef, "f", (n_features, None))
        expect(stream._closed or stream.weight > 0, "a weight of the rows that were learned")


def check_sums(arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
    """Raise ValueError unless the arrays of sums have the sizes that the metadata state."""
    n_features, n_targets = metadata["n_features"], metadata["n_targets"]
    counts = (metadata["n_rows"], n_features, n_targets)
    expect(all(is_integer(n) and n >= 0 for n in counts), "rows, features and targets are counted")
    expect(is_number(metadata["weight"]) and metadata["weight"] >= 0, "a weight of at least 0")
    expect(metadata["precision"] in ("float32", "float64"), "sums of float32 or float64")
    shapes = {
        "hessian": (n_features * (n_features + 1) // 2,),
        "gradient": (n_features, n_targets),
        "z_mean": (n_features,),
        "y_mean": (n_targets,),
        "y_square": (n_targets,),
    }
    expect(arrays.keys() == (shapes.keys() if n_features else set()), "the arrays of sums")
    for name, array in arrays.items():
        expect_array(name, array, "f", shapes[name])
        expect(bool(np.isfinite(array).all()), f"finite {name}")
        expect(metadata["weight"] > 0 or not array.any(), f"no {name} without a weight")
    if n_features:  # sums of squares, up to rounding errors of rows that were removed again
        columns = np.arange(n_features)
        squares = arrays["hessian"][columns * n_features - columns * (columns - 1) // 2]
        expect(bool((squares >= -1e-6 * np.abs(squares).max()).all()), "squares of features")


def _check_learner(model: Any, n_targets: int, n_columns: int | None = None) -> None:
    stream, solution = model._stream, model._stream.solution
    maps = [model.feature_map_, stream.feature_map]
    if model._probe_features is not None:  # a checkpoint, whose caller brings the map
        expect(maps == [None, None], "a checkpoint without its map")
        expect_array("features", model._probe_features, "f", (1, stream.n_features))
        maps = []
    n_encoded = _n_encoded(model)
    for feature_map in maps:
        width = _width(feature_map, n_encoded)
        expect(width == stream.n_features, f"a map of {stream.n_features} features")
    for fold in stream.folds:
        expect(fold.n_targets == n_targets or not fold.n_features, f"sums of {n_targets} targets")
    expect(solution is not None or not stream._closed, "a solution")
    if not stream._closed:  # it may be solved again
        model._check_parameters()
        intercept = getattr(model, "fit_intercept", True)
        expect(intercept in (False, True), "fit_intercept is True or False")
    if solution is not None:
        width = n_targets if n_columns is None else n_columns
        expect_array("coef", solution.coef, "f", (stream.n_features, width))
    if model._probe is not None:
        expect(model._probe.shape == (1, n_encoded), "one row that tells maps apart")


def _n_encoded(model: Any) -> int:
    """Number of columns that the map of a model receives."""
    encoder = model.encoder_
    if encoder is None:
        return int(model.n_features_in_)
    expect(isinstance(encoder, TableEncoder) and "columns_" in vars(encoder), "a fitted encoder")
    expect(encoder.n_features_in_ == model.n_features_in_, "an encoder of these columns")
    return int(encoder.n_encoded_)


def _width(feature_map: Any, n_columns: int) -> int:
    """Return how many features a map from a file computes from rows with `n_columns` columns."""
    if feature_map is None:
        return n_columns
    if isinstance(feature_map, FrozenEstimator):
        return _width(feature_map.estimator, n_columns)
    expect(isinstance(feature_map, FeatureMap), "a map of this package")
    expect("_n_features_out" in vars(feature_map), "a map that is fitted")
    expect(feature_map.n_features_in_ == n_columns, f"a map for rows of {n_columns} columns")
    return int(feature_map._n_features_out)
