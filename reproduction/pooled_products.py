"""Random Maclaurin features with the structured projection that CRAFT s.3.5 publishes.

All entries of H M_t x, t = 1 .. T, are concatenated and permuted, and each feature of degree N
multiplies the next N of them. Two factors of a feature may then come from the same signs M_t, which
biases their product: with c = <x,y>^2 and m = |x|^2 |y|^2 + 2c - 2 sum_i x_i^2 y_i^2, a feature of
degree 2 has mean c - (m - c)/(T d - 1). The bias matters where T d is small. The library's own
projection is unbiased, has less variance and needs fewer transforms; this one reproduces the paper.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.loops.compiled import compiled
from craftmaps.loops.hadamard import _rotate, _signed_row
from craftmaps.maps import RandomMaclaurin
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.threads import dense_block, for_each_block


class PooledMaclaurin(RandomMaclaurin):
    """Random Maclaurin features whose projections are pooled and permuted Hadamard rows.

    Parameters are those of `RandomMaclaurin`, except that `projection` has no effect and
    `complex_to_real` must be False.
    """

    def _draw_products(
        self,
        counts: np.ndarray,
        weights: np.ndarray,
        first_column: int,
        n_columns_in: int,
        rng: np.random.Generator,
    ) -> Any:
        if self.complex_to_real:
            raise ValueError("pooled projections are real; set complex_to_real=False.")
        return PooledProducts.draw(counts, weights, first_column, n_columns_in, rng)

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        return float("nan")  # no formula is known


@dataclass(frozen=True)
class PooledProducts:
    """The signs of the T copies (in `gather`), and the entries that each feature multiplies."""

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
            pooled_rows(rows, self.gather, self.factor, self.first, self.column, scale, target)

        for_each_block(task, X.shape[0], out.dtype.itemsize * X.shape[1])


@compiled
def pooled_rows(
    X: np.ndarray,
    gather: np.ndarray,
    factor: np.ndarray,
    first: np.ndarray,
    column: np.ndarray,
    scale: np.ndarray,
    Z: np.ndarray,
) -> None:
    """Z[i, column[f]] = scale[f] * prod of the pooled rotations at factor[first[f]:first[f+1]]."""
    size, indices = gather.shape[1], gather.reshape(gather.size)
    pool = np.empty(gather.shape[0] * size, X.dtype)
    x = np.empty(2 * X.shape[1] + 1, X.dtype)
    for i in range(X.shape[0]):
        _signed_row(x, X, i)
        for t in range(gather.shape[0]):
            _rotate(pool, t * size, x, indices, t, size, 0)
        z = Z[i]
        z[:] = 0
        for f in range(scale.shape[0]):
            product = scale[f]
            for k in range(first[f], first[f + 1]):
                product *= pool[factor[k]]
            z[column[f]] = product
