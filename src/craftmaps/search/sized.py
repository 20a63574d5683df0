"""Candidates with as many components as the budget allows, judged on held-out rows."""

import warnings
from typing import Any

import numpy as np

from craftmaps.kernels.ridge import best_ridge
from craftmaps.maps import Nystroem
from craftmaps.search.budget import operations_per_second
from craftmaps.search.candidates import Candidate, neighbors
from craftmaps.search.rounds import steadiest_first
from craftmaps.search.targets import Targets
from craftmaps.search.trials import Rows, Trial
from craftmaps.threads import on_threads

_MOST_TAUGHT_ROWS = 8000
_MOST_HELD_ROWS = 2500
_TRIAL_SIZES = (1024, 512, 256, 128)  # kernels that win with so many components also win with more
_N_AT_FULL_SIZE = 2  # trials with all components that the time allows; others have half of them
_N_TRIALS = 8  # about so many, for estimates of their time
_HOPEFUL = 1.3  # a family with a score this much above the best does not win with any size


def feature_map(candidate: Candidate, size: int, n_rows: int, seed: int) -> Any:
    """Return the unfitted map of a candidate, which is exact if all rows are landmarks."""
    landmarks = "uniform" if size >= n_rows else "rpcholesky"
    inner = Nystroem(candidate.kernel, min(size, n_rows), landmarks=landmarks, random_state=seed)
    return candidate.preparation.around(inner)


def sized_rounds(
    rows: Rows, before: list[list[Trial]], size: int, total: int, seed: int, largest: int
) -> list[list[Trial]]:
    """Compare the best candidates of each family at a size smaller than the `total` of rows.

    Rough kernels need many components, so a smoother kernel may be better with few. Wider and
    narrower versions of the best kernel are tried as well. The best two are compared again with
    twice as many components and rows. No trial has more than `largest` components.
    """
    trial_size = min(size, largest)
    rows_per_component = total / size

    def attempts(tried: list[Candidate], components: int) -> list[Trial]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # repeated landmarks are fine here
            return on_threads(
                lambda one: _attempt(rows, one, components, rows_per_component, seed), tried
            )

    half = max(trial_size // 2, min(trial_size, _TRIAL_SIZES[-1]))
    trials = attempts(_finalists(before), half)
    best = min(trials, key=lambda trial: trial.score)
    trials = steadiest_first(trials + attempts(neighbors(best.candidate), half))
    if half == trial_size:
        return [trials]
    finalists = [trial.candidate for trial in trials[:_N_AT_FULL_SIZE]]
    return [trials, steadiest_first(attempts(finalists, trial_size))]


def _finalists(rounds: list[list[Trial]]) -> list[Candidate]:
    """Return a kernel of each family with the best preparation and with one other preparation.

    If the best candidate has a learned metric, the other preparation is the best one without.
    """
    best = rounds[-1][0].candidate
    by_family = {best.family: best}
    other: Candidate | None = None
    if best.preparation.learned:
        other = next(t.candidate for t in rounds[-2] if not t.candidate.preparation.learned)
    for trials in reversed(rounds):
        hopeful = (trial for trial in trials if trial.score <= _HOPEFUL * trials[0].score)
        for candidate in (trial.candidate for trial in hopeful if not trial.candidate.is_linear):
            if candidate.preparation.is_like(best.preparation):
                same = Candidate(best.preparation, candidate.kernel, candidate.alpha)
                by_family.setdefault(candidate.family, same)
            elif other is None:
                other = candidate
    return [*by_family.values(), *([] if other is None else [other])]


def affordable_size(size: int, total: int, n_columns: int, seconds: float) -> int | None:
    """Return the most components of a trial if all trials have so many seconds; None for too few.

    A trial has at most `size` components, and as many rows per component as in the final fit.
    """
    for largest in _TRIAL_SIZES:
        trial_size = min(size, largest)
        n_rows = min(_MOST_TAUGHT_ROWS, total / size * trial_size) + _MOST_HELD_ROWS
        operations = n_rows * trial_size * (n_columns + 2 * trial_size) + 4 * trial_size**3
        if np.isinf(seconds) or _N_TRIALS * operations <= seconds * operations_per_second():
            return largest
    return None


def _attempt(
    rows: Rows, candidate: Candidate, size: int, rows_per_component: float, seed: int
) -> Trial:
    """Judge a candidate with as many rows per component as in the final fit, if possible."""
    n_held = min(_MOST_HELD_ROWS, len(rows) // 4)
    n_taught = min(len(rows) - n_held, _MOST_TAUGHT_ROWS, int(rows_per_component * size))
    size = min(size, n_taught)
    # The first rows chose the kernel and its metric, so they must not judge it.
    taught, held = slice(n_taught), slice(len(rows) - n_held, len(rows))
    inner = Nystroem(candidate.kernel, size, random_state=seed)
    fitted = candidate.preparation.around(inner).fit(rows.raw(taught).astype(np.float64))
    Z, Z_held = (fitted.transform(rows.raw(some).astype(np.float64)) for some in (taught, held))
    targets = rows.targets(held)
    alpha, predicted = _ridge(Z, rows.targets(taught), Z_held, targets)
    return Trial.of(candidate, targets, predicted, alpha, n_taught)


def _ridge(
    Z: np.ndarray, targets: Targets, Z_held: np.ndarray, held: Targets
) -> tuple[float, np.ndarray]:
    """Return the alpha with the least score on held-out rows, and its predictions for them."""
    mean, middle = Z.mean(axis=0), targets.Y.mean(axis=0)
    Z, Z_held = Z - mean, Z_held - mean
    nothing = held.score(np.tile(middle, (len(held), 1)))

    def score(W: np.ndarray) -> float:
        return held.score(Z_held @ W + middle)

    best = best_ridge(Z.T @ Z, Z.T @ (targets.Y - middle), score, least=nothing)
    return best.alpha, Z_held @ best.coef + middle
