"""Find the kind of a column, and whether it looks like a key."""

import re
from typing import Any

import numpy as np

from craftmaps.tables import date_texts, number_texts
from craftmaps.tables.categories import CategoryColumn
from craftmaps.tables.dates import DateColumn
from craftmaps.tables.numbers import NumberColumn
from craftmaps.tables.texts import TextColumn
from craftmaps.tables.values import Values

KINDS = ("number", "category", "text", "date", "dayfirst", "drop")
Column = NumberColumn | CategoryColumn | TextColumn | DateColumn
_KEY_NAME = re.compile(r"(^|[_\s.])(id|key|uuid|guid|index|rowid|row)$|^unnamed: 0$", re.I)
_LOOKED_AT = 500  # distinct texts at either end that are searched for an outsider
_MOST_OUTSIDERS = 0.1
_MIN_ROWS_OF_KEYS = 100  # with fewer rows, no column counts as a key


def found_kind(values: Values, max_levels: int) -> str:
    """Return the kind of a column, judged by its values."""
    if values.kind != "text":
        return values.kind
    distinct = values.distinct_texts()
    if date_texts.found_form(distinct) in date_texts.FORMS:
        return "date"
    if not all(map(number_texts.is_plain, distinct)) and number_texts.found_form(distinct):
        return "number"
    return "category" if len(distinct) <= max_levels else "text"


def has_undecided_dates(values: Values) -> bool:
    """Whether all values are dates such as 05/06/2024, whose day and month may be swapped."""
    if values.kind != "text":
        return False
    return date_texts.found_form(values.distinct_texts()) == date_texts.UNDECIDED


def looks_numeric(values: Values) -> bool:
    """Whether the values of a column of text are plain numbers, which may have been kept so."""
    return values.kind == "text" and number_texts.found_form(values.distinct_texts()) is not None


def outsider(values: Values) -> str | None:
    """Return a text that keeps a column from being numbers or dates, if nearly all others are."""
    texts = values.distinct_texts() if values.kind == "text" else []
    texts = texts[:_LOOKED_AT] + texts[_LOOKED_AT:][-_LOOKED_AT:]  # totals come last
    for found_form in (number_texts.found_form, date_texts.found_form):
        others = [text for text in texts if found_form([text]) is None]
        if 0 < len(others) <= _MOST_OUTSIDERS * len(texts):
            rest = set(texts) - set(others)
            return others[0] if found_form(rest) is not None else None
    return None


def is_constant(values: Values) -> bool:
    """Whether all rows have the same value, where a missing value differs from all others."""
    data, missing = values.data, values.is_missing()
    return not missing.any() and bool((data == data[0]).all())


def fitted_column(name: str, values: Values, kind: str, scaling: str) -> Column:
    """Fit the encoding for a kind of column."""
    if kind == "number":
        return NumberColumn.fit(name, values, scaling)
    if kind in ("date", "dayfirst"):
        return DateColumn.fit(name, values, "dayfirst" if kind == "dayfirst" else None)
    return CategoryColumn.fit(name, values) if kind == "category" else TextColumn.fit(name, values)


def is_key(name: str, values: Values) -> bool:
    """Whether a column looks like row numbers or keys, with a different value in each row."""
    if len(values) < _MIN_ROWS_OF_KEYS or values.kind not in ("number", "text"):
        return False
    if values.kind == "text":
        texts = values.data.tolist()
        return len({*texts}) == len(texts) and all(map(_is_code, texts))
    data: Any = values.data
    if np.isnan(data).any() or (data != np.floor(data)).any() or len(np.unique(data)) < len(data):
        return False
    steps = np.diff(data)
    is_dense = data.max() - data.min() < 2 * len(data)
    return bool((steps > 0).all()) or bool(is_dense) or _KEY_NAME.search(name) is not None


def _is_code(text: str) -> bool:
    """Whether a text is one word with a digit in it, like a key."""
    return any(map(str.isdigit, text)) and not any(map(str.isspace, text))
