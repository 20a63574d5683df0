"""How files are read: what every format is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of `craftmaps.scale.read`, checked; `skip` is on_bad_rows="skip"."""

    target: Any = None
    weight: Any = None
    columns: Sequence[Any] | None = None
    dtype: np.dtype | None = None
    skip: bool = False
    block_rows: int = 4096
    header: bool = True
    delimiter: str | None = None
    n_columns: int | None = None
    zero_based: bool = False

    @property
    def several(self) -> bool:
        """Whether y is a matrix, of a list of targets."""
        return isinstance(self.target, list | tuple)

    @property
    def targets(self) -> list[Any]:
        """The targets as a list, empty without one."""
        if self.several:
            return list(self.target)
        return [] if self.target is None else [self.target]
