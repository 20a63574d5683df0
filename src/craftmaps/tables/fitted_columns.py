"""What the columns of a table become: one fitted encoding for each column that is kept."""

from collections.abc import Mapping
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
)
from craftmaps.tables.table import Table
from craftmaps.tables.values import CannotEncodeError
from craftmaps.validation import warn


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
    numeric: dict[str, str] = {}
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
            columns.append(fitted_column(name, values, kind, scaling))
            if name in given or kind == "date":
                continue
            if has_undecided_dates(values):
                undecided.append(name)
            elif kind == "text" and looks_numeric(values):
                numeric[name] = values.distinct_texts()[0]
            elif is_key(name, values):
                keys.append(name)
    _complain(refused, keys, undecided, numeric)
    if not columns:
        raise ValueError(
            f"no column of the table tells rows apart (n_samples = {table.n_rows}): "
            + ", ".join(f"{name!r} is {reason}" for name, reason in list(dropped.items())[:5])
        )
    return columns, dropped


def are_equal(one: Any, other: Any) -> bool:
    """Whether two columns, or parts of them, hold the same values."""
    if not is_dataclass(one):
        return bool(np.array_equal(one, other))
    return type(one) is type(other) and all(
        are_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
    )


def _complain(
    refused: list[str], keys: list[str], undecided: list[str], numeric: dict[str, str]
) -> None:
    """Raise an error about columns that cannot be encoded, and warn about doubtful ones."""
    if refused:
        raise TypeError(
            f"{'; '.join(refused)}: such a column cannot be encoded; drop it, as in "
            f"TableEncoder(columns={{name: 'drop'}}), or make columns of numbers or text from it."
        )
    if keys:
        listed = ", ".join(map(repr, keys))
        warn(
            f"no two rows have the same value of {listed}, which looks like a row number or an "
            f"identifier; drop it with TableEncoder(columns={{{keys[0]!r}: 'drop'}}), or --drop in "
            f"a terminal, unless it says something about new rows."
        )
    if undecided:
        listed = ", ".join(map(repr, undecided))
        warn(
            f"the dates of {listed} do not show whether the day or the month comes first, so they "
            f"are encoded as text; use TableEncoder(columns={{{undecided[0]!r}: 'dayfirst'}}), or "
            f"'date' if the month comes first (--as {undecided[0]}=dayfirst in a terminal)."
        )
    for name, example in numeric.items():
        warn(
            f"the values of {name!r} look like numbers, such as {example!r}, but are encoded as "
            f"text; convert them to numbers, for instance with pandas.read_csv(..., decimal=',') "
            f"or --decimal , in a terminal, or keep them with "
            f"TableEncoder(columns={{{name!r}: 'text'}})."
        )
