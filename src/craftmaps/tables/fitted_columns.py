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
    _check_size(table)
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
            elif is_key(name, values):
                keys.append(name)
    _complain(refused, keys, undecided)
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


def _check_size(table: Table) -> None:
    n_rows, n_columns = table.shape
    if not n_columns:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required."
        )
    if not n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is "
            f"required."
        )


def _complain(refused: list[str], keys: list[str], undecided: list[str]) -> None:
    """Raise an error about columns that cannot be encoded, and warn about doubtful ones."""
    if refused:
        raise TypeError(
            f"{'; '.join(refused)}: such a column cannot be encoded; drop it, as in "
            f"TableEncoder(columns={{name: 'drop'}}), or make columns of numbers or text from it."
        )
    if keys:
        listed = ", ".join(map(repr, keys))
        warn(
            f"no two rows have the same value of {listed}, as if it numbered or named the rows; "
            f"drop it, as in TableEncoder(columns={{{keys[0]!r}: 'drop'}}), unless it says "
            f"something about new rows."
        )
    if undecided:
        listed = ", ".join(map(repr, undecided))
        warn(
            f"the dates of {listed} do not tell whether the day or the month comes first, so they "
            f"are encoded as text; say TableEncoder(columns={{{undecided[0]!r}: 'dayfirst'}}), or "
            f"'date' if the month is first."
        )
