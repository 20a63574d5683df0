"""The search for the alpha with the least loss of held-out rows, with warm starts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from craftmaps.learn.solvers.descent import Descent
from craftmaps.learn.solvers.few_pass import Machine

_SEARCH_TOLERANCE = 1e-5  # small, because descents that end early misjudge alphas
_SETTLED_TOLERANCE = 3e-4  # tolerance after some passes, when held-out losses hardly change
_START_TOLERANCE = 1e-3  # tolerance of the first descent, from zero and at a larger alpha
_NEAR = 3.0  # larger alphas than this multiple of a given alpha are worth a rough descent
_LEAST_START = 1e-6  # no rough descent has an alpha below this share of the first one
_EQUAL = 0.02  # held-out losses with a smaller relative difference count as equal
_CLEAR = 0.05  # a larger difference is clear even if the descent to the larger loss ended early
_STEPS = 2  # alphas per decade
_FIRST_ALPHA, _LAST_ALPHA = 0.01, 100.0  # first and largest alpha of a search, in mean curvatures


def warm_start(machine: Machine, alpha: float) -> np.ndarray | Descent:
    """Return where to start at a given alpha.

    If alpha is small, rough descents at larger ones need fewer passes than one from zero.
    """
    start: np.ndarray | Descent = machine.start()
    larger = _FIRST_ALPHA * machine.first.mean_curvature
    least = max(alpha, _LEAST_START * larger)
    while larger > _NEAR * least and machine.has_time:
        (start,) = machine.descend(larger, [start], [None], _START_TOLERANCE)
        larger /= 10
    return start


@dataclass
class Found:
    """The best alpha, and all alphas with their losses of held-out rows.

    `ends` are the descents at the best alpha, one for each held-out fold.
    """

    best: float
    alphas: np.ndarray
    scores: np.ndarray
    ends: list[Descent]


def search(
    machine: Machine,
    folds: Sequence[int],
    alphas: Sequence[float] | None,
    lowest: float,
    hint: float | None = None,
) -> Found:
    """Find the alpha with the least loss of held-out rows.

    Given alphas are tried from the largest on, and each starts at the solution of the previous one.
    Otherwise alpha starts at a hundredth of the mean curvature, or at `hint` if that is larger. It
    is lowered by half decades as long as the loss of held-out rows falls, or raised if it rises at
    once. If a rough solution for a larger alpha is better, it is raised first. If nearly all rows
    are right, a few rows decide, so the result is the largest alpha whose loss is within two
    percent of the least one.
    """
    tried: dict[float, float] = {}
    reached: dict[float, list[Descent]] = {}
    ends: Sequence[np.ndarray | Descent] = [machine.start() for _ in folds]

    def improves(alpha: float) -> bool:
        nonlocal ends
        tols = _SEARCH_TOLERANCE, _SETTLED_TOLERANCE
        ends = reached[alpha] = machine.descend(alpha, ends, folds, *tols)
        least = min(tried.values(), default=np.inf)
        tried[alpha] = float(sum(descent.held for descent in reached[alpha]))
        return tried[alpha] < (1 - _EQUAL) * least

    if alphas is not None:
        for alpha in sorted(alphas, reverse=True):
            improves(alpha)
    else:
        scale = machine.first.mean_curvature or 1.0
        usual, last = _FIRST_ALPHA * scale, np.floor(_STEPS * np.log10(_LAST_ALPHA * scale))
        # Descents at small alphas take fewer passes if larger alphas come before.
        first = round(_STEPS * np.log10(max(usual, hint or 0.0)))
        power = first = int(min(first, last))
        loss = np.inf
        if machine.has_time:
            # A larger penalty takes fewer passes, and a rough solution is enough as a start.
            ends = machine.descend(10.0 ** ((power + 1) / _STEPS), ends, folds, _START_TOLERANCE)
            loss = float(sum(descent.held for descent in ends))
        first_ends = ends
        improves(10.0 ** (power / _STEPS))
        for step in _directions(min(tried.values()), loss):
            while lowest <= 10.0 ** ((power + step) / _STEPS) and power + step <= last:
                if not machine.has_time:
                    break
                power += step
                if not improves(10.0 ** (power / _STEPS)):
                    break
            if len(tried) > 2:
                break
            power, ends = first, first_ends
    good = (1 + _EQUAL) * min(tried.values())
    best = max(alpha for alpha in tried if tried[alpha] <= good)
    every = np.array(sorted(tried))
    scores = np.array([tried[alpha] for alpha in every])
    return Found(best, every, scores, reached[best])


def _directions(loss: float, at_larger: float) -> tuple[int, ...]:
    """Return the directions to try, for the losses at the first alpha and roughly at a larger one.

    The latter is infinite if there was no time for it.
    """
    if np.isfinite(at_larger) and at_larger > (1 + _CLEAR) * loss:
        return (-1,)
    return (1, -1) if at_larger < (1 - _EQUAL) * loss else (-1, 1)
