"""The rounds of the search: many candidates on few rows, then few candidates on many rows."""

from collections.abc import Callable, Iterable
from typing import Any

from sklearn.base import clone

from craftmaps.diagnose.recommend import candidates
from craftmaps.diagnose.recommend.budget import Budget
from craftmaps.diagnose.recommend.preparation import Preparation
from craftmaps.diagnose.recommend.trial import Split, Trial, attempt

_MAX_ROWS = (750, 3000, 16_000)  # rows to learn from in each round
_PROBE_SIZES = (192, 512)  # components of the map by which kernels are compared
_N_SURVIVORS = (10, 2)  # kernels that survive the first and the second round
_N_FINALISTS = 4  # maps that are tried again at the size that a budget of time or memory allows
_MAX_FINALIST_SIZE = 1024

# prepares a number of rows in each of the given ways
Splits = Callable[[Iterable[Preparation], int], dict[Preparation, Split]]


def first_round(
    splits: Splits, tried: list[Preparation], n_rows: int, size: int, seed: int
) -> list[Trial]:
    """All kernels with all preparations, on few rows."""
    n = min(_MAX_ROWS[0], max(n_rows // 8, min(200, n_rows // 2)))
    trials = []
    for split in splits(tried, n).values():
        probe_size = min(size, _PROBE_SIZES[0], split.X.shape[0] // 2)
        trials += [
            attempt(split, candidates.probe(kernel, probe_size, seed))
            for kernel in candidates.kernels(split.X)
        ]
    return trials


def second_round(splits: Splits, first: list[Trial], size: int, seed: int) -> list[Trial]:
    """The best of the first round, and neighbors of the best of these, on more rows."""
    kept = varied(first, _N_SURVIVORS[0])
    n = 4 * first[0].n_rows
    probe_size = min(size, _PROBE_SIZES[1], n // 4)
    prepared = splits({trial.preparation for trial in kept}, n)
    trials = [
        attempt(prepared[trial.preparation], candidates.probe(trial.kernel, probe_size, seed))
        for trial in kept
    ]
    for trial in _best(trials, _N_SURVIVORS[1]):
        tried = [(t.preparation, t.kernel) for t in trials]
        trials += [
            attempt(prepared[trial.preparation], candidates.probe(kernel, probe_size, seed))
            for kernel in candidates.neighbors(trial.kernel)
            if (trial.preparation, kernel) not in tried
        ]
    return trials


def third_round(
    splits: Splits, second: list[Trial], defaults: list[Any], size: int, seed: int
) -> list[Trial]:
    """The maps of the best kernels, and the plain defaults, on most rows."""
    kept = _best(second, _N_SURVIVORS[1])
    chosen = {trial.preparation for trial in kept} | {scaling for scaling, _ in defaults}
    prepared = splits(chosen, _MAX_ROWS[2])
    trials = []
    for trial in kept:
        split = prepared[trial.preparation]
        options = candidates.maps(trial.kernel, size, split.X, seed)
        trials += [attempt(split, feature_map) for feature_map in options]
    best = min(trials, key=lambda trial: trial.score)
    split = prepared[best.preparation]
    costly = candidates.costly_map(best.kernel, size, split.X.shape[0], seed)
    trials.append(attempt(split, costly))
    return trials + [attempt(prepared[scaling], plain) for scaling, plain in defaults]


def at_own_size(
    splits: Splits, third: list[Trial], limit: Budget, n_rows: int, n_targets: int
) -> list[Trial]:
    """The best maps again, each as large as the budget allows (and the search can afford)."""
    kept = [trial for trial in third if limit.components(trial, n_rows, n_targets)]
    kept = _best(kept, _N_FINALISTS) or [limit.best(third, n_rows, n_targets)]
    prepared = splits({trial.preparation for trial in kept}, _MAX_ROWS[2])
    trials = []
    for trial in kept:
        split = prepared[trial.preparation]
        size = min(_MAX_FINALIST_SIZE, limit.components(trial, n_rows, n_targets))
        size = min(size, split.X.shape[0])
        trials.append(attempt(split, clone(trial.feature_map).set_params(n_components=size)))
    return trials


def _best(trials: list[Trial], n: int) -> list[Trial]:
    return sorted(trials, key=lambda trial: trial.score)[:n]


def varied(trials: list[Trial], n: int) -> list[Trial]:
    """The best trial with each preparation, then the best of the rest."""
    ranked = _best(trials, len(trials))
    first = {trial.preparation: trial for trial in reversed(ranked)}.values()
    rest = [trial for trial in ranked if trial not in first]
    return [*first, *rest][: max(n, len(first))]
