"""The rounds of the search: many candidates on few rows, then few candidates on many rows."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from craftmaps.kernels import Polynomial, Sum
from craftmaps.search.candidates import Candidate, candidates, neighbors
from craftmaps.search.clock import Clock
from craftmaps.search.exact import judge
from craftmaps.search.metric import has_gradients, relevance
from craftmaps.search.preparation import Preparation, preparations
from craftmaps.search.targets import Targets
from craftmaps.threads import on_threads

ROUND_ROWS = (400, 800, 1300)
_PREPARATION_ROWS = 5000  # that show which values of columns are rare
_N_KEPT = (6, 2)  # candidates that survive the first and the second round
_N_NEAR = (3, 1)  # how many of them are tried with other widths, too
_SUM_SIZES = (2, 3, 4)  # families whose kernels are added up
_POWERS = (0.25, 0.5)
_METRIC_STEPS = 4
_METRIC_ROWS = 700
_UNSEEN = 3  # one row in three judges the weights, and is not used to find them
_NEARLY_EQUAL = 1.01  # ratio of scores that does not count
_CLEAR_GAIN = 0.95  # share of the score that weights must reach to be taken


@dataclass(frozen=True)
class Trial:
    """One candidate, judged by predictions for rows that were left out.

    `error` is the share of wrong classes, or RMSE per deviation, and lies in `interval` with a
    probability of about 90%. `n_rows` is the number of rows that it learned from.
    """

    candidate: Candidate
    score: float
    error: float
    alpha: float
    n_rows: int
    interval: tuple[float, float]

    @classmethod
    def of(
        cls, candidate: Candidate, targets: Targets, predicted: np.ndarray, alpha: float, n: int
    ) -> "Trial":
        """A candidate that learned from n rows, and predicted this for rows with `targets`."""
        score, error = targets.score(predicted), targets.error(predicted)
        if np.isfinite(alpha):
            candidate = replace(candidate, alpha=alpha)
        return cls(candidate, score, error, alpha, n, targets.interval(predicted))


class Rows:
    """Rows in random order, with their targets, and what was prepared of the first ones."""

    def __init__(
        self, X: Any, y: np.ndarray, classification: bool, rng: np.random.Generator
    ) -> None:
        self._order = rng.permutation(X.shape[0])
        self._X, self._targets = X, Targets.of(y, classification)
        self._prepared: dict[tuple[Preparation, int], Any] = {}

    def __len__(self) -> int:
        return len(self._order)

    def targets(self, rows: slice) -> Targets:
        """The targets of some rows."""
        return self._targets.rows(self._order[rows])

    def raw(self, rows: slice) -> Any:
        """Some rows as they came."""
        return self._X[self._order[rows]]

    def prepared(self, preparation: Preparation, n: int) -> Any:
        """The first n rows, prepared."""
        key = preparation, n
        if key not in self._prepared:
            self._prepared[key] = preparation.applied(self.raw(slice(n)))
        return self._prepared[key]

    def judged(
        self, tried: list[Candidate], n: int, judging: np.ndarray | None = None
    ) -> list[Trial]:
        """All candidates on the first n rows, the best one first.

        `judging` are the rows, of these, whose predictions count; None stands for all of them.
        """
        for candidate in tried:  # before threads ask for the same rows
            self.prepared(candidate.preparation, n)
        targets = self.targets(slice(n))
        some = targets if judging is None else targets.rows(judging)

        def trial(candidate: Candidate) -> Trial:
            K = candidate.gram(self.prepared(candidate.preparation, n))
            best = judge(K, targets, judging, candidate.alpha)
            left_out = best.predicted if judging is None else best.predicted[judging]
            return Trial.of(candidate, some, left_out, best.alpha, n)

        return sorted(on_threads(trial, tried), key=lambda trial: trial.score)


def halving(rows: Rows, clock: Clock, shape: tuple[int, int] | None = None) -> list[list[Trial]]:
    """Rounds of trials, each on more rows than the one before, with the best trial first.

    The last round also has sums of the best kernels and learned weights of columns. `shape` is the
    height and width of rows that are images.
    """
    n = min(clock.affordable_rows(ROUND_ROWS[0], n_trials=50), len(rows))
    tried = [
        candidate
        for preparation in preparations(rows.raw(slice(_PREPARATION_ROWS)), shape)
        for candidate in candidates(preparation, rows.prepared(preparation, n))
    ]
    rounds = [rows.judged(tried, n)]
    for size, n_kept, n_near in zip(ROUND_ROWS[1:], _N_KEPT, _N_NEAR, strict=True):
        following = min(clock.affordable_rows(size, n_trials=2 * n_kept + 2), len(rows))
        if following < n:
            break
        n, best = following, rounds[-1][:n_kept]
        tried = [trial.candidate for trial in best]
        for trial in best[:n_near]:
            tried += neighbors(trial.candidate)
        rounds.append(_new_round(rows, rounds[-1], tried, n))
    winner = rounds[-1][0]
    weighted = None
    if clock.has_time:
        weighted = with_weights(rows, winner, min(n, _METRIC_ROWS))
    leading = winner.candidate if weighted is None else weighted
    tried = [winner.candidate, leading, *sums(rounds, leading.preparation)]
    last = _new_round(rows, rounds[-1], tried, n)
    rounds.append(steadiest_first(last) if 2 * n < len(rows) else last)
    return rounds


def _new_round(rows: Rows, before: list[Trial], tried: list[Candidate], n: int) -> list[Trial]:
    """The candidates on n rows, the best one first; trials on as many rows are not repeated."""
    known = {t.candidate.key: t for t in before if t.n_rows == n}
    distinct = {candidate.key: candidate for candidate in tried}
    trials = rows.judged([c for key, c in distinct.items() if key not in known], n)
    trials += [known[key] for key in distinct if key in known]
    return sorted(trials, key=lambda trial: trial.score)


def steadiest_first(trials: list[Trial]) -> list[Trial]:
    """Sorted trials; among nearly equal ones the trial with the largest alpha comes first.

    A wide kernel with a tiny alpha is like a narrower one with a larger alpha, but rounding shows
    in it, and with more rows the narrower one is better.
    """
    trials = sorted(trials, key=lambda trial: trial.score)
    near = [trial for trial in trials if trial.score <= _NEARLY_EQUAL * trials[0].score]
    first = max(near, key=lambda trial: trial.alpha)
    return [first, *(trial for trial in trials if trial is not first)]


def sums(rounds: list[list[Trial]], preparation: Preparation) -> list[Candidate]:
    """Sums of the kernels of the best families, for rows with a version of the best preparation."""
    best = rounds[-1][0].candidate
    by_family = {best.family: best.kernel}
    for trials in reversed(rounds):
        for candidate in (trial.candidate for trial in trials):
            addable = not isinstance(candidate.kernel, Polynomial | Sum)
            if addable and candidate.preparation == best.preparation:
                by_family.setdefault(candidate.family, candidate.kernel)
    kernels = list(by_family.values())
    return [
        Candidate(preparation, Sum(kernels[:size]), best.alpha)
        for size in _SUM_SIZES
        if size <= len(kernels)
    ]


def with_weights(rows: Rows, best: Trial, n: int) -> Candidate | None:
    """The best candidate with learned weights of columns, if these are clearly better.

    Leaving out a row that had a part in the weights would be no test of them, so that all versions,
    the one without weights included, are judged by rows that had none.
    """
    if not has_gradients(best.candidate, rows.prepared(best.candidate.preparation, n)):
        return None
    unseen = np.arange(n) % _UNSEEN == 0
    targets = rows.targets(slice(n)).rows(~unseen)
    (plain,) = rows.judged([best.candidate], n, unseen)
    versions = on_threads(lambda power: _weighted(rows, plain, power, n, ~unseen, targets), _POWERS)
    chosen = rows.judged([*chain.from_iterable(versions)], n, unseen)[:1]
    clear = chosen and chosen[0].score < _CLEAR_GAIN * plain.score
    return chosen[0].candidate if clear else None


def _weighted(
    rows: Rows, plain: Trial, power: float, n: int, seen: np.ndarray, targets: Targets
) -> list[Candidate]:
    """Versions of a candidate whose weights were learned once, twice, and so on."""
    candidate, preparation = plain.candidate, plain.candidate.preparation
    weights, versions = np.ones(rows.prepared(preparation, n).shape[1]), []
    for _ in range(_METRIC_STEPS):
        prepared = rows.prepared(candidate.preparation, n)[seen]
        # by the chain rule, derivatives by the columns as they were before they were weighted
        squares = relevance(candidate, prepared, targets, plain.alpha) * weights**2
        weights = squares**power
        if not weights.any():
            break
        weights = weights / np.sqrt(np.mean(weights**2))
        candidate = Candidate(preparation.weighted(weights), plain.candidate.kernel, plain.alpha)
        versions.append(candidate)
    return versions
