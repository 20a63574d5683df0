"""The round of a search within leaves: the preparation, and weights of columns.

Rows are closer to each other in a leaf than in a sample of all rows, so other preparations and
narrower kernels may be better there. Gradients of kernel models within leaves tell which columns
matter in a neighborhood. The mean over leaves of their squares gives one weight per column, as in
`craftmaps.search.metric`.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from craftmaps.kernels import Sum
from craftmaps.search.candidates import Candidate, neighbors
from craftmaps.search.leaf_machines import Lessons
from craftmaps.search.leaf_sample import LeafSample
from craftmaps.search.metric import gradients_of, has_gradients, power_of
from craftmaps.search.preparation import Lesson
from craftmaps.search.report import Search
from craftmaps.search.row_tree import RowTree
from craftmaps.search.targets import Targets
from craftmaps.search.trials import Trial

_ROWS = 4000  # rows of all leaves together that judge candidates, or teach weights
_MOST_OF_A_LEAF = 2000
_LEAVES = 4  # leaves that judge, and as many others that teach weights of columns
_POWERS = (0.25, 0.5)
_MAX_STEPS = 4
_CLEAR_GAIN = 0.98  # weights must lower the score to this share


def leaf_round(
    search: Search,
    X: np.ndarray,
    everywhere: np.ndarray,
    lessons: Lessons,
    leaf_rows: int,
    rng: np.random.Generator,
) -> list[Trial]:
    """Compare the best candidate with each preparation, with and without weights of columns.

    Returns the trials, the best one first, or none if there are so few rows that the search has
    judged better.
    """
    spread = X[everywhere].std(axis=0, dtype=np.float64)
    _, leaves = RowTree.of(X / np.where(spread > 0, spread, 1), leaf_rows)
    targets = Targets(lessons.Y.astype(np.float64), lessons.n_classes)
    if len(leaves) == 1 and len(X) < 2 * _MOST_OF_A_LEAF:
        return []
    halves = _halves(leaves, rng)
    n_rows = min(_ROWS // len(halves[0]), _MOST_OF_A_LEAF)
    judging, teaching = (
        LeafSample.of(X, targets, half, n_rows, rng, everywhere) for half in halves
    )
    if not judging.parts:
        return []
    few = len(leaves) < 2 * _LEAVES
    if few and search.sized:
        found = [judging.trial(candidate) for candidate in _winners(search)]
        return sorted(found, key=lambda trial: trial.score)
    found = [_best_width(judging, candidate) for candidate in _finalists(search)]
    found.sort(key=lambda trial: trial.score)
    weighted = _with_weights(found[0], judging, teaching) if teaching.parts else None
    return found if weighted is None else [weighted, *found]


def _winners(search: Search) -> list[Candidate]:
    """Return the best candidate as an exact kernel, and the best one as features."""
    found: dict[Any, Candidate] = {}
    for trials in (search.exact[-1], search.sized[-1]):
        kernels = [trial.candidate for trial in trials if not trial.candidate.is_linear]
        for candidate in kernels[:1]:  # there may be linear models only
            found.setdefault(candidate.key, candidate)
    return list(found.values())


def _finalists(search: Search) -> list[Candidate]:
    """Return the best candidate of each preparation as an exact kernel."""
    found: dict[str, Candidate] = {}
    for trials in reversed(search.exact):
        for candidate in (trial.candidate for trial in trials if not trial.candidate.is_linear):
            found.setdefault(str(candidate.preparation), candidate)
    return list(found.values())


def _halves(
    leaves: list[np.ndarray], rng: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return rows of some leaves to judge candidates, and other rows to learn weights from.

    Other rows come from other leaves. If there are few leaves, both kinds come from all of them,
    because few leaves may be unlike the rest.
    """
    order = rng.permutation(len(leaves))[: 2 * _LEAVES]
    if len(order) == 2 * _LEAVES:
        some = [leaves[leaf] for leaf in order]
        return some[:_LEAVES], some[_LEAVES:]
    mixed = [rng.permutation(leaves[leaf]) for leaf in order]
    middle = [len(rows) // 2 for rows in mixed]
    return (
        [np.sort(rows[:half]) for rows, half in zip(mixed, middle, strict=True)],
        [np.sort(rows[half:]) for rows, half in zip(mixed, middle, strict=True)],
    )


def _best_width(judging: LeafSample, candidate: Candidate) -> Trial:
    """Judge a candidate and a narrower version of it, which suits the distances in leaves."""
    tried = [judging.trial(one) for one in (candidate, *neighbors(candidate)[1:])]
    return min(tried, key=lambda trial: trial.score)


def _with_weights(best: Trial, judging: LeafSample, teaching: LeafSample) -> Trial | None:
    """Return the trial of the best candidate with weights of columns, if they clearly help."""
    start = best.candidate
    if isinstance(start.kernel, Sum):
        start = replace(start, kernel=start.kernel.kernels[0])
    if not has_gradients(start, teaching.X[:1]):
        return None
    found: list[Trial] = []
    for power in _POWERS:
        step, weights, last = start, None, np.inf
        for _ in range(_MAX_STEPS):
            weights = _next_weights(step, weights, teaching, power)
            if weights is None:
                break
            learned = Lesson(sum(map(len, teaching.parts)))
            step = replace(start, preparation=start.preparation.weighted(weights, learned))
            trial = judging.trial(step)
            found.append(trial)
            if trial.score >= last:
                break
            last, step = trial.score, trial.candidate
    if not found:
        return None
    winner = min(found, key=lambda trial: trial.score)
    return winner if winner.score < _CLEAR_GAIN * best.score else None


def _next_weights(
    candidate: Candidate, weights: np.ndarray | None, teaching: LeafSample, power: float
) -> np.ndarray | None:
    """Return the weights of columns that the gradients of the candidate in all leaves suggest."""
    prepared, targets = teaching.prepared(candidate.preparation), teaching.part_targets()
    total = sum(
        gradients_of(candidate, rows, taught, full=False)
        for rows, taught in zip(prepared, targets, strict=True)
    )
    products = np.asarray(total)
    return power_of(products if weights is None else products * weights**2, power)
