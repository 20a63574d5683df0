"""Convert columns of text to numbers, booleans or dates if all values allow it.

A column of a table has the same type in all blocks of all files. `wider` finds the type chunk by
chunk, and `converted` applies it. Values must not lose information: "007", "0x1F" and whole numbers
of more than 64 bits are codes, so columns that contain them stay text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from craftmaps.scale.files.columns import arrow
from craftmaps.tables.number_texts import MARKS

MISSING = (
    *("", "NA", "N/A", "#N/A", "#NA", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None"),
)
GIVEN_TYPES = ("number", "text", "date")
_HEAD_ROWS = 100
_CODE = r"^\s*[+-]?(0[0-9xX]|[0-9]{20})"
_ZONE = r"(:[0-9]{2}(?:\.[0-9]+)?) ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
_FRACTIONS_BEYOND_NANOSECONDS = r"(\.[0-9]{9})[0-9]+"


def ladders() -> tuple[tuple[Any, ...], ...]:
    """Return ladders of Arrow types; each type of a ladder takes all values of earlier types."""
    pa = arrow()
    return (
        (pa.int64(), pa.float64()),
        (pa.bool_(),),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("ns")),
    )


def wider(texts: Any, kind: Any, decimal: str = ".") -> Any:
    """Return the type for the values of an Arrow array of text and all values of type `kind`.

    If all values are missing, the type is null.
    """
    pa = arrow()
    if kind == pa.string():
        return kind
    for ladder in ladders():
        if kind in ladder:
            rungs: Sequence[Any] = ladder[ladder.index(kind) :]
            break
    else:
        rungs = [pa.null(), *(rung for ladder in ladders() for rung in ladder)]
    head = _known(texts).drop_null()[:_HEAD_ROWS]  # enough to exclude most types
    likely = (rung for rung in rungs if fits(head, rung, decimal))
    return next((rung for rung in likely if fits(texts, rung, decimal)), pa.string())


def fits(texts: Any, kind: Any, decimal: str = ".") -> bool:
    """Whether all values of an Arrow array of text have a type or are missing."""
    return _cast(texts, kind, decimal) is not None


def converted(
    texts: Any, kind: Any, decimal: str = ".", *, codes_count: bool = False
) -> tuple[Any, np.ndarray | None]:
    """Convert an Arrow array of text; also return which rows failed, or None if none did.

    Missing values become null. Text does not change. With `codes_count`, "007" is the number 7.
    """
    pa = arrow()
    import pyarrow.compute as pc

    column = _cast(texts, kind, decimal, codes_count)
    if column is not None:
        return column, None
    distinct = pc.unique(texts)
    wrong = [
        value for value in distinct if _cast(pa.array([value]), kind, decimal, codes_count) is None
    ]
    bad = pc.is_in(texts, pa.array(wrong))
    return _cast(pc.if_else(bad, "", texts), kind, decimal, codes_count), plain(bad)


def numbers(texts: Any, decimal: str = ".") -> tuple[Any, np.ndarray | None]:
    """Convert text to float64 like `converted`, where "007" is the number 7."""
    return converted(texts, arrow().float64(), decimal, codes_count=True)


def share_of_numbers(texts: Any, decimal: str = ".") -> float:
    """Return the share of finite numbers in an Arrow array of text, 1 if it is empty."""
    if not len(texts):
        return 1.0
    column, _ = converted(texts, arrow().float64(), decimal)
    return float(np.mean(np.isfinite(plain(column.fill_null(np.nan)))))


def as_given(texts: Any, name: str, decimal: str = ".") -> tuple[Any, np.ndarray | None]:
    """Convert text like `converted` to a "number", a "date" or "text".

    Booleans become numbers, and marks such as "?" among numbers and dates become missing values.
    Dates and times lose their time zones.
    """
    pa = arrow()
    kind = given_type(name)
    if name != "text":
        texts = _unmarked(texts)
    column, wrong = converted(texts, kind, decimal, codes_count=True)
    if wrong is not None and name == "number" and fits(texts, pa.bool_()):
        return converted(texts, pa.bool_())[0].cast(kind), None
    return column, wrong


def given_type(name: str) -> Any:
    """Return the Arrow type for "number", "date" or "text"."""
    pa = arrow()
    return {"number": pa.float64(), "date": pa.timestamp("us"), "text": pa.string()}[name]


def with_point(texts: Any, decimal: str) -> Any:
    """Replace decimal commas by points if `decimal` is a comma; points are then not allowed."""
    import pyarrow.compute as pc

    if decimal == ".":
        return texts
    return pc.replace_substring(pc.replace_substring(texts, ".", "_"), decimal, ".")


def _cast(texts: Any, kind: Any, decimal: str = ".", codes_count: bool = False) -> Any:
    """Convert a column to a type, or return None if a value does not fit."""
    pa = arrow()
    import pyarrow.compute as pc

    known = _known(texts)
    if kind == pa.string():
        return known
    if kind == pa.null():
        trimmed = _known(pc.utf8_trim_whitespace(known))
        return pa.nulls(len(texts)) if trimmed.null_count == len(texts) else None
    if kind in ladders()[0]:
        known = with_point(known, decimal)
        if not codes_count and pc.any(pc.match_substring_regex(known, _CODE)).as_py():
            return None
    if kind == pa.bool_() and pc.any(pc.is_in(known, pa.array(["0", "1"]))).as_py():
        return None  # 0 and 1 are numbers, and not false and true
    try:
        return known.cast(kind)
    except pa.ArrowInvalid:
        known = _known(pc.utf8_trim_whitespace(known))
    if pa.types.is_timestamp(kind):
        known = pc.replace_substring_regex(known, _ZONE, r"\1")
        known = pc.replace_substring_regex(known, _FRACTIONS_BEYOND_NANOSECONDS, r"\1")
    try:
        return known.cast(kind)
    except pa.ArrowInvalid:
        return None


def _unmarked(texts: Any) -> Any:
    """The texts, empty where a mark among numbers or dates stands for a missing value."""
    import pyarrow.compute as pc

    marks = arrow().array(MARKS)
    is_mark = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(texts)), marks)
    return pc.if_else(is_mark, "", texts)


def _known(texts: Any) -> Any:
    """Return the texts, with null for texts that stand for missing values."""
    import pyarrow.compute as pc

    return pc.if_else(pc.is_in(texts, arrow().array(MISSING)), None, texts)


def plain(array: Any) -> np.ndarray:
    """Convert an Arrow array to a NumPy array."""
    return np.asarray(array.to_numpy(zero_copy_only=False))
