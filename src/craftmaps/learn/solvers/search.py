"""The search of alpha: coarse steps to the least score, then finer ones around it."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from craftmaps.learn.solvers.precision import FLOOR
from craftmaps.validation import warn

ALPHAS_PER_DECADE = 4
EQUAL_SCORES = 5e-3  # relative difference of scores that does not count
_FLAT = 5e-4  # relative gain of a step, after which smaller alphas gain even less together
_FIRST_ALPHA = 1e-4  # where a search begins, relative to the trace
_STEPS = (ALPHAS_PER_DECADE, ALPHAS_PER_DECADE // 2, ALPHAS_PER_DECADE // 4)
_LEAST_ALPHA = float(np.finfo(np.float64).tiny)
_LARGEST_TRACE = float(np.finfo(np.float64).max) / 100
_MATTERS = 0.01  # share of the score of a constant that a search leaves behind with a warning


def alpha_grid(eps: float, trace: float) -> np.ndarray:
    """Powers of 10^(1/4) between what the precision can tell from zero and ten times the trace.

    They do not depend on the data otherwise, so that the same rows in other blocks, or with weights
    instead of repetitions, choose the same alpha.
    """
    first, last = _powers(eps, trace)
    return np.asarray(10.0 ** (np.arange(first, last + 1) / ALPHAS_PER_DECADE))


def _powers(eps: float, trace: float) -> tuple[int, int]:
    trace = trace if trace > 0 else 1.0
    if trace > _LARGEST_TRACE:
        raise ValueError(
            f"the squares of the features add up to {trace:.3g}, which is too large to choose "
            f"alpha; scale the rows, for instance to unit norm."
        )
    ends = (max(FLOOR * eps * trace, _LEAST_ALPHA), max(10 * trace, _LEAST_ALPHA))
    first, last = (int(np.ceil(ALPHAS_PER_DECADE * np.log10(end))) for end in ends)
    return first, last


def search(
    score: Callable[[float], np.ndarray], eps: float, trace: float, hint: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Alphas around the one with the least score, in increasing order, and the score of each.

    Whole decades are tried from about 1e-4 of the trace on, downwards and upwards, until the next
    one in either direction is worse. Then follow a half and a quarter of a decade on either side,
    and larger alphas until the score is no longer as good. A search that is given a hint, an alpha
    that is about right, begins there with half decades, and goes down until the scores are flat.
    Where a minimum is so flat that its neighbors are as good, there are no finer steps.
    """
    first, last = _powers(eps, trace)
    tried: dict[int, np.ndarray] = {}

    def attempt(power: int) -> None:
        if first <= power <= last and power not in tried:
            tried[power] = score(10.0 ** (power / ALPHAS_PER_DECADE))

    def best() -> int:
        """The power of the least score; of equal ones the largest."""
        return min(tried, key=lambda power: (tried[power].sum(), -power))

    middle, steps = (first + last) // 2, list(_STEPS)
    if hint is not None:
        middle, steps = round(np.log10(hint) * ALPHAS_PER_DECADE), list(_STEPS[1:])
    elif trace > 0:
        middle = round(np.log10(_FIRST_ALPHA * trace)) * ALPHAS_PER_DECADE

    def is_as_good(power: int, other: int, share: float = EQUAL_SCORES) -> bool:
        return bool(tried[power].sum() <= (1 + share) * tried[other].sum())

    attempt(min(max(middle, first), last))
    for ends, step in ((min, -steps[0]), (max, steps[0])):
        while True:
            end = ends(tried)
            following = min(max(end + step, first), last)
            if following == end or abs(end - best()) >= steps[0]:
                break
            attempt(following)
            if hint is not None and step < 0 and is_as_good(end, following, _FLAT):
                break
    for before, step in pairwise(steps):
        middle = best()
        around = tried.keys() & {middle - before, middle + before}
        if not all(is_as_good(power, middle) for power in around):
            attempt(middle - step)
            attempt(middle + step)
    # wherever the search began, it ends with the largest alpha that is as good as the best
    top = lowest = best()
    for step in _STEPS[1:]:
        while top + step <= last:
            attempt(top + step)
            if not is_as_good(top + step, lowest):
                break
            top += step
    powers = sorted(tried)
    alphas = 10.0 ** (np.array(powers) / ALPHAS_PER_DECADE)
    return alphas, np.array([tried[power] for power in powers])


def best_alpha(alphas: Any, scores: np.ndarray, per_target: bool) -> np.ndarray:
    """The alpha (or the alphas, one per target) with the smallest score."""
    alphas = np.asarray(alphas, dtype=np.float64)
    if per_target:
        return np.asarray(alphas[scores.argmin(axis=0)])
    return np.asarray(alphas[scores.sum(axis=1).argmin()])


def largest_of_best(alphas: np.ndarray, scores: np.ndarray, per_target: bool) -> np.ndarray:
    """The largest alpha whose score is within half a percent of the best.

    Curves are flat around their minimum, and the rows that are left out decide no finer.
    """
    scores = scores if per_target else scores.sum(axis=1)
    good = scores <= (1 + EQUAL_SCORES) * scores.min(axis=0)
    return np.asarray(alphas[::-1][good[::-1].argmax(axis=0)])


def warn_of_ends(
    alpha: float, alphas: np.ndarray, scores: np.ndarray, constant: float, precision: np.dtype
) -> None:
    """Say that the best alpha is the least one that the precision allows, if that costs something.

    `constant` is the score of a constant prediction. Where scores fall by less than a hundredth of
    it from one decade to the next, a smaller alpha would hardly be better.
    """
    total = scores.sum(axis=1)
    above = np.searchsorted(alphas, 10 * alphas[0])
    gain = total[min(above, len(total) - 1)] - total[0]
    if alpha == alphas[0] and gain > _MATTERS * constant:
        advice = (
            "float64 rows or a narrower kernel" if precision.itemsize == 4 else "a narrower kernel"
        )
        warn(
            f"alpha={alpha:.3g} is the least that sums of {precision} products support, and the "
            f"errors of rows left out still fall there; {advice} may do better.",
            UserWarning,
        )
