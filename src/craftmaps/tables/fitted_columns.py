"""Fit an encoding to each column of a table."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from craftmaps.tables.kinds import (
    Column,
    fitted_column,
    found_kind,
    has_undecided_dates,
    is_constant,
    is_key,
    looks_numeric,
    outsider,
)
from craftmaps.tables.numbers import NumberColumn
from craftmaps.tables.table import Table
from craftmaps.tables.values import CannotEncodeError, Values
from craftmaps.validation import warn

_DOUBTS = {
    "key": "no two rows have the same value of {listed}, which looks like a row number or an "
    "identifier",
    "order": "the dates of {listed} do not show in what order day, month and year are, so they are "
    "encoded as text",
    "number": "the values of {listed} look like numbers, such as {example!r}, but are encoded as "
    "text",
    "mixed": "nearly all values of {listed} are numbers or dates, but not {example!r}, so all are "
    "encoded as text",
}
_IN_PYTHON = {  # advice for each doubt
    "key": "drop it with TableEncoder(columns={{{name}: 'drop'}}), unless it says something "
    "about new rows",
    "order": "use TableEncoder(columns={{{name}: 'dayfirst'}}), or 'date' if the month comes first",
    "number": "use TableEncoder(columns={{{name}: 'number'}}), or 'text' or 'category' to keep "
    "them",
    "mixed": "replace it by a missing value, or use TableEncoder(columns={{{name}: 'text'}}) to "
    "keep the text",
}


class DoubtfulColumnWarning(UserWarning):
    """Warning about columns that may need another encoding.

    Attributes
    ----------
    names : list of str
    doubt : {"key", "order", "number", "mixed"}
        What the columns look like: keys of rows, dates in an unknown order, numbers as text, or
        numbers or dates with other text among them.
    example : str or None
        One of the values, or the other text.
    """

    def __init__(self, names: list[str], doubt: str, example: str | None = None) -> None:
        super().__init__(names, doubt, example)
        self.names, self.doubt, self.example = names, doubt, example

    def worded(self, advice: Mapping[str, str], quoted: Callable[[str], str] = repr) -> str:
        """Return the warning as one sentence, with the advice for its doubt.

        `quoted` writes the name of a column in the advice.
        """
        listed = ", ".join(map(repr, self.names))
        doubt = _DOUBTS[self.doubt].format(listed=listed, example=self.example)
        return f"{doubt}; {advice[self.doubt].format(name=quoted(self.names[0]))}."

    def __str__(self) -> str:
        return self.worded(_IN_PYTHON)


def fitted_columns(
    table: Table, given: Mapping[str, str], scaling: str, max_levels: int
) -> tuple[list[Column], dict[str, str]]:
    """Fit the encodings of the columns of a table.

    Parameters
    ----------
    table : Table
    given : mapping of names to kinds
        Kinds of some columns; the other kinds are found.
    scaling, max_levels
        As in `TableEncoder`.

    Returns
    -------
    columns : list
        The encoded columns, in the order of the table.
    dropped : dict
        Names of the columns that are left out, with the reason.
    """
    table.check_size()
    for name in given:
        if name not in table.names:
            raise ValueError(
                f"columns names {name!r}, which the table does not have; it has "
                f"{', '.join(table.names[:20])}."
            )
    columns: list[Column] = []
    dropped: dict[str, str] = {}
    refused: list[str] = []
    keys: list[str] = []
    undecided: list[str] = []
    examples: dict[tuple[str, str], str] = {}
    for name in table.names:
        if given.get(name) == "drop":
            dropped[name] = "dropped on request"
            continue
        try:
            values = table.read(name)
        except CannotEncodeError as error:
            refused.append(str(error))
            continue
        if values.kind == "nothing":
            dropped[name] = "missing in all rows"
        elif is_constant(values):
            dropped[name] = "the same in all rows"
        else:
            kind = given.get(name) or found_kind(values, max_levels)
            column = fitted_column(name, values, kind, scaling)
            columns.append(column)
            if name in given or kind == "date":
                continue
            if isinstance(column, NumberColumn):
                values = Values("number", column.given(values))
            if has_undecided_dates(values):
                undecided.append(name)
            elif kind == "text" and looks_numeric(values):
                examples[name, "number"] = values.distinct_texts()[0]
            elif kind == "text" and (other := outsider(values)) is not None:
                examples[name, "mixed"] = other
            elif is_key(name, values):
                keys.append(name)
    _complain(refused, keys, undecided, examples)
    if not columns:
        raise ValueError(
            f"no column of the table tells rows apart (n_samples = {table.n_rows}): "
            + ", ".join(f"{name!r} is {reason}" for name, reason in list(dropped.items())[:5])
        )
    return columns, dropped


def are_equal(one: Any, other: Any) -> bool:
    """Whether two columns, or parts of them, contain the same values."""
    if not is_dataclass(one):
        return bool(np.array_equal(one, other))
    return type(one) is type(other) and all(
        are_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
    )


def _complain(
    refused: list[str],
    keys: list[str],
    undecided: list[str],
    examples: dict[tuple[str, str], str],
) -> None:
    """Raise an error about columns that cannot be encoded, and warn about doubtful ones."""
    if refused:
        raise TypeError(
            f"{'; '.join(refused)}: such a column cannot be encoded; drop it, as in "
            f"TableEncoder(columns={{name: 'drop'}}), or make columns of numbers or text from it."
        )
    if keys:
        warn(DoubtfulColumnWarning(keys, "key"))
    if undecided:
        warn(DoubtfulColumnWarning(undecided, "order"))
    for (name, doubt), example in examples.items():
        warn(DoubtfulColumnWarning([name], doubt, example))
