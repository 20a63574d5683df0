"""What the one-pass classifier and the one-pass regressor do the same way."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import validate_data

from craftmaps.learn.checkpoint import Checkpoint, positioned
from craftmaps.learn.codes import DISCRIMINANT, Discriminant
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.progress import Progress
from craftmaps.learn.solvers import ridge
from craftmaps.learn.solvers.conjugate_gradients import KeptRows, search
from craftmaps.learn.solvers.memory import MANY, refuse_if_too_large, refuse_too_many_rows
from craftmaps.learn.solvers.penalty import penalty_of
from craftmaps.learn.stream import Encode, FeatureStream, Problem, fill_features
from craftmaps.storage import model_file
from craftmaps.validation import is_integer, is_number

FLOATS = (np.float64, np.float32)
SAMPLE_ROWS = 1024  # kept to calibrate probabilities, and to choose alpha where rows are few
_PREDICT_ROWS = 1024  # turned into features at a time by predictions, or more if they are short
_PREDICT_BYTES = 1 << 22
_PROBED = 1000  # rows at most that are looked at for one that is not zero


def fit_whole(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Learn from all rows at once, forgetting what was learnt before."""
    vars(estimator).pop("_stream", None)
    try:
        with Progress(len(y) if hasattr(y, "__len__") else None) as line:
            estimator._add(X, y, sample_weight, line, whole=True)
            solution_of(estimator)
    except BaseException:
        vars(estimator).pop("_stream", None)  # some of the rows are no model
        raise


def fit_blocks(
    estimator: Any,
    blocks: Iterable[Any],
    checkpoint: Any,
    every: float,
    progress: bool | None,
    **options: Any,
) -> None:
    """Learn from blocks, from where a checkpoint was made if there is one.

    `options` are those of the estimator's method `_add`.
    """
    vars(estimator).pop("_stream", None)
    kept: Checkpoint | None = None
    position: list[Any] | None = None
    if checkpoint is not None:
        kept = Checkpoint(checkpoint, every, estimator, blocks, options)
        position = kept.restore()
    total = getattr(blocks, "n_rows", None)
    if total is not None and position is not None:
        total -= estimator.n_samples_seen_
    following = positioned(blocks, position, kept=kept is not None)
    with Progress(total, progress) as line, closing(following) as remaining:
        for position, block in remaining:
            estimator._add(*block, line, **options)
            if kept is not None:
                kept.save_if_due(position)
    if not hasattr(estimator, "_stream"):
        raise ValueError("blocks is empty: there is nothing to learn from.")
    if kept is not None and position is not None:
        kept.save(position, finished=True)
    solution_of(estimator)


def begin(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    encode: Encode,
    *,
    n_targets: int,
    n_rows: int | None = None,
    sample_rows: int = 0,
    calibrates: bool = False,
) -> None:
    """Fit the map on the rows X and give the estimator an empty stream.

    n_rows is how many rows will come in all, None if that is not known; for the others see
    FeatureStream.
    """
    _check_parameters(estimator)
    feature_map = estimator.feature_map
    if feature_map is not None:
        feature_map = clone(feature_map).fit(X, y)
    n_features = X.shape[1] if feature_map is None else feature_map.transform(X[:1]).shape[1]
    capacity = estimator.block_rows if n_rows is None else min(estimator.block_rows, n_rows)
    n_folds = 1 if _is_single(estimator.alpha) else estimator.n_folds
    if n_rows is not None and n_rows < n_features:
        spanned = n_rows <= MANY or not _may_iterate(estimator)
        refuse_too_many_rows(n_rows, n_features, X.dtype.itemsize, spanned=spanned)
        capacity = n_rows
    else:
        in_place = ridge.solves_in_place(
            estimator.alpha, estimator.fit_intercept, hasattr(feature_map, "penalty")
        )
        refuse_if_too_large(n_features, n_targets, X.dtype.itemsize, n_folds, copy=not in_place)
    estimator.feature_map_ = feature_map
    estimator._stream = FeatureStream(
        feature_map,
        n_features,
        capacity,
        X.dtype,
        encode,
        n_folds,
        sample_rows,
        calibrates,
    )
    # a row by which maps are told apart: many of them agree about the origin
    first = int(np.argmax(row_norms(X[:_PROBED]) > 0))
    estimator._probe = X[first : first + 1].copy()


def stream_of(estimator: Any) -> FeatureStream:
    """The stream of a fitted estimator."""
    if not hasattr(estimator, "_stream"):
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet; call fit, partial_fit or "
            f"fit_blocks first."
        )
    stream: FeatureStream = estimator._stream
    return stream


def solution_of(estimator: Any) -> ridge.Solution:
    """The solution for all rows so far; computed when it is first asked for."""
    stream = stream_of(estimator)
    if stream.solution is None:
        with stream.lock:
            if stream.solution is None:  # by another thread meanwhile
                stream.solution = _solve(estimator, stream)
    return stream.solution


def solved(name: str) -> Any:
    """A read-only attribute of an estimator that comes from its solution."""

    def get(estimator: Any) -> Any:
        return getattr(solution_of(estimator), name)

    return property(get)


def predictions(estimator: Any, X: Any) -> Iterator[np.ndarray]:
    """Predicted targets, some rows at a time."""
    solution, stream = solution_of(estimator), stream_of(estimator)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=FLOATS, reset=False)
    coef, intercept = (a.astype(X.dtype) for a in (solution.coef, solution.intercept))
    step = max(_PREDICT_ROWS, _PREDICT_BYTES // (stream.n_features * X.dtype.itemsize))
    buffer = np.empty((min(step, X.shape[0]), stream.n_features), X.dtype)
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        Z = buffer[: rows.shape[0]]
        fill_features(stream.feature_map, rows, Z)
        yield Z @ coef + intercept


def left_out_predictions(estimator: Any) -> np.ndarray:
    """What would be predicted for the rows of the sample, had each been left out of the pass."""
    solution, stream = solution_of(estimator), stream_of(estimator)
    fitted = stream.sample.Z @ solution.coef + solution.intercept
    if solution.mean_leverage is not None:
        Y = stream.encode(stream.sample.labels).astype(np.float64)
        return _left_out_on_average(fitted, Y, stream.sample.weights, solution.mean_leverage)
    penalty = penalty_of(stream.feature_map, stream.n_features)
    problem = stream.problem(estimator.fit_intercept, penalty is None)
    total, held = problem.total(), _left_out(estimator, stream, problem)
    same: dict[str, Any] = {"fit_intercept": estimator.fit_intercept, "penalty": penalty}
    alpha = solution.alpha
    predicted, clear = ridge.left_out_predictions(total, held, fitted, alpha, **same)
    if problem.space is not None and not clear:
        # rows are interpolated, and rounding hides what they would be without themselves; that
        # hardly depends on alpha where it is so small, so it is seen at the least one that shows it
        path = ridge.RidgePath(total, **same)
        for alpha in path.grid()[::4]:
            if np.all(alpha > solution.alpha):
                larger = path.solution(alpha)
                fitted = held.Z @ larger.coef + larger.intercept
                predicted, clear = ridge.left_out_predictions(total, held, fitted, alpha, **same)
                if clear:
                    break
    return predicted


def check_mergeable(estimator: Any, other: Any) -> None:
    """Raise unless both are fitted, of one kind, with the same map and the same folds."""
    if type(other) is not type(estimator):
        raise ValueError(
            f"a {type(estimator).__name__} merges with another one, not with a "
            f"{type(other).__name__}."
        )
    mine, theirs = stream_of(estimator), stream_of(other)
    mine.check_open()
    theirs.check_open()
    if mine.n_features == theirs.n_features and len(mine.folds) == len(theirs.folds):
        Z = np.empty((2, 2, mine.n_features))  # of both maps, for a row of each
        for features, stream in zip(Z, (mine, theirs), strict=True):
            fill_features(stream.feature_map, estimator._probe, features[:1])
            fill_features(stream.feature_map, other._probe, features[1:])
        if np.allclose(Z[0], Z[1], rtol=1e-4, atol=1e-4 * np.abs(Z).max()):
            return
    raise ValueError(
        "the two learners have different feature maps or folds, so their sums do not add; fit one "
        "map and give it to both as sklearn.frozen.FrozenEstimator(feature_map)."
    )


def save(estimator: Any, path: Any, resumable: bool) -> None:
    """Write a fitted estimator to a file, with the sums of its rows if it is to be resumable."""
    solution_of(estimator)
    if resumable:
        estimator._stream.check_open()
    getattr(estimator, "temperature_", None)  # probabilities need it, and it needs the sums
    saved = copy(estimator)
    if not resumable:
        saved._stream = estimator._stream.closed()
        vars(saved).pop("_probe", None)  # a row of somebody's data
    model_file.save(saved, path)


def sample_weights(weights: Any, X: Any) -> np.ndarray | None:
    """Validated weights, or None."""
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (X.shape[0],) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            f"sample_weight must be {X.shape[0]} finite numbers that are not negative, one per "
            f"row, got shape {weights.shape}."
        )
    return np.asarray(weights)


def _solve(estimator: Any, stream: FeatureStream) -> ridge.Solution:
    penalty = penalty_of(stream.feature_map, stream.n_features)
    if penalty is None and stream.keeps_many_rows() and _may_iterate(estimator):
        return _solve_by_iteration(estimator, stream)
    problem = stream.problem(estimator.fit_intercept, penalty is None)
    alpha, errors = estimator.alpha, None
    _check_folds(estimator, len(problem.folds))
    options: dict[str, Any] = {"fit_intercept": estimator.fit_intercept, "penalty": penalty}
    if not _is_single(alpha):
        if not all(fold.weight for fold in problem.folds):
            raise ValueError(
                f"{stream.n_rows} rows do not fill {estimator.n_folds} folds; lower n_folds, or "
                f"give one alpha."
            )
        errors = ridge.cross_validate(problem.folds, alpha, **options)
        alpha = ridge.choose(alpha, errors, estimator.alpha_per_target)
    total = problem.total()
    if isinstance(alpha, str) and total.weight <= stream.n_features and stream.sample.weights.any():
        options["left_out"] = _left_out(estimator, stream, problem)
    solution = ridge.solve(total, alpha, per_target=estimator.alpha_per_target, **options)
    if getattr(estimator, "decoding", None) == DISCRIMINANT:
        solution.discriminant = _discriminant(
            stream, problem, total, solution, estimator.fit_intercept
        )
    if errors is not None:
        solution.alphas, solution.scores = np.asarray(estimator.alpha, dtype=float), errors
    return problem.restore(solution)


def _solve_by_iteration(estimator: Any, stream: FeatureStream) -> ridge.Solution:
    Z, labels, weights = stream.kept()
    Y = stream.encode(labels).astype(np.float64)
    alpha, alphas, scores = estimator.alpha, None, None
    if isinstance(alpha, str):

        def score(judged: np.ndarray, predicted: np.ndarray) -> float:
            held = _held(estimator, predicted, Y[judged], labels[judged], weights[judged])
            return float(held.scores(predicted).mean())

        alphas, scores = search(Z, Y, weights, estimator.fit_intercept, score)
        scores = scores[:, None]
        alpha = ridge.largest_of_best(alphas, scores, per_target=False)
    rows = KeptRows(Z, weights, estimator.fit_intercept)
    solution = rows.solve(Y, float(alpha))
    solution.alphas, solution.scores, solution.left_out = alphas, scores, alphas is not None
    if getattr(estimator, "decoding", None) == DISCRIMINANT:
        fitted, leverage = rows.predicted(solution), float(solution.mean_leverage or 0.0)
        predicted = _left_out_on_average(fitted, Y, weights, leverage)
        solution.discriminant = Discriminant.of_rows(
            predicted, labels, weights, estimator.fit_intercept
        )
    return solution


def _left_out_on_average(
    fitted: np.ndarray, Y: np.ndarray, weights: np.ndarray, leverage: float
) -> np.ndarray:
    """Predictions for rows had each been left out, if all had the same leverage."""
    held = ridge.LeftOut(np.empty((0, 0)), Y, weights)
    return held.predicted(fitted, np.full(len(Y), leverage))


def _discriminant(
    stream: FeatureStream,
    problem: Problem,
    total: NormalEquations,
    solution: ridge.Solution,
    fit_intercept: bool,
) -> Discriminant:
    """That of predictions for rows left out, where all rows are kept, else that of the sums.

    Of few rows a model shows less spread within classes than new rows will have: it is close to
    interpolating them.
    """
    same_sum = fit_intercept and np.ndim(solution.alpha) == 0
    if problem.space is not None:
        _, labels, weights = stream.kept()
        Y = stream.encode(labels).astype(np.float64)
        held = ridge.LeftOut(problem.space.coordinates, Y, weights)
        fitted = held.Z @ solution.coef + solution.intercept
        predicted, clear = ridge.left_out_predictions(
            total, held, fitted, solution.alpha, fit_intercept=fit_intercept
        )
        if clear:
            return Discriminant.of_rows(predicted, labels, weights, same_sum)
    return ridge.discriminant(total, solution, same_sum)


def _left_out(estimator: Any, stream: FeatureStream, problem: Problem) -> ridge.LeftOut:
    """The rows of the sample, judged by squared errors of targets or as the estimator does."""
    sample = stream.sample
    Y = stream.encode(sample.labels).astype(np.float64)
    return _held(estimator, problem.rows(sample.Z), Y, sample.labels, sample.weights)


def _held(
    estimator: Any, Z: np.ndarray, Y: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> ridge.LeftOut:
    own = None if estimator.alpha_per_target else getattr(estimator, "_loss", None)
    loss = None if own is None else lambda predicted: own(predicted, labels, weights)
    return ridge.LeftOut(Z, Y, weights, loss)


def _check_folds(estimator: Any, n_folds: int) -> None:
    """Complain if alpha became a sequence, or another number of folds, after rows were added."""
    wanted = 1 if _is_single(estimator.alpha) else estimator.n_folds
    if wanted > 1 and wanted != n_folds:
        raise ValueError(
            f"rows were added to {n_folds} fold{'s' * (n_folds > 1)}, and "
            f"alpha={estimator.alpha!r} needs {wanted}; set alpha and n_folds before the first row."
        )


def _is_single(alpha: Any) -> bool:
    return isinstance(alpha, str) or np.ndim(alpha) == 0


def _may_iterate(estimator: Any) -> bool:
    """Whether one alpha for all targets is given, or is to be searched without folds."""
    alpha = estimator.alpha
    return _is_single(alpha) and not (isinstance(alpha, str) and estimator.alpha_per_target)


def _check_parameters(estimator: Any) -> None:
    alpha = estimator.alpha
    values = [alpha] if _is_single(alpha) else list(alpha)
    named = isinstance(alpha, str) and alpha == "gcv"
    if not named and not (values and all(is_number(v) and v >= 0 for v in values)):
        raise ValueError(
            f"alpha must be 'gcv', a number of at least 0, or a sequence of such numbers, got "
            f"{alpha!r}."
        )
    for name, least in (("block_rows", 1), ("n_folds", 2)):
        value = getattr(estimator, name)
        if not is_integer(value) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
