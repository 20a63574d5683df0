"""The search for alpha: coarse steps to the least score, then finer steps around it."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from craftmaps.learn.solvers.precision import FLOOR
from craftmaps.validation import warn

ALPHAS_PER_DECADE = 4
EQUAL_SCORES = 5e-3  # scores with a smaller relative difference count as equal
_FLAT = 5e-4  # relative gain of a step, after which smaller alphas gain even less together
_FIRST_ALPHA = 1e-4  # the first alpha of a search, relative to the trace
_STEPS = (ALPHAS_PER_DECADE, ALPHAS_PER_DECADE // 2, ALPHAS_PER_DECADE // 4)
_LEAST_ALPHA = float(np.finfo(np.float64).tiny)
_LARGEST_TRACE = float(np.finfo(np.float64).max) / 100
_WARNED_SHARE = 0.01  # warn if a smaller alpha could gain this share of a constant's score


def alpha_grid(eps: float, trace: float) -> np.ndarray:
    """Return powers of 10^(1/4) between the rounding errors and ten times the trace.

    The grid does not depend on the data in any other way. So the same rows in other blocks, or with
    weights instead of repetitions, lead to the same alpha.
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
    """Return alphas around the one with the least score, in increasing order, and their scores.

    The search tries whole decades down and up from about 1e-4 times the trace, until the next one
    in either direction is worse. Then it tries half and quarter decades on either side, and larger
    alphas until the score is no longer as good. With a hint, an alpha that is about right, the
    search starts there with half decades, and goes down until the scores are flat. Where a minimum
    is so flat that its neighbors are as good, there are no finer steps.
    """
    first, last = _powers(eps, trace)
    tried: dict[int, np.ndarray] = {}

    def attempt(power: int) -> None:
        if first <= power <= last and power not in tried:
            tried[power] = score(10.0 ** (power / ALPHAS_PER_DECADE))

    def best() -> int:
        """Return the power with the least score, the largest one of equal scores."""
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
    # The result should not depend on where the search started, so it ends with the largest alpha
    # whose score equals the best one.
    lowest = best()
    largest = max(power for power in tried if is_as_good(power, lowest))
    top = max(lowest, largest - ALPHAS_PER_DECADE)  # smaller ones would not be chosen
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
    """Return the alpha with the smallest score, or one alpha per target."""
    alphas = np.asarray(alphas, dtype=np.float64)
    if per_target:
        return np.asarray(alphas[scores.argmin(axis=0)])
    return np.asarray(alphas[scores.sum(axis=1).argmin()])


def largest_of_best(alphas: np.ndarray, scores: np.ndarray, per_target: bool) -> np.ndarray:
    """Return the largest alpha whose score is within half a percent of the best.

    Scores are flat around their minimum, and the rows that are left out resolve no smaller
    differences.
    """
    scores = scores if per_target else scores.sum(axis=1)
    good = scores <= (1 + EQUAL_SCORES) * scores.min(axis=0)
    return np.asarray(alphas[::-1][good[::-1].argmax(axis=0)])


def warn_of_ends(
    alpha: float, alphas: np.ndarray, scores: np.ndarray, constant: float, precision: np.dtype
) -> None:
    """Warn if the best alpha is the smallest that the precision allows and smaller ones may help.

    `constant` is the score of a constant prediction. If scores fall by less than a hundredth of it
    from one decade to the next, a smaller alpha would hardly help, and there is no warning.
    """
    total = scores.sum(axis=1)
    above = np.searchsorted(alphas, 10 * alphas[0])
    gain = total[min(above, len(total) - 1)] - total[0]
    if alpha == alphas[0] and gain > _WARNED_SHARE * constant:
        advice = (
            "float64 rows or a narrower kernel" if precision.itemsize == 4 else "a narrower kernel"
        )
        warn(
            f"alpha={alpha:.3g} is the smallest that sums of {precision} products support, and the "
            f"leave-one-out errors still fall there; {advice} may do better.",
            UserWarning,
        )
