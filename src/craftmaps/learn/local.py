"""Kernel machines with feature_map="local": an exact kernel in each leaf of a tree of rows.

The fitted `LocalMap` predicts, so its features are predictions already: the coefficients of the
learner are the identity. So everything that works on a fitted learner works here too.
"""

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.learn.codes import DISCRIMINANT, CodeMatrix, Unchanged
from craftmaps.learn.solvers.choose import is_auto, is_sequence
from craftmaps.learn.solvers.solution import Solution, check_weight, mean_and_spread
from craftmaps.learn.stream import FeatureStream
from craftmaps.search.leaf_machines import Lessons
from craftmaps.search.report import Report, Search

MANY_LOCAL_ROWS = (
    50_000  # so many rows have many leaves, and few features for the size of the table
)
MANY_NUMBERS = 16_384  # with fewer numbers to learn from, features are nearly as good as kernels
_MOST_COLUMNS = 100  # with more columns, rows in a leaf are hardly closer than others
_CLEARLY = 0.7  # below this ratio of expected errors, before the other model is fitted,
_BETTER = 0.95  # or this ratio afterwards, local machines are chosen


def local_rival(
    machine: Any, X: Any, y: np.ndarray, weights: np.ndarray | None, search: Search | None
) -> Any:
    """Return a copy of a machine with feature_map="local", fitted to validated rows.

    `machine` has fitted its map, and `search` chose it. Returns None if the rows do not suit local
    machines.
    """
    encoder = machine.encoder_
    width = X.shape[1] if encoder is None else encoder.n_encoded_
    is_sparse = sparse.issparse(X) or getattr(encoder, "is_sparse_", False)
    if search is None or is_sparse or width > _MOST_COLUMNS:
        return None
    rival = copy(machine)
    rival.feature_map = "local"
    learn_locally(rival, X, y, weights, search)
    return rival


def is_better(rival: Any, report: Report | None, *, certain: bool) -> bool:
    """Whether the expected error of local machines is lower than that of a report.

    Unless `certain`, the report comes from a search, and the model of all rows will be better.
    """
    if report is None:
        return False
    return bool(rival.report_.error < (_BETTER if certain else _CLEARLY) * report.error)


def learn_locally(
    machine: Any,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    search: Search | None = None,
) -> None:
    """Fit a kernel machine with feature_map="local" to validated rows.

    `search` is the result of a search with the same rows, if there was one.
    """
    machine._check_parameters()
    machine.loss_ = "squared" if machine.loss == "auto" else None
    machine.fit_encoder(machine._sampled(X, y)[0])
    rows, targets = machine._encoded(X), machine._targets(y)
    if sparse.issparse(rows):
        raise ValueError("feature_map='local' needs dense rows; use 'auto' for sparse rows.")
    row_weights = machine._row_weights(weights, targets)
    row_weights = np.ones(len(y)) if row_weights is None else row_weights.astype(np.float64)
    weighty = row_weights > 0
    check_weight(float(row_weights.sum()))
    lessons = _lessons(machine, y, targets, row_weights, weighty, search)
    feature_map = machine._new_map().fit(rows[weighty], lessons)
    width = lessons.Y.shape[1]
    stream = FeatureStream(feature_map, width, 0, rows.dtype, machine._encode)
    mean, spread = mean_and_spread(lessons.Y, lessons.weights)
    stream.solution = Solution(
        np.eye(width),
        np.zeros(width),
        feature_map.machines_.alpha_,
        jitter=0.0,
        condition=1.0,
        left_out=True,
        y_mean=mean,
        y_spread=spread,
    )
    stream.n_rows, stream._closed = len(y), True
    machine.feature_map_, machine._stream, machine._probe = feature_map, stream, None
    left_out = feature_map.take_left_out()
    places = left_out.places
    machine.learn_errors(left_out.predicted, targets[weighty][places], lessons.weights[places])


def _lessons(
    machine: Any,
    y: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    weighty: np.ndarray,
    search: Search | None,
) -> Lessons:
    Y = machine._encode(targets[weighty])
    n_classes = 0
    if not isinstance(machine._encode, CodeMatrix | Unchanged):
        n_classes = len(machine.classes_)
    weights = weights[weighty]
    if is_auto(machine.alpha):
        weights = weights / weights.mean()
    return Lessons(y[weighty], Y, weights, n_classes, search)


def check_local(machine: Any) -> None:
    """Raise ValueError for parameters that local machines do not have."""
    if machine.loss not in ("auto", "squared"):
        raise ValueError(
            f"feature_map='local' minimizes squared errors in each leaf, so it cannot minimize "
            f"loss={machine.loss!r}; use 'auto' or 'squared', or another map."
        )
    if is_sequence(machine.alpha) or (
        isinstance(machine.alpha, str) and not is_auto(machine.alpha)
    ):
        raise ValueError(
            f"with feature_map='local', alpha must be 'auto' or a number, got {machine.alpha!r}."
        )
    if getattr(machine, "decoding", None) == DISCRIMINANT:
        raise ValueError("decoding='discriminant' is not for feature_map='local'; use 'l2'.")
