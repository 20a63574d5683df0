"""A column of dates and times, encoded as a number and as places on cycles."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from craftmaps.storage.expect import expect
from craftmaps.storage.packing import storable
from craftmaps.tables import date_texts
from craftmaps.tables.numbers import missing_name
from craftmaps.tables.scaling import LinearScale
from craftmaps.tables.values import Values

_DAY = 86_400.0
_CYCLES = {"day": _DAY, "week": 7 * _DAY, "year": 365.2425 * _DAY}
_ORDERS = ("dayfirst", "monthfirst")
_LEAST_SHARE_OF_CYCLE = 0.5  # a cycle is left out if rows span less, as the number says it all


@storable
@dataclass(frozen=True)
class DateColumn:
    """A standardized moment in time, with the sine and cosine of the time of day, week and year.

    Sine and cosine are points on a circle of radius 1, so two random moments have the distance
    sqrt(2) on average, like two standardized numbers. A cycle is left out if the rows of `fit` are
    all at one place on it, or span less than half of it. Months have no time of week.

    Parameters
    ----------
    name : str
    scale : LinearScale or None
        None if all moments in `fit` were equal, so that only the indicator is left.
    median : float
        Replaces missing moments, in seconds since 1970.
    indicator : bool
        Whether moments were missing in `fit`.
    cycles : list of str
        Some of "day", "week" and "year".
    form : {"iso", "written", "dayfirst", "monthfirst"}
        The form of dates that are text; see `craftmaps.tables.date_texts`.
    """

    name: str
    scale: LinearScale | None
    median: float
    indicator: bool
    cycles: list[str]
    form: str = "iso"
    kind: ClassVar[str] = "date"
    onnx_type: ClassVar[str] = "double"

    @classmethod
    def fit(cls, name: str, values: Values, form: str | None = None) -> Self:
        """Learn the encoding of moments, or of texts in a form; None finds the form."""
        form = form or _found_form(values)
        x = values.moments(name, form)
        present = x[~np.isnan(x)]
        median, indicator = float(np.median(present)), len(present) < len(x)
        span = float(present.max() - present.min())
        if not span > 0:
            return cls(name, None, median, indicator, [], form)
        moments = present.astype("datetime64[s]")
        are_months = bool((moments == moments.astype("datetime64[M]")).all())
        cycles = [
            cycle
            for cycle, seconds in _CYCLES.items()
            if span >= _LEAST_SHARE_OF_CYCLE * seconds
            and len(np.unique(present % seconds)) > 1
            and not (are_months and cycle == "week")
        ]
        return cls(name, LinearScale.standard(present), median, indicator, cycles, form)

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        sides = [f"{self.name} {side} of {c}" for c in self.cycles for side in ("sine", "cosine")]
        number = [] if self.scale is None else [self.name, *sides]
        return number + ([missing_name(self.name)] if self.indicator else [])

    @property
    def described(self) -> str:
        """Describe the encoding of the column."""
        parts = [] if self.scale is None else ["standardized"]
        day = np.datetime64(round(self.median), "s").astype("datetime64[D]")
        parts += [f"{day} if missing"] * (self.form != "iso")
        parts += [f"time of {cycle}" for cycle in self.cycles]
        parts += [f"read as {date_texts.FORMS[self.form]}"] * (self.form in _ORDERS)
        return ", ".join(parts + ["indicator of missing"] * self.indicator)

    def fill(self, values: Values, out: np.ndarray) -> None:
        """Write the encoded columns of some rows."""
        x = values.moments(self.name, self.form)
        missing = np.isnan(x)
        if self.scale is not None:
            x = np.where(missing, self.median, x)
            out[:, 0] = self.scale(x)
            for i, cycle in enumerate(self.cycles):
                seconds = _CYCLES[cycle]
                angle = (x / seconds - np.floor(x / seconds)) * (2 * np.pi)
                out[:, 2 * i + 1], out[:, 2 * i + 2] = np.sin(angle), np.cos(angle)
        if self.indicator:
            out[:, -1] = missing

    def given(self, values: Values) -> np.ndarray:
        """Return the input of an ONNX model: seconds since 1970, NaN if missing."""
        return values.moments(self.name, self.form)

    def onnx(self, g: Any, x: str) -> list[str]:
        """Add the encoded columns to an ONNX graph."""
        missing, columns = g.add("IsNaN", x), []
        if self.scale is not None:
            x = g.add("Where", missing, np.full((1, 1), self.median), x)
            columns.append(g.single(self.scale.onnx(g, x)))
            for cycle in self.cycles:
                turns = g.add("Div", x, np.float64(_CYCLES[cycle]))
                part = g.add("Sub", turns, g.add("Floor", turns))
                angle = g.single(g.add("Mul", part, np.float64(2 * np.pi)))
                columns += [g.add("Sin", angle), g.add("Cos", angle)]
        return [*columns, g.single(missing)] if self.indicator else columns

    def _check_stored(self) -> None:
        expect(bool(np.isfinite(self.median)), "a finite median")
        expect(self.form in date_texts.FORMS, "a known form of dates")
        expect({*self.cycles} <= {*_CYCLES}, "known cycles")
        expect(len({*self.cycles}) == len(self.cycles), "different cycles")
        expect(self.scale is not None or not self.cycles, "a scale beside cycles")


def _found_form(values: Values) -> str:
    """Return the form of the texts of a column; the month comes first if nothing shows it."""
    if values.kind != "text":
        return "iso"
    form = date_texts.found_form(values.distinct_texts())
    return "monthfirst" if form == date_texts.UNDECIDED else form or "iso"
