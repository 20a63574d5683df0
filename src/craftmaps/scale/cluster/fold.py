"""The computation of every cluster engine: sums of partitions that are merged in a tree.

An engine moves three things. The learner goes to every worker once, with the fitted map and without
any rows. Sums come back as bytes without the map: one triangle of the Hessian with 4 E^2 bytes for
E features, and up to 1,024 rows of features that are used to choose alpha or to calibrate
probabilities. Merging turns sums into one sum. Its order depends only on the numbers of the
partitions, so the result is the same bit for bit in every run.

Losses other than the squared loss take several passes. For each pass, the engine sends a small task
with the coefficients at which the loss is evaluated. Sums of gradients come back, and are merged in
the same tree. Features are computed again in each pass.

E features in float32 take 12 E^2 bytes while rows arrive (H and a work matrix), 20 E^2 bytes at the
end of a task, 24 E^2 bytes while sums are merged, and `block_rows` rows of features.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from craftmaps.learn import KernelPCA, OnePassClassifier, OnePassRegressor
from craftmaps.learn.passes import Task
from craftmaps.tables.values import is_missing

FAN_IN = 4  # number of sums that one task merges
_ASSUMED_LENGTH = 1 << 40  # rows of each partition, if the lengths are not known


def check_estimator(estimator: Any) -> None:
    """Raise an error unless clusters can fit this learner."""
    if not isinstance(estimator, OnePassClassifier | OnePassRegressor | KernelPCA):
        raise TypeError(
            f"clusters fit a OnePassClassifier, a OnePassRegressor or a KernelPCA, not a "
            f"{type(estimator).__name__}; put any other transformer into its feature_map."
        )
    if getattr(estimator, "decay", None) not in (None, 1):
        raise ValueError(
            f"decay={estimator.decay!r} follows the order of one stream, and partitions have no "
            f"order; use decay=None, or fit_blocks on one machine."
        )


def takes_passes(estimator: Any) -> bool:
    """Whether a fit takes, or may take, several passes over the rows."""
    return getattr(estimator, "_loss_name", "squared") != "squared"


@dataclass(frozen=True)
class Pass:
    """A task for one pass over the rows, and whether it needs their features."""

    task: Task
    features: bool


@dataclass
class Partitions:
    """Rows in the partitions of a cluster, for losses that take several passes.

    `run` returns the merged result of a Pass as bytes.
    """

    run: Callable[[Pass], bytes]
    n_rows: int
    n_features: int
    dtype: np.dtype
    feature_map: Any

    def collect(self, task: Task, *, features: bool = True) -> Any:
        """Return the sum of the results of a task for all partitions."""
        return pickle.loads(self.run(Pass(task, features)))


def needs_targets(estimator: Any) -> bool:
    """Whether the learner needs targets."""
    return not isinstance(estimator, KernelPCA)


def begin(
    estimator: Any, X: Any, y: Any, classes: Any = None, lengths: Sequence[int] | None = None
) -> Any:
    """Return a clone of `estimator` with a map fitted on the rows X, which has not learned yet.

    `lengths` are the numbers of rows of all partitions, if they are known.
    """
    n_rows = None if lengths is None else sum(lengths)
    return clone(estimator).begin(X, y, classes, n_rows)


def sums_of(
    learner: Any,
    blocks: Iterable[Any],
    number: int,
    first_row: int | None,
    one: Pass | None = None,
) -> bytes:
    """Return the sums of partition `number` from its blocks (X, y, sample_weight).

    `first_row` is the place of its first row among all rows. If it is None, each partition gets a
    range of places of its own, so rows are still sampled uniformly for calibration and shared
    evenly among folds. The sums are for the squared loss, or for `one` pass of another loss.
    """
    first_row = number * _ASSUMED_LENGTH if first_row is None else first_row
    try:
        if one is not None:
            rows = learner.pass_blocks(_checked(blocks), first_row, features=one.features)
            return pickle.dumps(one.task(rows), protocol=5)
        part = learner.emptied(first_row)
        for X, y, weights in _checked(blocks):
            part.add(X, y, weights)
    except ValueError as error:
        raise ValueError(f"partition {number}: {_first_sentence(error)}") from error
    return bytes(part.sums())


def _checked(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield blocks that are not empty, and check that they have as many rows as targets."""
    for X, y, weights in blocks:
        if y is not None and X.shape[0] != len(y):
            raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}.")
        if X.shape[0]:
            yield X, y, weights


def merged(learner: Any, parts: Iterable[Any], one: Pass | None = None) -> bytes:
    """Add the sums of all parts in their order; only one of them is unpacked at a time."""
    parts = iter(parts)
    if one is not None:
        found = (pickle.loads(part) for part in parts)
        known = [part for part in found if part is not None]
        return pickle.dumps(reduce(lambda a, b: a.add(b), known) if known else None, protocol=5)
    total = learner.with_sums(next(parts))
    for part in parts:
        total.add_sums(part)
    return bytes(total.sums())


def finish(
    learner: Any, run: Callable[[Pass | None], bytes], lengths: Sequence[int] | None = None
) -> Any:
    """Minimize the loss of a learner over the rows of all partitions.

    `run` returns the merged sums of all partitions, for the squared loss (None) or for a pass of
    another loss, which needs the `lengths` of the partitions.
    """
    if not takes_passes(learner):
        return learner.with_sums(run(None)).solve()
    stream = learner._stream
    rows = Partitions(run, sum(lengths or []), stream.n_features, stream.dtype, stream.feature_map)
    return learner.solve_passes(rows)


def for_prediction(estimator: Any, method: str) -> Any:
    """Return a copy of a fitted estimator for workers, with only what a method needs."""
    return estimator.for_prediction(uncertainty=method == "predict_interval")


def no_predictions(estimator: Any, method: str, dtype: np.dtype) -> np.ndarray:
    """Return an empty array of the type that a method returns for rows of this type."""
    if not callable(getattr(estimator, method, None)):
        raise ValueError(f"a {type(estimator).__name__} has no method {method!r}.")
    if estimator.encoder_ is not None:
        dtype = np.dtype(estimator.encoder_.dtype)
    floats = np.dtype(dtype if dtype == np.float32 else np.float64)
    if method == "transform":
        return np.empty((0, estimator.n_components_), floats)
    if not is_classifier(estimator):
        ends = (2,) if method == "predict_interval" else ()
        return np.empty((0, *np.shape(estimator.intercept_), *ends), floats)
    if method == "predict":
        return np.empty(0, estimator.classes_.dtype)
    n_classes = len(estimator.classes_)
    if method == "predict_set":
        return np.empty((0, n_classes), bool)
    one_column = method == "decision_function" and n_classes == 2
    return np.empty(0 if one_column else (0, n_classes), floats)


def labels_in(y: Any, number: int) -> tuple[np.ndarray, int]:
    """Return the distinct labels of a partition, and its number of rows."""
    y = np.asarray(y)
    missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)
    if y.dtype == object:
        missing = np.array([is_missing(value) for value in y.tolist()], bool)
    if missing.any():
        raise ValueError(f"partition {number}: the label of row {missing.argmax()} is missing.")
    return np.unique(y), len(y)


def first_rows(lengths: Iterable[int]) -> list[int]:
    """Return the places of the first rows of partitions of these lengths."""
    return [0, *np.cumsum(list(lengths)).tolist()][:-1]


def _first_sentence(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
