"""The alpha with the least loss of rows held out, along a path of descents with warm starts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from craftmaps.learn.solvers.descent import Descent
from craftmaps.learn.solvers.few_pass import Machine

_SEARCH_TOLERANCE = 5e-5  # while alphas are compared: descents that end early misjudge them
_START_TOLERANCE = 1e-3  # of the descent from zero, at a larger alpha, that others start from
_EQUAL = 0.02  # relative difference of losses of rows held out that does not count
_CLEAR = 0.05  # and one that is clear even where the descent to the larger loss ended early
_STEPS = 2  # alphas per decade
_FIRST_ALPHA, _LAST_ALPHA = 0.01, 100.0  # where a search begins and ends, in mean curvatures


@dataclass
class Found:
    """The best alpha, all that were tried with their losses of rows held out, and where it ended.

    `ends` are the descents at the best alpha, one without each fold.
    """

    best: float
    alphas: np.ndarray
    scores: np.ndarray
    ends: list[Descent]


def search(
    machine: Machine, folds: Sequence[int], alphas: Sequence[float] | None, lowest: float
) -> Found:
    """Find the alpha with the least loss of rows held out.

    Given alphas are tried from the largest on, each from where the one before ended. Otherwise
    alpha begins at a hundredth of the mean curvature and is lowered by half decades as long as the
    loss of rows held out falls, or raised if it rises at once. Few rows decide where nearly all
    are right, so the largest alpha is taken whose loss is within two percent of the least one.
    """
    tried: dict[float, float] = {}
    reached: dict[float, list[Descent]] = {}
    ends: Sequence[np.ndarray | Descent] = [machine.start() for _ in folds]

    def improves(alpha: float) -> bool:
        nonlocal ends
        ends = reached[alpha] = machine.descend(alpha, ends, folds, _SEARCH_TOLERANCE)
        least = min(tried.values(), default=np.inf)
        tried[alpha] = float(sum(descent.held for descent in reached[alpha]))
        return tried[alpha] < (1 - _EQUAL) * least

    if alphas is not None:
        for alpha in sorted(alphas, reverse=True):
            improves(alpha)
    else:
        scale = machine.first.mean_curvature or 1.0
        first = round(_STEPS * np.log10(_FIRST_ALPHA * scale))
        last = np.floor(_STEPS * np.log10(_LAST_ALPHA * scale))
        power = first
        loss = np.inf
        if machine.has_time:
            # a larger penalty is quicker to minimize, and need not be minimized well
            ends = machine.descend(10.0 ** ((power + 1) / _STEPS), ends, folds, _START_TOLERANCE)
            loss = float(sum(descent.held for descent in ends))
        first_ends = ends
        improves(10.0 ** (power / _STEPS))
        larger_is_worse = np.isfinite(loss) and loss > (1 + _CLEAR) * min(tried.values())
        for step in (-1,) if larger_is_worse else (-1, 1):
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
