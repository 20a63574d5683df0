"""The rounds of the search: many candidates on few rows, then few candidates on many rows."""

import numpy as np

from craftmaps.kernels import Polynomial, Sum
from craftmaps.search.candidates import Candidate, candidates, linear, neighbors
from craftmaps.search.clock import Clock
from craftmaps.search.metric import with_metric
from craftmaps.search.preparation import preparations
from craftmaps.search.selection import deviations, is_as_good
from craftmaps.search.trend import with_trend
from craftmaps.search.trials import Rows, Trial

ROUND_ROWS = (200, 400, 800, 1300)
_FEW_ROUND_ROWS = (200, 400, 700, 1100)  # for small tables, where a search of seconds is long
_FEW_ROWS = 2500
_PREPARATION_ROWS = 5000  # rows that show which values of columns are rare
_N_KEPT = (24, 6, 2)  # the most candidates that survive a round
_N_NEAR = (0, 3, 1)  # survivors that are also tried with other widths
_CERTAIN = 2.0  # standard errors by which the losses of a certain loser are larger
_HALF_A_ROW = 0.5  # the least sum of losses, because all of them may be 0
_SUM_SIZES = (2, 3, 4)  # numbers of kernels in a sum
_CLEARLY_LINEAR = 0.97  # below this ratio of scores, a linear model is preferred to kernels
_NEARLY_EQUAL = 1.01  # scores up to this ratio count as equal


def halving(rows: Rows, clock: Clock, shape: tuple[int, int] | None = None) -> list[list[Trial]]:
    """Run rounds of trials, each on more rows than the previous one, and sort each by score.

    The last round also has sums of the best kernels, a learned metric, and a linear model. `shape`
    is the height and width if rows are images.
    """
    sizes = _FEW_ROUND_ROWS if len(rows) <= _FEW_ROWS else ROUND_ROWS
    n = min(clock.affordable_rows(sizes[0], n_trials=50), len(rows))
    prepared = preparations(rows.raw(slice(_PREPARATION_ROWS)), shape)
    tried = [
        candidate
        for preparation in prepared
        for candidate in candidates(preparation, rows.prepared(preparation, n))
    ]
    rounds = [rows.judged(tried, n)]
    survivors = _possible(rounds[0])
    for size, n_kept, n_near in zip(sizes[1:], _N_KEPT, _N_NEAR, strict=True):
        best = survivors[:n_kept]
        n_trials = len(best) + 2 * n_near + 2
        following = min(clock.affordable_rows(size, n_trials), len(rows))
        if following < n:
            break
        n = following
        tried = [trial.candidate for trial in best]
        for trial in best[:n_near]:
            near = neighbors(trial.candidate)
            tried += [c for c in near if not any(c.is_nearly(other) for other in tried)]
        survivors = _new_round(rows, rounds[-1], tried, n)
        rounds.append(survivors)
    winner = rounds[-1][0].candidate
    weighted = with_metric(rows, rounds) if clock.has_time else None
    leading = winner if weighted is None else weighted
    optional = sums(rounds, leading) + ([] if weighted is None else neighbors(weighted))
    if clock.affordable_rows(n, n_trials=len(optional) + 1) < n:
        optional = []
    last = _new_round(rows, rounds[-1], [winner, leading, *optional], n)
    plain = [linear(preparation) for preparation in prepared if not preparation.unit_norm][:1]
    last = steadiest_first(last) if 2 * n < len(rows) else last
    linear_trials = rows.judged(plain, n, bar=last[0].score)
    if clock.has_time:
        last = with_trend(rows, last, linear_trials)
    rounds.append(_beside_linear(rounds, last, linear_trials, every_row=n == len(rows)))
    return rounds


def _possible(trials: list[Trial]) -> list[Trial]:
    """Return the trials whose losses are not clearly larger than those of the best one."""
    best = trials[0].losses
    scale = np.maximum(best.mean(axis=0), _HALF_A_ROW / len(best))  # both losses of classes count
    worse = [((trial.losses - best) / scale).sum(axis=1) for trial in trials]
    return [
        trial
        for trial, difference in zip(trials, worse, strict=True)
        if deviations(difference) <= _CERTAIN
    ]


def _beside_linear(
    rounds: list[list[Trial]], last: list[Trial], plain: list[Trial], every_row: bool
) -> list[Trial]:
    """Add the trial of a linear model to the last round.

    If every row was used, it comes first unless the choice among the kernels should be better on
    other rows. If more rows follow, kernels learn more from them than a linear model does, so it
    must be clearly better.
    """
    if not plain:
        return last
    if every_row:
        is_first = is_as_good(plain[0], [*rounds, last])
    else:
        is_first = plain[0].score < _CLEARLY_LINEAR * last[0].score
    return plain + last if is_first else last + plain


def _new_round(rows: Rows, before: list[Trial], tried: list[Candidate], n: int) -> list[Trial]:
    """Try the candidates on n rows and sort them; trials on as many rows are not repeated."""
    known = {t.candidate.key: t for t in before if t.n_rows == n}
    distinct = {candidate.key: candidate for candidate in tried}
    bar = min((trial.score for trial in known.values()), default=np.inf)
    trials = rows.judged([c for key, c in distinct.items() if key not in known], n, bar)
    trials += [known[key] for key in distinct if key in known]
    return sorted(trials, key=lambda trial: trial.score)


def steadiest_first(trials: list[Trial]) -> list[Trial]:
    """Sort trials; of nearly equal ones, the trial with the largest alpha comes first.

    A wide kernel with a tiny alpha is like a narrower kernel with a larger alpha. But rounding
    errors are larger for the wide kernel, and with more rows the narrower one is better.
    """
    trials = sorted(trials, key=lambda trial: trial.score)
    near = [trial for trial in trials if trial.score <= _NEARLY_EQUAL * trials[0].score]
    first = max(near, key=lambda trial: trial.alpha)
    return [first, *(trial for trial in trials if trial is not first)]


def sums(rounds: list[list[Trial]], leading: Candidate) -> list[Candidate]:
    """Return sums of the leading kernel and kernels of other families with the same preparation."""
    by_family = {leading.family: leading.kernel}
    for trials in reversed(rounds):
        for candidate in (trial.candidate for trial in trials):
            addable = not isinstance(candidate.kernel, Polynomial | Sum)
            if addable and candidate.preparation.is_like(leading.preparation):
                by_family.setdefault(candidate.family, candidate.kernel)
    kernels = list(by_family.values())
    return [
        Candidate(leading.preparation, Sum(kernels[:size]), leading.alpha)
        for size in _SUM_SIZES
        if size <= len(kernels)
    ]
