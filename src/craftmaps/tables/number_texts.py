"""Numbers written as text: with a currency, a unit, grouped digits, or marks for missing values.

`found_form` looks at all texts of a column. They are numbers if they have the same decimal sign and
the same currency or unit, such as $1,234.50, or 1.234,50 €, or 12 kg; or if they all are times such
as 23:59 or 2 days 23:59:59, or durations such as 2h 30m. A text such as "?" or "n/a" among them is
a missing value.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from craftmaps.storage.expect import expect
from craftmaps.storage.packing import storable

MARKS = (  # texts that mark missing values among numbers and dates, in lower case
    *("", "?", "-", "--", "---", "\u2013", "\u2014", ".", "..", "..."),
    *("na", "n/a", "n.a.", "nan", "none", "null", "nil", "missing", "unknown", "<na>"),
    *("#n/a", "#na", "#div/0!", "#value!", "#ref!", "#num!", "#null!", "#name?"),
)
_CURRENCY = "[$€£¥₹₩₽₺]"
_BEFORE = rf"[A-Z]{{0,3}}{_CURRENCY}|[A-Z]{{3}}(?=[\s\d])"
_AFTER = rf"[%‰]|{_CURRENCY}|°?[^\W\d_]{{1,12}}(?:/[^\W\d_]{{1,12}})?"
_DIGITS = r"[0-9]*[.,]?[0-9](?:[0-9.,'\u2019\s]*[0-9])?[.,]?(?:[eE][+-]?[0-9]+)?"
_PARTS = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[-+\u2212]?)\s*(?P<before>{_BEFORE})?\s*(?P<inner>[-+\u2212]?)"
    rf"(?P<digits>{_DIGITS})\s*(?P<after>{_AFTER})?\s*(?P<close>\))?"
)
_CLOCK = re.compile(
    r"(?:(?P<days>-?[0-9]+)\sdays?,?\s\+?)?(?P<hour>[0-9]{1,3}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9](?:\.[0-9]+)?))?"
    r"(?:\s?(?P<half>[ap])\.?m\.?)?",
    re.IGNORECASE,
)
_SPAN = re.compile(
    r"(?:(?P<d>[0-9]+)\s?d(?:ays?)?)?\s?(?:(?P<h>[0-9]+)\s?h(?:ours?|rs?)?)?\s?"
    r"(?:(?P<m>[0-9]+)\s?m(?:in(?:ute)?s?)?)?\s?(?:(?P<s>[0-9]+)\s?s(?:ec(?:ond)?s?)?)?",
    re.IGNORECASE,
)
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_GROUPS = {".": (",", " ", "'"), ",": (".", " ", "'")}  # separators of thousands


@storable
@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ",", ":", "h"}
        The decimal sign. A colon stands for times of day, and "h" for durations such as 2h 30m,
        which are read in seconds.
    before, after : str
        The currency or the unit on either side of all numbers.
    seconds : bool
        Whether times of day have seconds.
    """

    decimal: str
    before: str = ""
    after: str = ""
    seconds: bool = False

    @property
    def example(self) -> str:
        """Return a number in this form, for messages."""
        if self.decimal == ":":
            return "23:59:59" if self.seconds else "23:59"
        if self.decimal == "h":
            return "2h 30m"
        space = " " if self.before.isalpha() else ""
        number = "1,234.5" if self.decimal == "." else "1.234,5"
        unit = f" {self.after}" if self.after and self.after not in "%‰" else self.after
        return f"{self.before}{space}{number}{unit}"

    def parsed(self, text: str) -> float:
        """Return the number of a text, or raise ValueError if the text has another form."""
        text = text.strip()
        if is_mark(text):
            return float("nan")
        if self.decimal == ":":
            return self._seconds_of(text)
        if self.decimal == "h":
            return _length_of(text)
        parts = _PARTS.fullmatch(text)
        if parts is None or _around(parts) != (self.before, self.after):
            raise ValueError(f"{text!r} is of another form")
        digits = _ungrouped(parts["digits"], self.decimal)
        if digits is None or bool(parts["open"]) != bool(parts["close"]):
            raise ValueError(f"{text!r} is of another form")
        signs = (parts["sign"] + parts["inner"]).replace("\u2212", "-") + "-" * bool(parts["open"])
        if len(signs) > 1:
            raise ValueError(f"{text!r} has two signs")
        return float(signs + digits)

    def _seconds_of(self, text: str) -> float:
        parts = _CLOCK.fullmatch(text)
        if parts is None or (parts["second"] is not None) != self.seconds:
            raise ValueError(f"{text!r} is of another form")
        hour = int(parts["hour"])
        if parts["half"]:
            if not 1 <= hour <= 12:
                raise ValueError(f"there is no hour {hour} before or after noon")
            hour = hour % 12 + 12 * (parts["half"].lower() == "p")
        hour += 24 * int(parts["days"] or 0)
        return hour * 3600.0 + int(parts["minute"]) * 60.0 + float(parts["second"] or 0)

    def _check_stored(self) -> None:
        expect(self.decimal in (".", ",", ":", "h"), "a known decimal sign")


def found_form(texts: Iterable[str]) -> NumberForm | None:
    """Return the form in which all texts are numbers or marks of missing values, or None.

    Codes such as 007 are not numbers. If the texts leave the decimal sign open, as 1,234 does, it
    is the point.
    """
    present = [text.strip() for text in texts if not is_mark(text)]
    if not present:
        return None
    return next((form for form in _candidates(present[0]) if _takes_all(form, present)), None)


def is_mark(text: str) -> bool:
    """Whether a text among numbers or dates stands for a missing value."""
    return text.strip().lower() in MARKS


def is_plain(text: str) -> bool:
    """Whether a text is a number as programs write it, without anything around it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _candidates(text: str) -> list[NumberForm]:
    """Return the forms that a text may have."""
    if clock := _CLOCK.fullmatch(text):
        return [NumberForm(":", seconds=clock["second"] is not None)]
    spans = [NumberForm("h")] if _SPAN.fullmatch(text) else []
    parts = _PARTS.fullmatch(text)
    forms = [] if parts is None else [NumberForm(sign, *_around(parts)) for sign in (".", ",")]
    return forms + spans


def _takes_all(form: NumberForm, texts: list[str]) -> bool:
    """Whether all texts have a form; durations such as 5m are units unless others are 2h 30m."""
    try:
        for text in texts:
            form.parsed(text)
    except ValueError:
        return False
    return form.decimal != "h" or any(len(re.findall("[0-9]+", text)) > 1 for text in texts)


def _length_of(text: str) -> float:
    """Return the seconds of a duration."""
    parts = _SPAN.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is not a duration")
    return sum(_SECONDS[unit] * int(number or 0) for unit, number in parts.groupdict().items())


def _around(parts: re.Match[str]) -> tuple[str, str]:
    """Return the text before and after the number."""
    return parts["before"] or "", parts["after"] or ""


def _ungrouped(digits: str, decimal: str) -> str | None:
    """Return the digits as Python writes them, or None for codes and for other groups."""
    plain = re.sub(r"\s", " ", digits).replace("\u2019", "'")
    if not _grouped(decimal).fullmatch(plain):
        return None
    for group in _GROUPS[decimal]:
        plain = plain.replace(group, "")
    return plain.replace(decimal, ".")


@cache
def _grouped(decimal: str) -> re.Pattern[str]:
    """Whole digits without leading zeros, or grouped by thousands; then the fraction."""
    apart = "|".join(rf"[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}})+" for group in _GROUPS[decimal])
    sign = re.escape(decimal)
    number = rf"(?:{apart}|0|[1-9]\d*)(?:{sign}\d*)?|{sign}\d+"
    return re.compile(rf"(?:{number})(?:[eE][+-]?\d+)?", re.ASCII)
