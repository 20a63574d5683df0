"""Compare our values with published ones, and one method with another, by intervals.

A published value is one draw of a randomized method. It is compared with the interval in which one
further run of ours is expected, mean ± t s sqrt(1 + 1/n). The relative standard deviation s / mean
is pooled over the cells of a method, because a few seeds say little about a spread and a single
seed says nothing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

CONFIDENCE = 0.95
BETTER, WITHIN, WORSE = "better", "within the spread", "worse"
HOLDS, UNDECIDED, FAILS = "holds", "undecided", "fails"
ONE_RUN = "one run"
_NOISE = 1e-9  # relative, of sums in floating point


@dataclass(frozen=True)
class Spread:
    """Relative standard deviation of a method, and its degrees of freedom; none: not known."""

    relative: float
    freedom: int


def pooled(cells: Iterable[Sequence[float]]) -> Spread:
    """The spread of a method, from the values of all seeds in each of its cells.

    Examples
    --------
    >>> pooled([[3.0, 5.0], [1.0], [8.0, 8.0]])
    Spread(relative=0.25, freedom=2)
    """
    total, freedom = 0.0, 0
    for values in cells:
        mean = math.fsum(values) / max(len(values), 1)
        if len(values) > 1:
            freedom += len(values) - 1
            total += math.fsum((value / mean - 1) ** 2 for value in values) if mean else 0.0
    return Spread(math.sqrt(total / freedom) if freedom else math.nan, freedom)


def half_width(mean: float, n_seeds: int, spread: Spread) -> float:
    """Of the interval for one further run; nan if the spread is not known."""
    if not spread.freedom:
        return math.nan
    deviation = abs(mean) * spread.relative
    return _quantile(spread.freedom) * deviation * math.sqrt(1 + 1 / n_seeds)


def verdict(
    values: Sequence[float],
    printed: float,
    spread: Spread,
    digits: int,
    lower_is_better: bool = True,
) -> str:
    """Whether a cell is better than printed, worse, or neither.

    Parameters
    ----------
    values : sequence of float
        Ours, one for each seed.
    printed : float
    spread : Spread
        Of the method.
    digits : int
        Of the printed value, after the point: what rounds to it is equal to it.
    lower_is_better : bool, default=True

    Examples
    --------
    >>> values = [5.0, 5.2, 5.1]
    >>> verdict(values, 5.9, pooled([values]), digits=1)
    'better'
    >>> verdict(values, 5.3, pooled([values]), digits=1)
    'within the spread'
    """
    mean = math.fsum(values) / len(values)
    width = half_width(mean, len(values), spread)
    if math.isnan(width):
        return ONE_RUN
    if abs(mean - printed) <= width + 0.5 * 10**-digits + _NOISE * abs(printed):
        return WITHIN
    return BETTER if (mean < printed) == lower_is_better else WORSE


def compared(
    better: Sequence[float],
    than: Sequence[float],
    spreads: tuple[Spread, Spread],
    lower_is_better: bool = True,
) -> str:
    """Whether one method is better than another: by Welch's interval of the difference of means.

    Examples
    --------
    >>> ours, theirs = [5.0, 5.2, 5.1], [6.0, 6.3, 6.1]
    >>> compared(ours, theirs, (pooled([ours]), pooled([theirs])))
    'holds'
    """
    if not all(spread.freedom for spread in spreads):
        return ONE_RUN
    means = [math.fsum(values) / len(values) for values in (better, than)]
    gain = (means[1] - means[0]) * (1 if lower_is_better else -1)
    squares = [
        (mean * spread.relative) ** 2 / len(values)
        for mean, spread, values in zip(means, spreads, (better, than), strict=True)
    ]
    parts = [s**2 / spread.freedom for s, spread in zip(squares, spreads, strict=True)]
    width = 0.0
    if sum(parts):
        width = _quantile(sum(squares) ** 2 / sum(parts)) * math.sqrt(sum(squares))
    if abs(gain) <= width:
        return UNDECIDED
    return HOLDS if gain > 0 else FAILS


def _quantile(freedom: float) -> float:
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
