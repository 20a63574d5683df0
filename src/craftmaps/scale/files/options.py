"""Options for reading files that all formats share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_MOSTLY_NUMBERS = 0.5  # with a larger share of numbers, other values of a column make bad rows


@dataclass(frozen=True)
class ReadOptions:
    """The checked arguments of `craftmaps.scale.read`.

    `skip` is on_bad_rows="skip", and `skip_unlabeled` is on_bad_rows="unlabeled".
    """

    target: Any = None
    weight: Any = None
    columns: Sequence[Any] | None = None
    dtype: np.dtype | None = None
    skip: bool = False
    skip_unlabeled: bool = False
    block_rows: int = 4096
    header: bool = True
    delimiter: str | None = None
    n_columns: int | None = None
    zero_based: bool = False
    table: bool | str = "auto"
    types: Mapping[Any, str] = field(default_factory=dict)
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def several(self) -> bool:
        """Whether y is a matrix, because several targets are listed."""
        return isinstance(self.target, list | tuple)

    @property
    def targets(self) -> list[Any]:
        """The targets as a list, which may be empty."""
        if self.several:
            return list(self.target)
        return [] if self.target is None else [self.target]

    def as_tables(self, shares_of_numbers: Iterable[float]) -> bool:
        """Whether X is a table, given the share of finite numbers in the first rows of columns."""
        if self.table != "auto":
            return bool(self.table)
        if self.types or self.dtype is not None:
            return bool(self.types)
        least = _MOSTLY_NUMBERS if self.skip else 1.0
        return any(share < least for share in shares_of_numbers)
