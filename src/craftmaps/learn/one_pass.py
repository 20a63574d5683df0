"""Squared loss from the sums of one pass: what OnePassClassifier and OnePassRegressor share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from craftmaps.learn.discriminant import Discriminant
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.mergeable import Mergeable
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers import from_sums, ridge
from craftmaps.learn.solvers.cholesky import Cholesky
from craftmaps.learn.solvers.choose import Solver, choose, is_auto, is_scalar, is_sequence
from craftmaps.learn.solvers.conjugate_gradients import KeptRows, search
from craftmaps.learn.solvers.left_out import LeftOut
from craftmaps.learn.solvers.memory import refuse_if_too_large, refuse_too_many_rows
from craftmaps.learn.solvers.path import cross_validate
from craftmaps.learn.solvers.penalty import has_penalty, in_place, penalty_of
from craftmaps.learn.solvers.search import (
    ALPHAS_PER_DECADE,
    alpha_grid,
    best_alpha,
    largest_of_best,
)
from craftmaps.learn.solvers.solution import Solution, mean_and_spread
from craftmaps.learn.solvers.span import Problem
from craftmaps.learn.stream import FeatureStream
from craftmaps.validation import check_count, is_number

SAMPLE_ROWS = 1024  # kept to calibrate probabilities and to choose alpha
Loss = Callable[[np.ndarray], np.ndarray]


class OnePass(Mergeable):
    """Exact ridge regression from sums that can be merged and saved.

    Targets are encoded as columns, and the method `_loss` of a subclass scores leave-one-out
    predictions when alpha is chosen.
    """

    alpha: Any
    fit_intercept: bool
    alpha_per_target: bool
    n_folds: int

    def _loss(self, targets: np.ndarray, weights: np.ndarray) -> Loss | None:
        """Return a function that scores predictions for rows with these targets.

        None stands for the mean squared error.
        """
        return None

    def _wants_discriminant(self) -> bool:
        return False

    @property
    def alpha_(self) -> Any:
        return self.solution_.alpha

    @property
    def jitter_(self) -> Any:
        return self.solution_.jitter

    @property
    def condition_(self) -> Any:
        return self.solution_.condition

    @property
    def alphas_(self) -> np.ndarray | None:
        return self.solution_.alphas

    @property
    def scores_(self) -> np.ndarray | None:
        return self.solution_.scores

    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return leave-one-out predictions for a uniform sample of the rows.

        Returns
        -------
        predicted : ndarray of shape (n_rows, n_targets), or scores (n_rows, n_classes)
        targets : ndarray of shape (n_rows, n_targets), or places in `classes_` (n_rows,)
        weights : ndarray of shape (n_rows,)
        """
        solution, sample = self.solution_, self._stream.sample
        self._stream.check_open()
        return self._left_out_predictions(solution), sample.labels, sample.weights

    def _left_out_predictions(self, solution: Solution) -> np.ndarray:
        stream = self._stream
        fitted = stream.sample.Z @ solution.coef + solution.intercept
        if solution.mean_leverage is not None:
            Y = stream.encode(stream.sample.labels).astype(np.float64)
            return _left_out_on_average(fitted, Y, stream.sample.weights, solution.mean_leverage)
        problem, penalty = self._problem()
        total, held = problem.total(), self._held_sample(problem)
        solver = Cholesky(total, self.fit_intercept, penalty)
        predicted, clear = solver.left_out_predictions(held, fitted, solution.alpha)
        if problem.space is not None and not clear:
            # Some rows are interpolated, so rounding hides what would be predicted without them.
            # That prediction hardly depends on such a small alpha, so this takes the smallest alpha
            # that shows it.
            eps, trace = np.finfo(total.precision).eps, total.hessian.trace()
            for alpha in alpha_grid(float(eps), float(trace))[::ALPHAS_PER_DECADE]:
                if np.all(alpha > solution.alpha):
                    larger = solver.solve(alpha)
                    fitted = held.Z @ larger.coef + larger.intercept
                    predicted, clear = solver.left_out_predictions(held, fitted, alpha)
                    if clear:
                        break
        return predicted

    def _new_stream(
        self, feature_map: Any, n_features: int, n_rows: int | None, dtype: np.dtype
    ) -> FeatureStream:
        capacity = self.block_rows if n_rows is None else min(self.block_rows, n_rows)
        n_folds, by_class = self._fold_kind()
        penalized = has_penalty(feature_map)
        if n_rows is not None and n_rows < n_features:
            kind = self._choice(n_rows, n_features, penalized=False)
            spanned = kind is Solver.SPAN
            refuse_too_many_rows(n_rows, n_features, dtype.itemsize, spanned=spanned)
            capacity = n_rows
        else:
            copy = not is_scalar(self.alpha) or not in_place(self.fit_intercept, penalized)
            sizes = (n_features, self._n_columns, dtype.itemsize, n_folds)
            refuse_if_too_large(*sizes, copy=copy, by_class=by_class)
        return FeatureStream(
            feature_map,
            n_features,
            capacity,
            dtype,
            self._encode,
            n_folds,
            SAMPLE_ROWS,
            1.0 if self.decay is None else float(self.decay),
            by_class,
        )

    def _fold_kind(self) -> tuple[int, bool]:
        """Number of folds, each with its own sums, and whether the folds are classes."""
        return (self.n_folds if is_sequence(self.alpha) else 1), False

    def _solve(self) -> Solution:
        stream = self._stream
        if self._solver() is Solver.CONJUGATE_GRADIENTS:
            return self._solve_by_iteration()
        problem, penalty = self._problem()
        alpha, errors = self.alpha, None
        self._check_folds(len(problem.folds))
        options: dict[str, Any] = {"fit_intercept": self.fit_intercept, "penalty": penalty}
        if is_sequence(alpha):
            if not all(fold.weight for fold in problem.folds):
                raise ValueError(
                    f"{stream.n_rows} rows do not fill {self.n_folds} folds; lower n_folds, or "
                    f"give one alpha."
                )
            errors = cross_validate(problem.folds, alpha, **options)
            alpha = best_alpha(alpha, errors, self.alpha_per_target)
        total = problem.total()
        if is_auto(alpha) and stream.sample.weights.any():
            options["left_out"] = self._held_sample(problem)
            options["hint"] = getattr(stream.feature_map, "alpha_", None)
        solution = ridge.solve(total, alpha, per_target=self.alpha_per_target, **options)
        solution.y_mean, solution.y_spread = total.y_mean, np.sqrt(total.y_square / total.weight)
        if self._wants_discriminant():
            solution.discriminant = self._discriminant(problem, total, solution)
        if errors is not None:
            solution.alphas, solution.scores = np.asarray(self.alpha, dtype=float), errors
        return problem.restore(solution)

    def _solve_by_iteration(self) -> Solution:
        Z, labels, weights = self._stream.kept()
        Y = self._stream.encode(labels).astype(np.float64)
        alpha, alphas, scores = self.alpha, None, None
        if isinstance(alpha, str):

            def score(judged: np.ndarray, predicted: np.ndarray) -> float:
                held = self._held(predicted, Y[judged], labels[judged], weights[judged])
                return float(held.scores(predicted).mean())

            alphas, scores = search(Z, Y, weights, self.fit_intercept, score)
            scores = scores[:, None]
            alpha = largest_of_best(alphas, scores, per_target=False)
        rows = KeptRows(Z, weights, self.fit_intercept)
        if alphas is not None:
            alpha = max(float(alpha), rows.least_alpha)  # a little larger than for nine tenths
        solution = rows.solve(Y, float(alpha))
        solution.alphas, solution.scores, solution.left_out = alphas, scores, alphas is not None
        solution.y_mean, solution.y_spread = mean_and_spread(Y, weights)
        if self._wants_discriminant():
            fitted, leverage = rows.predicted(solution), float(solution.mean_leverage or 0.0)
            predicted = _left_out_on_average(fitted, Y, weights, leverage)
            solution.discriminant = Discriminant.of_rows(
                predicted, labels, weights, self.fit_intercept
            )
        return solution

    def _discriminant(
        self, problem: Problem, total: NormalEquations, solution: Solution
    ) -> Discriminant:
        """Learn the discriminant from leave-one-out predictions, or from the sums of many rows.

        A model that nearly interpolates its rows shows less spread within classes than new rows
        will have.
        """
        same_sum = self.fit_intercept and np.ndim(solution.alpha) == 0
        if problem.space is not None:
            _, labels, weights = self._stream.kept()
            Y = self._stream.encode(labels).astype(np.float64)
            held = LeftOut(problem.space.coordinates, Y, weights)
            fitted = held.Z @ solution.coef + solution.intercept
            solver = Cholesky(total, self.fit_intercept)
            predicted, clear = solver.left_out_predictions(held, fitted, solution.alpha)
            if clear:
                return Discriminant.of_rows(predicted, labels, weights, same_sum)
        return from_sums.discriminant(total, solution, same_sum)

    def _held_sample(self, problem: Problem) -> LeftOut:
        sample = self._stream.sample
        Y = self._stream.encode(sample.labels).astype(np.float64)
        return self._held(problem.rows(sample.Z), Y, sample.labels, sample.weights)

    def _held(
        self, Z: np.ndarray, Y: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> LeftOut:
        """Return rows to leave out, with no loss of their own if each target has an alpha."""
        loss = None if self.alpha_per_target else self._loss(labels, weights)
        return LeftOut(Z, Y, weights, loss)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """The attributes of a learner in a file of 0.1.0, where "auto" was called "gcv"."""
        if "map_rows" in state:
            return state
        alpha = state["alpha"]
        renamed = "auto" if isinstance(alpha, str) and alpha == "gcv" else alpha
        return state | {"map_rows": DEFAULT_MAP_ROWS, "alpha": renamed}

    def _check_folds(self, n_folds: int) -> None:
        """Raise ValueError if alpha or n_folds changed after rows came and now need other folds."""
        wanted = self.n_folds if is_sequence(self.alpha) else 1
        if wanted > 1 and wanted != n_folds:
            raise ValueError(
                f"rows were added to {n_folds} fold{'s' * (n_folds > 1)}, and alpha="
                f"{self.alpha!r} needs {wanted}; set alpha and n_folds before the first row."
            )

    def _problem(self) -> tuple[Problem, np.ndarray | None]:
        """Return the sums to solve, and the matrix of the penalty, which is None for |b|^2."""
        stream = self._stream
        penalty = penalty_of(stream.feature_map, stream.n_features)
        return stream.problem(self.fit_intercept, self._solver() is Solver.SPAN), penalty

    def _solver(self) -> Solver:
        """Return the solver for the rows so far."""
        stream = self._stream
        return self._choice(stream.n_kept, stream.n_features, has_penalty(stream.feature_map))

    def _choice(self, n_kept: int | None, n_features: int, penalized: bool) -> Solver:
        return choose(
            n_kept, n_features, self.alpha, penalized=penalized, per_target=self.alpha_per_target
        )

    def _check_rest(self, removed: float) -> None:
        stream = self._stream
        if (
            is_scalar(self.alpha)
            and not self.alpha
            and stream.weight - removed <= stream.n_features
        ):
            raise ValueError(
                f"without these rows the system of alpha=0 is singular: no more rows than "
                f"{stream.n_features} features would be left. Set alpha above 0 first."
            )

    def _check_parameters(self) -> None:
        alpha = self.alpha
        values = list(alpha) if is_sequence(alpha) else [alpha]
        named = isinstance(alpha, str) and alpha in ("auto", "gcv")
        if not named and not (values and all(is_number(v) and v >= 0 for v in values)):
            raise ValueError(
                f"alpha must be 'auto', 'gcv', a number of at least 0, or a sequence of such "
                f"numbers, got {alpha!r}."
            )
        super()._check_parameters()
        check_count("n_folds", self.n_folds, least=2)


def _left_out_on_average(
    fitted: np.ndarray, Y: np.ndarray, weights: np.ndarray, leverage: float
) -> np.ndarray:
    """Leave-one-out predictions if all rows had the same leverage."""
    return LeftOut(np.empty((0, 0)), Y, weights).predicted(fitted, np.full(len(Y), leverage))
