"""The structured up-projection as CRAFT s.3.5 prints it, kept to reproduce the paper.

All entries of H M_t x, t = 1 .. T, are concatenated and permuted, and each feature of degree N
takes the next N of them. Two factors of a feature may then come from the same signs M_t, and their
product is biased: with c = <x,y>^2 and m = |x|^2 |y|^2 + 2c - 2 sum_i x_i^2 y_i^2, a feature of
degree 2 has mean c - (m - c)/(T d - 1), which matters where T d is small. `HadamardProducts` is
unbiased, has less variance and needs fewer transforms.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.loops import hadamard
from craftmaps.maps.parts.hadamard_products import (
    PlainProducts,
    climbs,
    padded_length,
    sources_of,
    within,
)
from craftmaps.threads import dense_block, for_each_block


@dataclass(frozen=True)
class PooledProducts:
    """Signs of the T copies (as `gather`), and which pooled entries each feature multiplies."""

    gather: np.ndarray
    factor: np.ndarray
    first: np.ndarray
    column: np.ndarray
    scale: np.ndarray

    @classmethod
    def draw(
        cls,
        counts: np.ndarray,
        weights: np.ndarray,
        first_column: int,
        n_columns_in: int,
        rng: np.random.Generator,
    ) -> "PooledProducts":
        """Draw counts[n] features of each degree n >= 1, in columns from `first_column` on."""
        size = padded_length(n_columns_in)
        degrees = np.repeat(np.arange(len(counts)), counts)[int(counts[0]) :]
        column = first_column + np.arange(len(degrees))
        used = weights[degrees] > 0
        degrees, column = degrees[used], column[used]
        n_copies = -(-int(degrees.sum()) // size)
        signs = rng.integers(0, 2, (n_copies, n_columns_in))
        gather = np.full((n_copies, size), 2 * n_columns_in, dtype=np.uint32)
        gather[:, :n_columns_in] = np.arange(n_columns_in) + n_columns_in * signs
        return cls(
            gather=gather,
            factor=rng.permutation(n_copies * size)[: int(degrees.sum())],
            first=np.concatenate([[0], np.cumsum(degrees)]),
            column=column,
            scale=np.sqrt(weights[degrees]),
        )

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Write the features of the rows of X into `out`, zero in the columns of no feature."""
        scale = self.scale.astype(out.dtype)

        def task(start: int, stop: int) -> None:
            rows = dense_block(X, start, stop, out.dtype)
            target = out[start:stop]
            hadamard.pooled_rows(
                rows, self.gather, self.factor, self.first, self.column, scale, target
            )

        for_each_block(task, X.shape[0], out.dtype.itemsize * X.shape[1])

    def stays_within(self, n_columns_in: int, n_columns_out: int) -> bool:
        """Whether no index leaves rows of so many columns, or an array."""
        return bool(
            self.gather.shape[1] == padded_length(self.gather.shape[1])
            and len(self.first) == len(self.scale) + 1 == len(self.column) + 1
            and within(self.gather, 0, 2 * n_columns_in)
            and within(self.factor, 0, self.gather.size - 1)
            and climbs(self.first, len(self.factor))
            and within(self.column, 0, n_columns_out - 1)
        )

    def sources(self, n_columns_in: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns and signs of the rotations; see `HadamardProducts.sources`."""
        return sources_of(self.gather, n_columns_in)

    def plain(self) -> list[PlainProducts]:
        """The features by degree; see `PlainProducts`."""
        degrees = np.diff(self.first)
        found = []
        for n in np.unique(degrees):
            chosen = np.flatnonzero(degrees == n)
            factors = self.factor[self.first[chosen] + np.arange(n)[:, None]]
            found.append(PlainProducts(factors, self.scale[chosen], self.column[chosen]))
        return found
