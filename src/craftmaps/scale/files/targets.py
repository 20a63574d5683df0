"""Convert targets in text files to numbers, or keep them as text.

Labels must not lose information. "007" and "0x1F" are codes, and whole numbers of more than 64 bits
would be rounded, so columns that contain such values stay text. Whole numbers become floats only if
other values of the column have a fraction and no whole number is rounded.
"""

from typing import Any

import numpy as np

from craftmaps.scale.files.column_types import MISSING, plain
from craftmaps.tables.number_texts import MARKS

_WHOLE = r"^-?(0|[1-9][0-9]*)$"
_DECIMAL = r"^-?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|Inf|INF)$"
MAX_EXACT_FLOAT = 2**53  # all whole numbers up to this are exact floats
MAX_CERTAIN_DIGITS = 18  # numbers with up to 18 digits fit into 64 bits
_FEW_LABELS = 10  # among so few different numbers, a mark such as "unknown" may be a label


def kind_of(texts: Any) -> str:
    """Return whether an Arrow array of text contains "whole" or "decimal" numbers, or "text".

    Marks such as "?" among more than 10 different numbers are missing numbers.
    """
    import pyarrow.compute as pc

    present = texts.filter(pc.invert(_is_in(texts, MISSING)))
    kind = _kind_of_present(pc.utf8_trim_whitespace(present))
    if kind == "text":
        present = present.filter(pc.invert(_is_in(pc.utf8_lower(present), MARKS)))
        if pc.count_distinct(present).as_py() > _FEW_LABELS:
            return _kind_of_present(pc.utf8_trim_whitespace(present))
    return kind


def are_quantities(texts: Any, kind: str) -> bool:
    """Whether an Arrow array of text holds so many numbers that marks among them are missing."""
    import pyarrow.compute as pc

    return kind != "text" and pc.count_distinct(texts).as_py() > _FEW_LABELS


def missing_targets(texts: Any, marks: bool) -> np.ndarray:
    """Return which texts are missing, or, with `marks`, mark missing numbers."""
    import pyarrow.compute as pc

    missing = _is_in(texts, MISSING)
    return plain(pc.or_(missing, _is_in(pc.utf8_lower(texts), MARKS)) if marks else missing)


def _kind_of_present(trimmed: Any) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(trimmed):
        return "decimal"
    whole = pc.match_substring_regex(trimmed, _WHOLE)
    if pc.all(whole).as_py():
        try:
            trimmed.cast(pa.int64())
        except pa.ArrowInvalid:
            return "text"
        return "whole"
    return "decimal" if pc.all(pc.match_substring_regex(trimmed, _DECIMAL)).as_py() else "text"


def targets_of(texts: Any, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Convert an Arrow array of text to targets of a kind; also return which rows failed.

    Whole numbers become floats in an array that also contains fractions.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "text":
        y = np.asarray(texts.to_numpy(zero_copy_only=False)).astype(str)
        return y, y == ""
    trimmed = pc.utf8_trim_whitespace(texts)
    whole, decimal = (pc.match_substring_regex(trimmed, one) for one in (_WHOLE, _DECIMAL))
    if kind == "whole" and pc.all(pc.equal(whole, decimal)).as_py():
        y = pc.if_else(whole, trimmed, "0")
        try:
            return plain(y.cast(pa.int64())), plain(pc.invert(whole))
        except pa.ArrowInvalid:  # a number needs more than 64 bits
            fits = pc.less_equal(pc.utf8_length(y), MAX_CERTAIN_DIGITS)
            wrong = pc.invert(pc.and_(whole, fits))
            return plain(pc.if_else(fits, y, "0").cast(pa.int64())), plain(wrong)
    y = plain(pc.if_else(decimal, trimmed, "nan").cast(pa.float64()))
    rounded = plain(whole) & (np.abs(y) >= MAX_EXACT_FLOAT)
    return y, ~plain(decimal) | (rounded if kind == "whole" else False)


def _is_in(texts: Any, some: tuple[str, ...]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(pc.utf8_trim_whitespace(texts), pa.array(some))
