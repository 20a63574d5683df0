"""Dates and times that are written as text.

A column has one of four forms, which `found_form` finds from all of its texts:

- "iso": 2024-12-31, perhaps with a time, and other ISO forms;
- "written": also 2024/12/31, 31.12.2024, 31 Dec 2024 and Dec 31, 2024, whose order is clear;
- "dayfirst" and "monthfirst": also 31/12/2024 or 12/31/2024, whose order other values show.
"""

import re
from collections.abc import Iterable
from datetime import datetime

FORMS = {  # forms with examples for error messages
    "iso": "2024-12-31",
    "written": "31 Dec 2024",
    "dayfirst": "31/12/2024",
    "monthfirst": "12/31/2024",
}
UNDECIDED = "undecided"  # dates like 05/06/2024 in a column without a value that shows the order
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_TIME = (
    r"(?:(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<part>\d+))?)?"
    r"(?:\s?(?P<half>[ap])\.?m\.?)?)?"
)
_FLAGS = re.ASCII | re.IGNORECASE
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?", re.ASCII | re.DOTALL)
_CLEAR = [
    re.compile(date + _TIME, _FLAGS)
    for date in (
        r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
        rf"(?P<day>\d{{1,2}})[-\s]{_MONTH}[-,\s]\s*(?P<year>\d{{4}})",
        rf"{_MONTH}\s(?P<day>\d{{1,2}}),?\s(?P<year>\d{{4}})",
    )
]
_TWO_NUMBERS = r"(?P<{}>\d{{1,2}})(?P<sign>[-/])(?P<{}>\d{{1,2}})(?P=sign)(?P<year>\d{{4}})"
_ORDERED = {
    "dayfirst": re.compile(_TWO_NUMBERS.format("day", "month") + _TIME, _FLAGS),
    "monthfirst": re.compile(_TWO_NUMBERS.format("month", "day") + _TIME, _FLAGS),
}


def found_form(texts: Iterable[str]) -> str | None:
    """Return the form in which all texts are dates, `UNDECIDED`, or None if some are not dates.

    Texts such as 31/12/2024 are dates if all of them are dates in the same order of day and month.
    """
    is_iso, orders, ordered = True, set(_ORDERED), False
    for text in texts:
        if _ISO.fullmatch(text.strip()):
            if not _is_date(text, "iso"):
                return None
            continue
        is_iso = False
        if _ORDERED["dayfirst"].fullmatch(text.strip()):
            ordered = True
            orders = {order for order in orders if _is_date(text, order)}
            if not orders:
                return None
        elif not (_is_clear(text) and _is_date(text, "written")):
            return None
    if not ordered:
        return "iso" if is_iso else "written"
    return orders.pop() if len(orders) == 1 else UNDECIDED


def parsed(text: str, form: str) -> datetime:
    """Convert a text of a form to a moment, or raise ValueError if it is not a date."""
    text = text.strip()
    if form != "iso" and not _ISO.fullmatch(text):
        patterns = [*_CLEAR, _ORDERED[form]] if form in _ORDERED else _CLEAR
        for pattern in patterns:
            if match := pattern.fullmatch(text):
                return _moment(match.groupdict())
    return datetime.fromisoformat(text)


def _moment(parts: dict[str, str | None]) -> datetime:
    """Return the moment of the named parts of a match."""

    def number(name: str) -> int:
        return int(parts.get(name) or 0)

    name, half, hour = parts.get("name"), parts["half"], number("hour")
    month = _MONTHS.index(name[:3].lower()) + 1 if name else number("month")
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no hour {hour} before or after noon")
        hour = hour % 12 + 12 * (half.lower() == "p")
    microsecond = int((parts["part"] or "").ljust(6, "0")[:6])
    return datetime(
        number("year"),
        month,
        number("day"),
        hour,
        number("minute"),
        number("second"),
        microsecond,
    )


def _is_clear(text: str) -> bool:
    return any(pattern.fullmatch(text.strip()) for pattern in _CLEAR)


def _is_date(text: str, form: str) -> bool:
    try:
        parsed(text, form)
    except ValueError:
        return False
    return True
