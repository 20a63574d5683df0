"""Dates and times that are written as text.

A column has one of four forms, which `found_form` finds from all of its texts:

- "iso": 2024-12-31, perhaps with a time, and other ISO forms;
- "written": also 2024/12/31, 31.12.2024, 31 Dec 2024 and Dec 31, 2024, whose order is clear, and
  months and quarters such as 2024-12, Dec 2024 and 2024-Q4, which are read as their first day;
- "dayfirst" and "monthfirst": also 31/12/2024 or 12/31/2024, whose order other values show.

Years of two digits are 1969 to 2068, as in Python's `strptime`. Marks such as "?" are missing
dates.
"""

import re
from collections.abc import Iterable
from datetime import datetime

from craftmaps.tables.number_texts import is_mark

FORMS = {  # forms with examples for error messages
    "iso": "2024-12-31",
    "written": "31 Dec 2024",
    "dayfirst": "31/12/2024",
    "monthfirst": "12/31/2024",
}
UNDECIDED = "undecided"  # dates like 05/06/2024 in a column without a value that shows the order
_FIRST_CENTURY = 69  # years of two digits from here on are in the twentieth century
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
_YEAR = r"(?P<year>\d{4}|\d{2})"
_DAYS = [
    re.compile(date + _TIME, _FLAGS)
    for date in (
        r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
        rf"(?P<day>\d{{1,2}})[-\s]{_MONTH}[-,\s]\s*{_YEAR}",
        rf"{_MONTH}\s(?P<day>\d{{1,2}}),?\s(?P<year>\d{{4}})",
    )
]
_MONTHS_OF_YEARS = [
    re.compile(date, _FLAGS)
    for date in (
        r"(?P<year>\d{4})-(?P<month>\d{2})",
        rf"{_MONTH}[-,\s]\s*(?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}})[-,\s]\s*{_MONTH}",
        r"(?P<year>\d{4})[-\s]?Q(?P<quarter>[1-4])",
        r"Q(?P<quarter>[1-4])[-\s]?(?P<year>\d{4})",
    )
]
_CLEAR = [*_DAYS, *_MONTHS_OF_YEARS]
_NUMBERS = r"(?P<{}>\d{{1,2}})(?P<sign>[-/])(?P<{}>\d{{1,2}})(?P=sign)"
_ORDERED = {
    "dayfirst": re.compile(_NUMBERS.format("day", "month") + _YEAR + _TIME, _FLAGS),
    "monthfirst": re.compile(_NUMBERS.format("month", "day") + _YEAR + _TIME, _FLAGS),
}
_YEAR_FIRST = re.compile(_NUMBERS.format("year", "month") + r"(?P<day>\d{1,2})" + _TIME, _FLAGS)


def found_form(texts: Iterable[str]) -> str | None:
    """Return the form in which all texts are dates, `UNDECIDED`, or None if some are not dates.

    Texts such as 31/12/2024 are dates if all of them are dates in the same order of day and month.
    Texts such as 25/12/24 may also have their year first. Texts such as 2023-24 and 2024-25 are no
    months if all of them may be years that follow each other.
    """
    orders, form = {*_ORDERED, "yearfirst"}, None
    are_years = True
    for text in map(str.strip, texts):
        if is_mark(text):
            continue
        are_years = are_years and _may_be_years(text)
        if _ISO.fullmatch(text):
            if not _is_date(text, "iso"):
                return None
            form = form or "iso"
        elif _ORDERED["dayfirst"].fullmatch(text):
            form = UNDECIDED
            orders = {order for order in orders if _is_date(text, order)}
            if not orders & {*_ORDERED}:
                return None
        elif not (_is_clear(text) and _is_date(text, "written")):
            return None
        elif form != UNDECIDED:
            form = "written"
    if are_years:
        return None
    return orders.pop() if form == UNDECIDED and len(orders) == 1 else form


def parsed(text: str, form: str) -> datetime:
    """Convert a text of a form to a moment, or raise ValueError if it is not a date."""
    text = text.strip()
    if form != "iso" and not _ISO.fullmatch(text):
        patterns = [*_CLEAR, _ORDERED[form]] if form in _ORDERED else _CLEAR
        for pattern in patterns:
            if match := pattern.fullmatch(text):
                return _moment(match)
    return datetime.fromisoformat(text)


def _moment(match: re.Match[str]) -> datetime:
    """Return the moment of the named parts of a match."""
    parts = match.groupdict()

    def number(name: str, absent: int = 0) -> int:
        return int(parts.get(name) or absent)

    name, half, hour = parts.get("name"), parts.get("half"), number("hour")
    month = _MONTHS.index(name[:3].lower()) + 1 if name else number("month")
    if "quarter" in parts:
        month = 3 * number("quarter") - 2
    year = number("year")
    if len(parts["year"]) == 2:
        year += 1900 if year >= _FIRST_CENTURY else 2000
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no hour {hour} before or after noon")
        hour = hour % 12 + 12 * (half.lower() == "p")
    microsecond = int((parts.get("part") or "").ljust(6, "0")[:6])
    return datetime(
        year,
        month,
        number("day", 1),
        hour,
        number("minute"),
        number("second"),
        microsecond,
    )


def _is_clear(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in _CLEAR)


def _may_be_years(text: str) -> bool:
    """Whether a text such as 2023-24 may be a year and the next one."""
    match = _MONTHS_OF_YEARS[0].fullmatch(text)
    return match is not None and int(match["month"]) == (int(match["year"]) + 1) % 100


def _is_date(text: str, form: str) -> bool:
    try:
        if form == "yearfirst":
            match = _YEAR_FIRST.fullmatch(text)
            return match is not None and len(match["year"]) == 2 and bool(_moment(match))
        parsed(text, form)
    except ValueError:
        return False
    return True
