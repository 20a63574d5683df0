"""A column with few different values, which gets one encoded column for each value."""

from collections import Counter
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, ClassVar, Self

import numpy as np

from craftmaps.storage.expect import expect
from craftmaps.storage.packing import storable
from craftmaps.tables.values import Values

MISSING = ""  # the level of missing values, and their value in the input of an ONNX model
_MOST_LEVELS = 256
_SHOWN_WIDTH = 40  # characters of a level that a summary shows


@storable
@dataclass(frozen=True)
class CategoryColumn:
    """A column of 0 and 1 for each level; an unknown level is 0 in all columns.

    Two rows with different levels have the distance sqrt(2), like two standardized numbers on
    average. Columns are not divided by their standard deviations, because rare levels would then be
    far from all others: a level of one row in 10,000 would have the distance 100.

    Parameters
    ----------
    name : str
    levels : list of str
        The 256 most frequent levels in `fit`, sorted; the empty string is for missing values.
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
        """Describe the encoding of the column."""
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
        """Return the input of an ONNX model: strings that are empty if text is missing."""
        return given_texts(values)

    def onnx(self, g: Any, x: str) -> list[str]:
        """Add the encoded columns to an ONNX graph."""
        one_hot = g.add("OneHotEncoder", x, domain="ai.onnx.ml", cats_strings=self.levels, zeros=1)
        return [g.reshape(one_hot, -1, len(self.levels))]

    def _check_stored(self) -> None:
        expect(0 < len(self.levels) <= _MOST_LEVELS, "some levels")
        expect(len({*self.levels}) == len(self.levels), "different levels")


def given_texts(values: Values) -> np.ndarray:
    """Return strings that are empty for missing values."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = _levels(values)
    return texts


def _levels(values: Values) -> list[str]:
    if values.kind == "nothing":
        return [MISSING] * len(values)
    return [MISSING if text is None else text for text in values.texts().tolist()]
