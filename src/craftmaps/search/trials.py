"""Trials of candidates, judged by predictions for left-out rows."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from craftmaps.search.candidates import Candidate
from craftmaps.search.exact import judge
from craftmaps.search.preparation import Preparation
from craftmaps.search.targets import Targets
from craftmaps.threads import on_threads

_N_FIRST = 2  # trials whose scores are known before the others begin; as many on any machine


@dataclass(frozen=True)
class Trial:
    """The trial of one candidate, judged by predictions for left-out rows.

    `error` is the share of wrong classes, or the RMSE in standard deviations of the target. On
    other rows, it is in `interval` with a probability of about 90%. `n_rows` is the number of rows
    that the candidate learned from. `losses` are the losses of each judged row.
    """

    candidate: Candidate
    score: float
    error: float
    alpha: float
    n_rows: int
    interval: tuple[float, float]
    losses: np.ndarray = field(repr=False, compare=False)

    @classmethod
    def of(
        cls, candidate: Candidate, targets: Targets, predicted: np.ndarray, alpha: float, n: int
    ) -> "Trial":
        """Return the trial of a candidate that learned from n rows, given its predictions."""
        score, error = targets.score(predicted), targets.error(predicted)
        losses = targets.losses(predicted)
        if np.isfinite(alpha):
            candidate = replace(candidate, alpha=alpha)
        return cls(candidate, score, error, alpha, n, targets.interval(predicted), losses)


class Rows:
    """Rows in random order with their targets, and a cache of prepared rows."""

    def __init__(
        self, X: Any, y: np.ndarray, classification: bool, rng: np.random.Generator
    ) -> None:
        self._order = rng.permutation(X.shape[0])
        self._X, self._targets = X, Targets.of(y, classification)
        self._prepared: dict[tuple[Preparation, int], Any] = {}

    def __len__(self) -> int:
        return len(self._order)

    def targets(self, rows: slice) -> Targets:
        """Return the targets of some rows."""
        return self._targets.rows(self._order[rows])

    def raw(self, rows: slice) -> Any:
        """Return some rows without preparation."""
        return self._X[self._order[rows]]

    def prepared(self, preparation: Preparation, n: int) -> Any:
        """Return the first n rows, prepared."""
        key = preparation, n
        if key not in self._prepared:
            base = preparation.base, n
            if base not in self._prepared:
                self._prepared[base] = preparation.base.applied(self.raw(slice(n)))
            self._prepared[key] = preparation.finished(self._prepared[base])
        return self._prepared[key]

    def judged(self, tried: list[Candidate], n: int, bar: float = np.inf) -> list[Trial]:
        """Try all candidates on the first n rows, and sort them by score.

        The first ones, which were the best on fewer rows, lower `bar` to their least score. No
        further alphas are tried for a candidate whose score is far above `bar`.
        """
        for candidate in tried:  # fill the cache before threads use it
            self.prepared(candidate.preparation, n)
        targets = self.targets(slice(n))

        def trial(candidate: Candidate) -> Trial:
            K = candidate.gram(self.prepared(candidate.preparation, n))
            best = judge(K, targets, candidate.alpha, bar)
            return Trial.of(candidate, targets, best.predicted, best.alpha, n)

        trials = on_threads(trial, tried[:_N_FIRST])
        bar = min([bar, *(one.score for one in trials)])
        trials += on_threads(trial, tried[_N_FIRST:])
        return sorted(trials, key=lambda trial: trial.score)
