"""A column with few different values, which gets one encoded column for each value."""

from collections import Counter
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, ClassVar, Self

import numpy as np

from craftmaps.storage.expect import expect
from craftmaps.storage.packing import storable
from craftmaps.tables.values import Values

MISSING = ""  # the level of missing values, and what an ONNX model is given for them
_MOST_LEVELS = 256
_SHOWN_WIDTH = 40  # characters of a level in a summary, which is one line


@storable
@dataclass(frozen=True)
class CategoryColumn:
    """1 in the column of the level of a row and 0 in the others; an unknown level is 0 in all.

    Two rows of different levels are sqrt(2) apart, as two standardized numbers are on average.
    Columns are not divided by their standard deviations, which would set rare levels far apart
    from all others: a level that one row in 10,000 has would be 100 away.

    Parameters
    ----------
    name : str
    levels : list of str
        The most frequent 256 of fit, sorted; the empty string is the level of missing values.
    """

    name: str
    levels: list[str]
    kind: ClassVar[str] = "category"
    onnx_type: ClassVar[str] = "string"

    @classmethod
    def fit(cls, name: str, values: Values) -> Self:
        counts = Counter(_levels(values))
        frequent = sorted(counts, key=lambda level: (-counts[level], level))[:_MOST_LEVELS]
        return cls(name, sorted(frequent))

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        return [f"{self.name}={level}" for level in self.levels]

    @property
    def described(self) -> str:
        """What the column became, in words."""
        shown = ", ".join(shorten(level, _SHOWN_WIDTH) or "missing" for level in self.levels[:5])
        more = ", ..." if len(self.levels) > 5 else ""
        return f"{len(self.levels)} levels: {shown}{more}"

    def fill(self, values: Values, out: np.ndarray) -> None:
        """Write the encoded columns of some rows."""
        place = {level: j for j, level in enumerate(self.levels)}
        columns = np.array([place.get(level, -1) for level in _levels(values)], np.int64)
        rows = np.flatnonzero(columns >= 0)
        out[:] = 0
        out[rows, columns[rows]] = 1

    def given(self, values: Values) -> np.ndarray:
        """What an ONNX model is given for a column: an empty string stands for missing text."""
        return given_texts(values)

    def onnx(self, g: Any, x: str) -> list[str]:
        """Add the encoded columns to an ONNX graph."""
        one_hot = g.add("OneHotEncoder", x, domain="ai.onnx.ml", cats_strings=self.levels, zeros=1)
        return [g.reshape(one_hot, -1, len(self.levels))]

    def _check_stored(self) -> None:
        expect(0 < len(self.levels) <= _MOST_LEVELS, "some levels")
        expect(len({*self.levels}) == len(self.levels), "different levels")


def given_texts(values: Values) -> np.ndarray:
    """Strings in which an empty one stands for a missing value."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = _levels(values)
    return texts


def _levels(values: Values) -> list[str]:
    if values.kind == "nothing":
        return [MISSING] * len(values)
    return [MISSING if text is None else text for text in values.texts().tolist()]
