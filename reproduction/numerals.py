"""Numbers as people read them."""

import math
from collections.abc import Sequence
from typing import Any

_FIRST_POWER = 5  # sizes from 2^5 on are shown as powers


def number(value: float, digits: int | None, shown: int = 2) -> str:
    """With the digits of the printed values; `shown` that count if these would show nothing.

    Examples
    --------
    >>> number(5.128, 2), number(0.0041, 2), number(12345.6, 0)
    ('5.13', '0.0041', '12,346')
    >>> number(0.012345, None), number(1234.5, None)
    ('0.0123', '1,234')
    """
    if math.isnan(value):
        return ""
    digits = decimals(value) if digits is None else digits
    if value and abs(value) < 0.5 * 10**-digits:
        return f"{value:.{shown}g}"
    return f"{value:,.{digits}f}"


def decimals(value: float) -> int:
    """After the point, for three digits that count."""
    return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 2


def labels(x: Sequence[Any]) -> list[str]:
    """Names of columns: sizes that are all powers of two as such.

    Examples
    --------
    >>> labels([1024, 2048]), labels([300, 512]), labels(["usps"])
    (['2^10', '2^11'], ['300', '512'], ['usps'])
    """
    if all(_is_power(one) for one in x):
        return [f"2^{int(one).bit_length() - 1}" for one in x]
    return [_label(one) for one in x]


def clock(seconds: float) -> str:
    """A duration.

    Examples
    --------
    >>> clock(42.4), clock(754), clock(40_000)
    ('42 s', '13 min', '11.1 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _is_power(x: Any) -> bool:
    return isinstance(x, int) and x >= 2**_FIRST_POWER and not x & (x - 1)


def _label(x: Any) -> str:
    if isinstance(x, tuple):
        return ", ".join(map(_label, x))
    if isinstance(x, int):
        return f"{x:,}"
    return f"{x:.4g}" if isinstance(x, float) else str(x)
