"""Whether a learner from a file fits together: every width is compared with every other."""

from typing import Any

from sklearn.frozen import FrozenEstimator

from craftmaps.learn.codes import Unchanged
from craftmaps.maps.base import FeatureMap
from craftmaps.storage.expect import expect, expect_array, expect_indices
from craftmaps.tables import TableEncoder


def check_regressor(model: Any) -> None:
    """Raise ValueError unless map, sums, coefficients and targets of a regressor agree."""
    expect(isinstance(model._stream.encode, Unchanged), "targets without a code")
    expect(not model._one_target or model._n_targets == 1, "one target")
    _check_learner(model, model._n_targets)
    sample = model._stream.sample
    if len(sample.Z):
        expect_array("targets of the sample", sample.labels, "f", (None, model._n_targets))


def check_classifier(model: Any) -> None:
    """Raise ValueError unless map, sums, coefficients, codes and classes agree."""
    code, stream = model._code, model._stream
    expect_array("classes", model.classes_, "biufUO", (code.n_classes,))
    expect(stream.encode is code, "one code for the learner and its sums")
    _check_learner(model, code.n_bits)
    expect_indices("labels of the sample", stream.sample.labels, code.n_classes, (None,))
    expect(not stream._closed or stream.temperature is not None, "a temperature")
    if stream._filled:
        used = stream._y[: stream._filled]
        expect_indices("labels of rows", used, code.n_classes, (None,))


def check_components(model: Any) -> None:
    """Raise ValueError unless map, sums and components agree."""
    expect(isinstance(model._stream.encode, Unchanged), "no code")
    solution = model._stream.solution
    _check_learner(model, 0, None if solution is None else len(solution.intercept))
    expect(solution is None or hasattr(solution, "variances"), "components with their variances")


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
    """The number of columns that the map of a model is given."""
    encoder = model.encoder_
    if encoder is None:
        return int(model.n_features_in_)
    expect(isinstance(encoder, TableEncoder) and "columns_" in vars(encoder), "a fitted encoder")
    expect(encoder.n_features_in_ == model.n_features_in_, "an encoder of these columns")
    return int(encoder.n_encoded_)


def _width(feature_map: Any, n_columns: int) -> int:
    """The number of features that a map from a file makes of rows of so many columns."""
    if feature_map is None:
        return n_columns
    if isinstance(feature_map, FrozenEstimator):
        return _width(feature_map.estimator, n_columns)
    expect(isinstance(feature_map, FeatureMap), "a map of this package")
    expect("_n_features_out" in vars(feature_map), "a map that is fitted")
    expect(feature_map.n_features_in_ == n_columns, f"a map for rows of {n_columns} columns")
    return int(feature_map._n_features_out)
