"""A column of numbers, encoded as scaled numbers and an indicator of missing ones."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from craftmaps.storage.expect import expect
from craftmaps.storage.packing import storable
from craftmaps.tables import number_texts
from craftmaps.tables.number_texts import NumberForm
from craftmaps.tables.scaling import LinearScale, QuantileCurve, Unscaled, scale_for
from craftmaps.tables.values import Values


@storable
@dataclass(frozen=True)
class NumberColumn:
    """A column of scaled numbers, and a second column with 1 for missing numbers.

    Parameters
    ----------
    name : str
    scale : LinearScale, QuantileCurve, Unscaled or None
        None if all numbers in `fit` were equal, so that only the indicator is left.
    median : float
        Replaces missing numbers.
    indicator : bool
        Whether numbers were missing in `fit`.
    form : NumberForm or None
        How numbers are written, if they were text in `fit` that Python does not read as numbers.
    """

    name: str
    scale: LinearScale | QuantileCurve | Unscaled | None
    median: float
    indicator: bool
    form: NumberForm | None = None
    kind: ClassVar[str] = "number"
    onnx_type: ClassVar[str] = "double"

    @classmethod
    def fit(cls, name: str, values: Values, scaling: str) -> Self:
        form = _found_form(values)
        x = finite(name, values.numbers(name, form))
        present = x[~np.isnan(x)]
        if not len(present):
            raise ValueError(
                f"column {name!r} should hold numbers, but holds marks of missing ones."
            )
        scale = scale_for(present, scaling) if present.min() < present.max() else None
        return cls(name, scale, float(np.median(present)), len(present) < len(x), form)

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        numbers = [] if self.scale is None else [self.name]
        return numbers + ([missing_name(self.name)] if self.indicator else [])

    @property
    def described(self) -> str:
        """Describe the encoding of the column."""
        parts = [] if self.scale is None else [self.scale.kind, f"{self.median:.6g} if missing"]
        parts += [f"read as {self.form.example}"] if self.form else []
        return ", ".join(parts + ["indicator of missing"] * self.indicator)

    def fill(self, values: Values, out: np.ndarray) -> None:
        """Write the encoded columns of some rows."""
        x = finite(self.name, values.numbers(self.name, self.form))
        missing = np.isnan(x)
        if self.scale is not None:
            out[:, 0] = self.scale(np.where(missing, self.median, x))
        if self.indicator:
            out[:, -1] = missing

    def given(self, values: Values) -> np.ndarray:
        """Return the input of an ONNX model: numbers, NaN if missing."""
        return values.numbers(self.name, self.form)

    def onnx(self, g: Any, x: str) -> list[str]:
        """Add the encoded columns to an ONNX graph."""
        missing = g.add("IsNaN", x)
        columns = []
        if self.scale is not None:
            filled = g.add("Where", missing, np.full((1, 1), self.median), x)
            columns.append(g.single(self.scale.onnx(g, filled)))
        return [*columns, g.single(missing)] if self.indicator else columns

    def _check_stored(self) -> None:
        expect(bool(np.isfinite(self.median)), "a finite median")


def _found_form(values: Values) -> NumberForm | None:
    """The form of the texts of a column; None if Python reads them as numbers."""
    if values.kind != "text":
        return None
    texts = values.distinct_texts()
    if all(number_texts.is_plain(text) or number_texts.is_mark(text) for text in texts):
        return None
    return number_texts.found_form(texts)


def missing_name(name: str) -> str:
    """Return the name of the encoded column that marks missing values."""
    return f"{name} is missing"


def finite(name: str, x: np.ndarray) -> np.ndarray:
    """Return the numbers, or raise ValueError if some are infinite."""
    if np.isinf(x).any():
        raise ValueError(
            f"column {name!r} contains infinity; replace it by a number, or by a missing value."
        )
    return x
