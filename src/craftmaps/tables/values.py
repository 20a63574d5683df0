"""The values of one column of any library: numbers, moments in time, or text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np

from craftmaps.tables import date_texts
from craftmaps.tables.number_texts import NumberForm, is_mark

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_NOT_ENCODED = (
    *(list, tuple, dict, set, frozenset, np.ndarray),
    *(bytes, bytearray, memoryview, complex, np.complexfloating),
)


class CannotEncodeError(TypeError):
    """Raised for a column with values that are not numbers, text or times."""


@dataclass(frozen=True)
class Values:
    """The values of a column in one of four forms.

    Parameters
    ----------
    kind : {"number", "date", "text", "nothing"}
        "nothing" is a column whose values are all missing.
    data : ndarray
        float64 with NaN for missing numbers; seconds since 1970 for dates, by the clock on the
        wall; or strings, with None for missing text. An empty string is missing text.
    """

    kind: str
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.data)

    def take(self, rows: Any) -> Self:
        """Return the values at some places, or in a slice."""
        return type(self)(self.kind, self.data[rows])

    def is_missing(self) -> np.ndarray:
        """Whether each value is missing."""
        if self.kind == "text":
            return np.array([value is None for value in self.data.tolist()], bool)
        return np.asarray(np.isnan(self.data))

    def texts(self) -> np.ndarray:
        """Return the values as strings, with whole numbers without a decimal point."""
        if self.kind == "text":
            return self.data
        distinct, places = np.unique(self.data, return_inverse=True)
        write = _as_text if self.kind == "number" else _moment_as_text
        texts = [None if value != value else write(value) for value in distinct.tolist()]
        return _objects(texts)[places]

    def numbers(self, name: str, form: NumberForm | None = None) -> np.ndarray:
        """Return the values as float64; errors mention the column `name`.

        Text is read in the given form, or as Python reads numbers. Marks of missing values are NaN.
        """
        if self.kind in ("number", "nothing"):
            return self.data
        if self.kind == "date":
            raise ValueError(f"column {name!r} should hold numbers, but holds dates.")
        if form is None:
            wanted = f"column {name!r} should hold numbers"
            return self._parsed(lambda text: np.nan if is_mark(text) else float(text), wanted)
        return self._parsed(form.parsed, f"column {name!r} should hold numbers as {form.example}")

    def distinct_texts(self) -> list[str]:
        """Return the distinct strings of a column of text, without missing values."""
        return [text for text in dict.fromkeys(self.data.tolist()) if text is not None]

    def moments(self, name: str, form: str = "iso") -> np.ndarray:
        """Return the values as seconds since 1970; text has a form of `date_texts`."""
        if self.kind in ("date", "nothing"):
            return self.data
        if self.kind == "number":
            raise ValueError(f"column {name!r} should hold dates, but holds numbers.")
        wanted = f"column {name!r} should hold dates such as {date_texts.FORMS[form]}"
        return self._parsed(
            lambda text: np.nan if is_mark(text) else _moment(date_texts.parsed(text, form)), wanted
        )

    def _parsed(self, parse: Callable[[str], float], wanted: str) -> np.ndarray:
        known: dict[Any, float] = {}
        for text in dict.fromkeys(self.data.tolist()):
            try:
                known[text] = np.nan if text is None else parse(text)
            except ValueError:
                raise ValueError(f"{wanted}, but holds the text {text!r}.") from None
        return np.array([known[text] for text in self.data.tolist()], np.float64)


def read(column: Any) -> Values:
    """Return the values of a narwhals series, a NumPy array, or `Values`."""
    if isinstance(column, Values):
        return column
    return _of_series(column) if isinstance(column, nw.Series) else _of_array(column)


def stacked(parts: Sequence[Values]) -> Values:
    """Stack the values of a column from several blocks of rows."""
    kinds = {part.kind for part in parts} - {"nothing"}
    if len(kinds) > 1:
        return _text([value for part in parts for value in part.texts().tolist()])
    kind = kinds.pop() if kinds else "nothing"
    if kind != "text":
        return Values(kind, np.concatenate([part.data for part in parts]))
    return Values(kind, np.concatenate([part.texts() for part in parts]))


def _of_series(series: Any) -> Values:
    dtype = series.dtype
    if isinstance(dtype, nw.Decimal):  # libraries round the quotient differently
        return _of_objects(series.to_list())
    if dtype.is_numeric() or isinstance(dtype, nw.Boolean):
        return _number(_floats(series))
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return _text(series.to_list())
    if isinstance(dtype, nw.Date):
        series, dtype = series.cast(nw.Datetime("us")), nw.Datetime("us")
    if isinstance(dtype, nw.Datetime):
        if dtype.time_zone is not None:
            series = series.dt.replace_time_zone(None)
        return _seconds("date", series.dt.timestamp("us"))
    if isinstance(dtype, nw.Duration):
        return _seconds("number", series.dt.total_microseconds())
    if isinstance(dtype, nw.String):
        return _text(series.to_list())
    if isinstance(dtype, nw.List | nw.Array | nw.Struct | nw.Binary):
        raise CannotEncodeError(f"values of type {dtype}")
    return _of_objects(series.to_list())


def _of_array(array: np.ndarray) -> Values:
    kind = array.dtype.kind
    if kind in "biuf":
        return _number(array.astype(np.float64))
    if kind == "M":
        return _of_ticks("date", array.astype("datetime64[us]"))
    if kind == "m":
        return _of_ticks("number", array.astype("timedelta64[us]"))
    if kind in "UT":
        return _text(array.tolist())
    if kind == "O":
        return _of_objects(array.tolist())
    if kind == "c":
        raise ValueError("Complex data not supported")
    raise CannotEncodeError(f"values of type {array.dtype}")


def _of_objects(values: list[Any]) -> Values:
    """Return the values of Python objects of one or several types."""
    values = [None if is_missing(value) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    for kind in kinds:
        written = ("__str__", "__repr__")
        has_no_text = all(getattr(kind, name) is getattr(object, name) for name in written)
        if issubclass(kind, _NOT_ENCODED) or has_no_text:
            raise CannotEncodeError(f"values of type {kind.__name__}")
    for form, types, convert in _OBJECTS:
        if kinds and all(issubclass(kind, types) for kind in kinds):
            numbers = [np.nan if value is None else convert(value) for value in values]
            return Values(form, np.array(numbers, np.float64))
    return _text(values) if kinds else Values("nothing", np.full(len(values), np.nan))


def is_missing(value: Any) -> bool:
    """Whether an object is a missing value: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return not isinstance(value, _NOT_ENCODED) and bool(value != value)


def _seconds(kind: str, microseconds: Any) -> Values:
    data = _floats(microseconds) / 1e6
    return Values("nothing" if np.isnan(data).all() else kind, data)


def _floats(series: Any) -> np.ndarray:
    """Return a series as float64, with whole numbers beyond 2^53 rounded."""
    if series.implementation.is_pyarrow():  # its usual cast refuses numbers that it has to round
        return np.asarray(series.to_native().cast("double", safe=False).to_numpy())
    return np.asarray(series.cast(nw.Float64).to_numpy())


def _of_ticks(kind: str, array: np.ndarray) -> Values:
    data = np.where(np.isnat(array), np.nan, array.view(np.int64).astype(np.float64)) / 1e6
    return Values("nothing" if np.isnan(data).all() else kind, data)


def _number(data: np.ndarray) -> Values:
    return Values("nothing" if np.isnan(data).all() else "number", data)


def _text(values: list[Any]) -> Values:
    """Convert strings, categories or a mixture of objects to strings."""
    texts = [value or None if type(value) is str else _as_text_or_none(value) for value in values]
    data = _objects(texts)
    if all(text is None for text in texts):
        return Values("nothing", np.full(len(texts), np.nan))
    return Values("text", data)


def _as_text_or_none(value: Any) -> str | None:
    return None if is_missing(value) else _as_text(value) or None


def _as_text(value: Any) -> str:
    """Convert a value to a level of a category: 1, 1.0 and True are the same level."""
    is_whole = isinstance(value, Integral | np.bool_) or (
        isinstance(value, float | np.floating) and value.is_integer()
    )
    return str(int(value)) if is_whole else str(value)


def _moment_as_text(seconds: float) -> str:
    return str(np.datetime64(round(seconds * 1e6), "us"))


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _moment(value: Any) -> float:
    """Return seconds since 1970 in local time, without the time zone."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return _whole_microseconds(value.replace(tzinfo=None) - _EPOCH)


def _duration(value: Any) -> float:
    value = value.astype("timedelta64[us]").item() if isinstance(value, np.timedelta64) else value
    return _whole_microseconds(value)


def _whole_microseconds(duration: timedelta) -> float:
    return (duration // _MICROSECOND) / 1e6


def _time_of_day(value: time) -> float:
    return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6


_OBJECTS: tuple[tuple[str, Any, Callable[[Any], float]], ...] = (
    ("number", (Real, Decimal, np.bool_), float),
    ("date", (date, np.datetime64), _moment),
    ("number", (timedelta, np.timedelta64), _duration),
    ("number", (time,), _time_of_day),
)
