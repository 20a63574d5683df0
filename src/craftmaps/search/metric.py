"""A metric learned from the gradients of kernel models (recursive feature machines).

Directions in which predictions do not change need no distance. With G the mean of grad f grad f^T
over rows, distances are those of rows times G^power, or times a power of its diagonal: weights of
columns. Each step takes the gradients of a model of rows that are seen through the metric of the
step before (Radhakrishnan et al., Science 383, 2024).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.kernels import Gaussian, Laplacian, Matern
from craftmaps.kernels.gradients import gradient_products
from craftmaps.loops import cholesky
from craftmaps.search.candidates import Candidate
from craftmaps.search.exact import Judged, factor, judge, judge_unseen
from craftmaps.search.preparation import Lesson
from craftmaps.search.targets import Targets
from craftmaps.search.trials import Rows, Trial
from craftmaps.threads import on_threads

_MAX_COLUMNS_OF_TARGETS = 16  # whose gradients are computed
_MAX_LAPLACIAN_COLUMNS = 300
_MAX_ROTATED_COLUMNS = 100  # more directions than a thousand rows can tell
_LARGEST_ALPHA = 0.01  # a larger penalty would flatten the gradients
_POWERS = (0.25, 0.5)
_FEW_ROWS = 700
_MAX_STEPS = 6
_UNSEEN = 3  # one row in three judges the metric, and is not used to find it
_FRESH_ROWS = 300  # from which rows that nothing was chosen by judge the metric
_CLEAR_GAIN = 0.96  # share of the score that a metric must reach to be taken,
_DEVIATIONS = 2.0  # and by so many standard errors squared errors must be smaller
_LEAST_RATIO = 0.05  # of losses of left-out rows that the metric knows, and that it does not know
_HOPEFUL = 1.3  # ratio to the best score, beyond which a kernel does not win with a metric


def with_metric(rows: Rows, rounds: list[list[Trial]]) -> Candidate | None:
    """The best candidate of the last round with a learned metric, if that is clearly better.

    Few rows tell how to learn: which candidate to start from, weights or directions, the power and
    the number of steps. Leaving out a row that had a part in the metric would be no test of it, so
    that steps are judged by rows that had none. The metric of all rows of the round is then
    compared with the best candidate as it was, on rows that nothing was chosen by, if there are
    any.
    """
    n, best = rounds[-1][0].n_rows, rounds[-1][0].candidate
    few = _MetricSearch.of(rows, min(n, _FEW_ROWS))
    recipes = [
        Recipe(candidate, full, power)
        for candidate in _starts(rows, rounds, n)
        for full in (False, True)
        for power in _POWERS
        if not full or can_rotate(candidate, rows.prepared(candidate.preparation, n))
    ]
    tried = [one for one in on_threads(few.best_of, recipes) if one is not None]
    if not tried:
        return None
    _, recipe, n_steps = min(tried, key=lambda one: one[0])
    all_rows = _MetricSearch.of(rows, n)
    steps = list(islice(all_rows.steps(recipe), n_steps))
    if not steps:
        return None
    chosen = replace(steps[-1], alpha=all_rows.judged(steps[-1]).alpha)
    return all_rows.rated(chosen) if _is_clear(rows, n, best, chosen) else None


def _starts(rows: Rows, rounds: list[list[Trial]], n: int) -> list[Candidate]:
    """The best candidate that has gradients, the best that can rotate, and the best with levels."""
    hopeful = [
        trial.candidate
        for trials in reversed(rounds)
        for trial in trials
        if trial.score <= _HOPEFUL * trials[0].score
    ]
    hopeful = [c for c in hopeful if has_gradients(c, rows.prepared(c.preparation, n))]
    rotated = [c for c in hopeful if can_rotate(c, rows.prepared(c.preparation, n))]
    leveled = [c for c in rotated if c.preparation.levels]
    starts = hopeful[:1] + rotated[:1] + leveled[:1]
    return list({candidate.key: candidate for candidate in starts}.values())


def _is_clear(rows: Rows, n: int, plain: Candidate, chosen: Candidate) -> bool:
    """Whether a metric that was chosen on the first n rows beats the candidate without it."""
    fresh = np.arange(min(2 * n, len(rows))) >= n
    enough = fresh.sum() >= _FRESH_ROWS
    search = _MetricSearch(rows, fresh) if enough else _MetricSearch.of(rows, n)
    unseen = search.unseen
    before, after = search.judged(plain), search.judged(chosen)
    held = rows.targets(slice(len(unseen))).rows(unseen)
    gains = np.mean((before.predicted - held.Y) ** 2 - (after.predicted - held.Y) ** 2, axis=1)
    is_sure = gains.mean() > _DEVIATIONS * gains.std() / np.sqrt(len(gains))
    return bool(is_sure and after.score < _CLEAR_GAIN * before.score)


def has_gradients(candidate: Candidate, rows: Any) -> bool:
    """Whether weights of columns can be learned with this kernel for rows like these."""
    if sparse.issparse(rows):
        return False
    if isinstance(candidate.kernel, Laplacian):  # whose signs cost a matrix for each column
        return bool(rows.shape[1] <= _MAX_LAPLACIAN_COLUMNS)
    return isinstance(candidate.kernel, Gaussian | Matern)


def can_rotate(candidate: Candidate, rows: Any) -> bool:
    """Whether directions other than those of the columns can be learned: not for L1 distances."""
    rotates = isinstance(candidate.kernel, Gaussian | Matern)
    return rotates and has_gradients(candidate, rows) and 1 < rows.shape[1] <= _MAX_ROTATED_COLUMNS


@dataclass(frozen=True)
class Recipe:
    """How a metric is learned: for which candidate, by which power, and whether it may rotate."""

    candidate: Candidate
    full: bool
    power: float


@dataclass(frozen=True)
class _MetricSearch:
    """Metrics from the first rows that are not `unseen`, judged by those that are."""

    rows: Rows
    unseen: np.ndarray

    @classmethod
    def of(cls, rows: Rows, n: int) -> "_MetricSearch":
        """A third of the first n rows are unseen."""
        return cls(rows, np.arange(n) % _UNSEEN == 0)

    def judged(self, candidate: Candidate) -> Judged:
        """The alpha with which the other rows predict the unseen ones best."""
        n = len(self.unseen)
        K = candidate.gram(self.rows.prepared(candidate.preparation, n))
        near = candidate.alpha or _LARGEST_ALPHA
        return judge_unseen(K, self.rows.targets(slice(n)), self.unseen, near)

    def best_of(self, recipe: Recipe) -> tuple[float, Recipe, int] | None:
        """The best score of the steps of a recipe, which end when the score does not fall."""
        best: tuple[float, Recipe, int] | None = None
        for n_steps, step in enumerate(islice(self.steps(recipe), _MAX_STEPS), start=1):
            score = self.judged(step).score
            if best is not None and score >= best[0]:
                break
            best = score, recipe, n_steps
        return best

    def steps(self, recipe: Recipe) -> Iterator[Candidate]:
        """Versions of a candidate whose metric was learned once, twice, and so on."""
        preparation, n = recipe.candidate.preparation, len(self.unseen)
        targets = self.rows.targets(slice(n)).rows(~self.unseen)
        d = self.rows.prepared(preparation, n).shape[1]
        metric: np.ndarray | None = np.eye(d) if recipe.full else np.ones(d)
        step = recipe.candidate
        while metric is not None:
            prepared = self.rows.prepared(step.preparation, n)[~self.unseen]
            products = _products(step, prepared, targets, recipe.full)
            # by the chain rule, gradients by the columns as they were before the metric
            products = metric @ products @ metric if recipe.full else products * metric**2
            metric = _power(products, recipe.power)
            if metric is not None:
                weighted = preparation.weighted(metric, Lesson(len(targets)))
                step = replace(recipe.candidate, preparation=weighted)
                yield step

    def rated(self, candidate: Candidate) -> Candidate:
        """The candidate, with the left-out loss of the rows of its metric over that of others."""
        n = len(self.unseen)
        targets = self.rows.targets(slice(n))
        K = candidate.gram(self.rows.prepared(candidate.preparation, n))
        left_out = judge(K, targets, candidate.alpha).predicted
        losses = np.mean((left_out - targets.Y) ** 2, axis=1)
        ratio = losses[~self.unseen].mean() / max(losses[self.unseen].mean(), 1e-300)
        lesson = Lesson(int(np.sum(~self.unseen)), float(np.clip(ratio, _LEAST_RATIO, 1.0)))
        return replace(candidate, preparation=replace(candidate.preparation, learned=lesson))


def _products(
    candidate: Candidate, prepared: np.ndarray, targets: Targets, full: bool
) -> np.ndarray:
    alpha = min(candidate.alpha or _LARGEST_ALPHA, _LARGEST_ALPHA)
    Y = targets.Y[:, :_MAX_COLUMNS_OF_TARGETS]
    coef = cholesky.solve(factor(candidate.gram(prepared), alpha), Y - Y.mean(axis=0))
    return gradient_products(candidate.kernel, prepared, coef, full)


def _power(products: np.ndarray, power: float) -> np.ndarray | None:
    """Products to a power, so that all columns together keep their weight; None if all are 0."""
    if products.ndim == 1:
        largest = float(products.max(initial=0.0))
        if not largest > 0:
            return None
        root = (products / largest) ** power
        return np.asarray(root / np.sqrt(np.mean(root**2)))
    values, vectors = np.linalg.eigh(products)
    if not values[-1] > 0:
        return None
    root = (vectors * (np.maximum(values, 0) / values[-1]) ** power) @ vectors.T
    return np.asarray(root * np.sqrt(len(root) / np.sum(root**2)))
