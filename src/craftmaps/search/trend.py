"""A linear part of a kernel, which continues trends beyond the training rows.

Far from all training rows, most kernels predict the mean. Leave-one-out errors do not show this,
because nearly every row lies between others. So the rows at both ends of a linear trend are
predicted from the rows in the middle, with a linear part and without.
"""

from dataclasses import replace

import numpy as np

from craftmaps.kernels import Polynomial, Sum
from craftmaps.loops import cholesky
from craftmaps.search.candidates import Candidate
from craftmaps.search.exact import factor, judge_unseen
from craftmaps.search.preparation import Scaling
from craftmaps.search.selection import deviations
from craftmaps.search.targets import Targets
from craftmaps.search.trials import Rows, Trial

_MOST_ROWS = 700
_SHARE_OF_END = 0.25  # share of the rows at either end of the trend
_CLEAR_GAIN = 0.5  # a linear part must lower the squared errors at the ends to this share,
_DEVIATIONS = 2.0  # and by this many standard errors
_AS_GOOD = 1.0  # standard errors by which it may be worse elsewhere


def with_trend(rows: Rows, trials: list[Trial], plain: list[Trial]) -> list[Trial]:
    """Put the best candidate with a linear part first, if the trend clearly continues.

    It must not be clearly worse at predicting each row from all other rows, either. `plain` is the
    trial of a linear model. Only numbers have trends.
    """
    best = trials[0]
    preparation, n = best.candidate.preparation, min(best.n_rows, _MOST_ROWS)
    targets = rows.targets(slice(n))
    if not plain or targets.n_classes or preparation.unit_norm or best.candidate.is_linear:
        return trials
    ends = _ends(plain[0].candidate, rows, n)
    if ends.all():  # a linear model predicts the same for most rows
        return trials
    before = _losses(best.candidate, rows, targets, ends)
    n_columns = rows.prepared(preparation, n).shape[1]
    tried = [with_linear_part(one, n_columns) for one in _in_a_line(best.candidate)]
    losses = [_losses(one, rows, targets, ends) for one in tried]
    first = min(range(len(tried)), key=lambda i: float(losses[i].mean()))
    after = losses[first]
    if after.mean() > _CLEAR_GAIN * before.mean() or deviations(before - after) < _DEVIATIONS:
        return trials
    (trial,) = rows.judged([tried[first]], best.n_rows)
    is_as_good = deviations((trial.losses - best.losses)[:, 0]) <= _AS_GOOD
    return [trial, *trials] if is_as_good else [*trials, trial]


def _in_a_line(candidate: Candidate) -> list[Candidate]:
    """Return the candidate, and the same with standard columns, whose lines stay straight."""
    preparation = candidate.preparation
    if not isinstance(preparation, Scaling) or preparation.columns != "quantile":
        return [candidate]
    return [candidate, replace(candidate, preparation=replace(preparation, columns="standard"))]


def with_linear_part(candidate: Candidate, n_columns: int) -> Candidate:
    """Return the candidate with a linear kernel of about the same size added to its kernel."""
    kernel = candidate.kernel
    terms = kernel.kernels if isinstance(kernel, Sum) else [kernel]
    line = Polynomial(1, gamma=float(f"{1 / n_columns:.3g}"), coef0=0.0)
    return Candidate(candidate.preparation, Sum([*terms, line]), candidate.alpha)


def _ends(plain: Candidate, rows: Rows, n: int) -> np.ndarray:
    """Return which rows have the least and the largest predictions of a linear model."""
    K, targets = plain.gram(rows.prepared(plain.preparation, n)), rows.targets(slice(n))
    first = targets.Y[:, :1] - targets.Y[:, :1].mean()
    predicted = (K @ cholesky.solve(factor(K, plain.alpha or 1.0), first))[:, 0]
    low, high = np.quantile(predicted, [_SHARE_OF_END, 1 - _SHARE_OF_END])
    return np.asarray((predicted <= low) | (predicted >= high))


def _losses(candidate: Candidate, rows: Rows, targets: Targets, ends: np.ndarray) -> np.ndarray:
    """Return the squared error of each row at the ends, predicted from all other rows."""
    prepared = rows.prepared(candidate.preparation, len(targets))
    judged = judge_unseen(candidate, prepared, targets, ends, candidate.alpha or 1.0)
    return np.asarray(np.mean((judged.predicted - targets.Y[ends]) ** 2, axis=1))
