"""A metric learned from the gradients of kernel models (recursive feature machines).

Directions in which predictions do not change should not add to distances. Let G be the mean of
grad f grad f^T over rows. The metric multiplies rows by G^power, or by a power of its diagonal,
which are weights of columns. Each step takes the gradients of a model for the rows of the previous
step (Radhakrishnan et al., Science 383, 2024).
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

_MAX_COLUMNS_OF_TARGETS = 16  # targets whose gradients are computed
_MAX_LAPLACIAN_COLUMNS = 300
_MAX_ROTATED_COLUMNS = 100  # a thousand rows are too few to learn more directions
_LARGEST_ALPHA = 0.01  # a larger penalty would flatten the gradients
_POWERS = (0.25, 0.5)
_FEW_ROWS = 700
_MAX_STEPS = 6
_UNSEEN = 3  # one row in three judges the metric instead of teaching it
_FRESH_ROWS = 300  # with so many rows that were not used before, they judge the metric
_SMALL_GAIN = 0.99  # a metric that lowers the score less on few rows will not do so clearly
_CLEAR_GAIN = 0.96  # a metric must lower the score to this share,
_DEVIATIONS = 2.0  # and squared errors by this many standard errors
_LEAST_RATIO = 0.05  # least ratio of the left-out losses of taught rows and unseen rows
_HOPEFUL = 1.3  # a kernel whose score is this much above the best does not win with a metric


def with_metric(rows: Rows, rounds: list[list[Trial]]) -> Candidate | None:
    """Return the best candidate of the last round with a learned metric, if it is clearly better.

    A few rows decide how to learn: from which candidate, weights or directions, the power and the
    number of steps. The leave-one-out error of a row that the metric was learned from would be too
    low, so other rows judge the steps. Then the metric is learned from all rows of the round and
    compared with the best candidate without it, on rows that were not used before if there are any.
    """
    n, best = rounds[-1][0].n_rows, rounds[-1][0].candidate
    few = _MetricSearch.of(rows, min(n, _FEW_ROWS))
    course = _raced(few.courses(_starts(rows, rounds, n)), few.judged(best).score)
    if course is None:
        return None
    all_rows = _MetricSearch.of(rows, n)
    steps = list(islice(all_rows.steps(course.recipe), course.n_steps))
    if not steps:
        return None
    chosen = replace(steps[-1], alpha=all_rows.judged(steps[-1], course.alpha).alpha)
    return all_rows.rated(chosen) if _is_clear(rows, n, best, chosen) else None


def _raced(courses: list["_Course"], plain: float) -> "_Course | None":
    """Take steps on all courses that may still win, and return the one with the least score.

    The result is None if all scores are about `plain`, the score without a metric, or above it.
    """
    going = courses
    while going:
        on_threads(_Course.advance, going)
        least = min(course.score for course in courses)
        going = [c for c in going if c.goes_on and c.outlook < min(least, _CLEAR_GAIN * plain)]
    best = min(courses, key=lambda course: course.score, default=None)
    return best if best is not None and best.score < _SMALL_GAIN * plain else None


def _starts(rows: Rows, rounds: list[list[Trial]], n: int) -> list[Candidate]:
    """Return the best candidates of several kinds from which a metric may be learned."""
    hopeful = [
        trial.candidate
        for trials in reversed(rounds)
        for trial in trials
        if trial.score <= _HOPEFUL * trials[0].score
    ]
    hopeful = [c for c in hopeful if has_gradients(c, rows.prepared(c.preparation, n))]
    rotated = [c for c in hopeful if can_rotate(c, rows.prepared(c.preparation, n))]
    # A rough kernel may predict better without a metric, but its gradients are noisy.
    smooth = [c for c in rotated if not (isinstance(c.kernel, Matern) and c.kernel.nu <= 0.5)]
    leveled = [c for c in rotated if c.preparation.levels]
    # In rows of equal length, the columns that do not matter shorten the others.
    unscaled = [c for c in smooth if not c.preparation.unit_norm]
    starts = hopeful[:1] + rotated[:1] + smooth[:1] + unscaled[:1] + leveled[:1]
    return list({candidate.key: candidate for candidate in starts}.values())


def _is_clear(rows: Rows, n: int, plain: Candidate, chosen: Candidate) -> bool:
    """Whether a metric chosen on the first n rows clearly beats the candidate without it."""
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
    if isinstance(candidate.kernel, Laplacian):  # its gradients need a matrix for each column
        return bool(rows.shape[1] <= _MAX_LAPLACIAN_COLUMNS)
    return isinstance(candidate.kernel, Gaussian | Matern)


def can_rotate(candidate: Candidate, rows: Any) -> bool:
    """Whether directions can be learned, and not only weights of columns; not for L1 distances."""
    rotates = isinstance(candidate.kernel, Gaussian | Matern)
    return rotates and has_gradients(candidate, rows) and 1 < rows.shape[1] <= _MAX_ROTATED_COLUMNS


@dataclass(frozen=True)
class Recipe:
    """How to learn a metric: the candidate, the power, and whether it may rotate."""

    candidate: Candidate
    full: bool
    power: float


@dataclass(frozen=True)
class _MetricSearch:
    """Metrics that are learned from some rows and judged by the `unseen` rows."""

    rows: Rows
    unseen: np.ndarray

    @classmethod
    def of(cls, rows: Rows, n: int) -> "_MetricSearch":
        """Make a third of the first n rows unseen."""
        return cls(rows, np.arange(n) % _UNSEEN == 0)

    def judged(self, candidate: Candidate, near: float | None = None) -> Judged:
        """Find the alpha with which the other rows predict the unseen rows best."""
        prepared = self.rows.prepared(candidate.preparation, len(self.unseen))
        targets = self.rows.targets(slice(len(self.unseen)))
        near = near or candidate.alpha or _LARGEST_ALPHA
        return judge_unseen(candidate, prepared, targets, self.unseen, near)

    def courses(self, starts: list[Candidate]) -> list["_Course"]:
        """Return the courses from the given candidates, before their first steps."""
        plain = on_threads(self.judged, starts)
        n = len(self.unseen)
        return [
            _Course(self, Recipe(candidate, full, power), judged.score, judged.alpha)
            for candidate, judged in zip(starts, plain, strict=True)
            for full in (False, True)
            for power in _POWERS
            if not full or can_rotate(candidate, self.rows.prepared(candidate.preparation, n))
        ]

    def steps(self, recipe: Recipe) -> Iterator[Candidate]:
        """Yield the candidate with a metric that was learned in one step, two steps, and so on."""
        preparation, n = recipe.candidate.preparation, len(self.unseen)
        targets = self.rows.targets(slice(n)).rows(~self.unseen)
        d = self.rows.prepared(preparation, n).shape[1]
        metric: np.ndarray | None = np.eye(d) if recipe.full else np.ones(d)
        step = recipe.candidate
        while metric is not None:
            prepared = self.rows.prepared(step.preparation, n)[~self.unseen]
            products = gradients_of(step, prepared, targets, recipe.full)
            # The chain rule gives gradients by the columns before the metric.
            products = metric @ products @ metric if recipe.full else products * metric**2
            metric = power_of(products, recipe.power)
            if metric is not None:
                weighted = preparation.weighted(metric, Lesson(len(targets)))
                step = replace(recipe.candidate, preparation=weighted)
                yield step

    def rated(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the ratio of left-out losses of taught and unseen rows."""
        n = len(self.unseen)
        targets = self.rows.targets(slice(n))
        K = candidate.gram(self.rows.prepared(candidate.preparation, n))
        left_out = judge(K, targets, candidate.alpha, bar=0.0).predicted
        losses = np.mean((left_out - targets.Y) ** 2, axis=1)
        ratio = losses[~self.unseen].mean() / max(losses[self.unseen].mean(), 1e-300)
        lesson = Lesson(int(np.sum(~self.unseen)), float(np.clip(ratio, _LEAST_RATIO, 1.0)))
        return replace(candidate, preparation=replace(candidate.preparation, learned=lesson))


class _Course:
    """The steps of a recipe, and the best one so far.

    Attributes
    ----------
    score, alpha : float
        The score and the penalty of the best step; without a step, those of the plain candidate.
    n_steps : int
        The number of steps to the best one.
    goes_on : bool
        Whether the last step was an improvement.
    outlook : float
        The score after all steps if each of them gained as much as the last one.
    """

    def __init__(self, search: _MetricSearch, recipe: Recipe, score: float, alpha: float) -> None:
        self.recipe, self.score, self.alpha = recipe, score, alpha
        self.n_steps, self.goes_on, self.outlook = 0, True, 0.0
        self._search, self._steps = search, search.steps(recipe)

    def advance(self) -> None:
        """Take the next step."""
        step = next(self._steps, None)
        judged = None if step is None else self._search.judged(step, self.alpha)
        self.goes_on = judged is not None and judged.score < self.score
        if judged is not None and self.goes_on:
            ratio = judged.score / self.score
            self.score, self.alpha, self.n_steps = judged.score, judged.alpha, self.n_steps + 1
            self.goes_on = self.n_steps < _MAX_STEPS
            self.outlook = self.score * ratio ** (_MAX_STEPS - self.n_steps)


def gradients_of(
    candidate: Candidate, prepared: np.ndarray, targets: Targets, full: bool
) -> np.ndarray:
    alpha = min(candidate.alpha or _LARGEST_ALPHA, _LARGEST_ALPHA)
    Y = targets.Y[:, :_MAX_COLUMNS_OF_TARGETS]
    coef = cholesky.solve(factor(candidate.gram(prepared), alpha), Y - Y.mean(axis=0))
    return gradient_products(candidate.kernel, prepared, coef, full)


def power_of(products: np.ndarray, power: float) -> np.ndarray | None:
    """Return a power of the products, scaled to keep the total weight; None if all are 0."""
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
