"""The terms of degree 0 and 1 of a dot-product kernel as columns that need no randomness."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.loops.rows import dense_block

_ROWS = 256


@dataclass(frozen=True)
class ExactTerms:
    """`n_constant` columns that share the weight a_0, then `n_linear` columns sqrt(a_1) x."""

    n_constant: int
    n_linear: int
    a0: float
    a1: float

    @property
    def n_columns(self) -> int:
        return self.n_constant + self.n_linear

    def write(self, X: Any, out: np.ndarray) -> None:
        """Fill the first columns of `out`."""
        if self.n_constant:
            out[:, : self.n_constant] = np.sqrt(self.a0 / self.n_constant)
        if self.n_linear:
            for start in range(0, X.shape[0], _ROWS):
                rows = dense_block(X, start, start + _ROWS, out.dtype)
                target = out[start : start + _ROWS, self.n_constant : self.n_columns]
                np.multiply(rows, out.dtype.type(np.sqrt(self.a1)), out=target)
