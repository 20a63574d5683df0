"""Ways to draw the frequencies of a shift-invariant kernel, as matrices or as rotations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc
from sklearn.utils.extmath import safe_sparse_dot

from craftmaps.kernels import ShiftInvariantKernel
from craftmaps.kernels.normal_lengths import normal_lengths
from craftmaps.loops import hadamard
from craftmaps.loops.rows import dense_block, for_each_block
from craftmaps.maps.hadamard_products import padded_length, within

_ROWS = 1024
_SHORTEST = 64  # rotations of shorter rows are too few to look like all directions
_SOBOL_BITS = 30
_HALTON_MOST = 1000  # dimensions; the tables of SciPy's generator grow with their square


@dataclass(frozen=True)
class MatrixFrequencies:
    """Frequencies as the rows of a matrix."""

    matrix: np.ndarray

    def project(
        self, X: Any, out: np.ndarray, column: int, finish: Callable[[np.ndarray], None]
    ) -> None:
        """out[:, column:] = <x, w> for rows x and frequencies w; `finish` then takes each block."""
        weights = self.matrix.astype(out.dtype, copy=False).T
        for start in range(0, X.shape[0], _ROWS):
            block, filled = X[start : start + _ROWS], out[start : start + _ROWS]
            if isinstance(block, np.ndarray):
                block = block.astype(out.dtype, copy=False)
                np.matmul(block, weights, out=filled[:, column:])
            else:
                filled[:, column:] = safe_sparse_dot(block, weights, dense_output=True)

            def task(first: int, last: int, filled: np.ndarray = filled) -> None:
                finish(filled[first:last])

            for_each_block(task, len(filled), out.itemsize * out.shape[1])


@dataclass(frozen=True)
class RotatedFrequencies:
    """Frequencies as rows of products of diagonal and Hadamard matrices, which are not formed."""

    diagonals: np.ndarray
    permutations: np.ndarray
    scale: np.ndarray
    used: int

    def stays_within(self, n_columns_in: int, n_frequencies: int) -> bool:
        """Whether no index leaves rows of so many columns, or an array."""
        n_blocks, n_passes, size = self.diagonals.shape
        return bool(
            size == padded_length(size) >= max(_SHORTEST, n_columns_in)
            and n_passes >= 2
            and self.permutations.shape == (n_blocks, size)
            and within(self.permutations, 0, size - 1)
            and 1 <= self.used <= size
            and self.scale.shape == (n_frequencies,)
            and (n_blocks - 1) * self.used <= n_frequencies <= n_blocks * self.used
        )

    def project(
        self, X: Any, out: np.ndarray, column: int, finish: Callable[[np.ndarray], None]
    ) -> None:
        """out[:, column:] = <x, w> for rows x and frequencies w; `finish` then takes each block."""
        dtype = out.dtype
        diagonals, scale = self.diagonals.astype(dtype), self.scale.astype(dtype)

        def task(start: int, stop: int) -> None:
            hadamard.projected_rows(
                dense_block(X, start, stop, dtype),
                diagonals,
                self.permutations,
                scale,
                self.used,
                column,
                out[start:stop],
            )
            finish(out[start:stop])

        for_each_block(task, X.shape[0], dtype.itemsize * (X.shape[1] + out.shape[1]))


def iid(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> MatrixFrequencies:
    """Independent draws (Rahimi and Recht; Deshmukh, Algorithm 1)."""
    return MatrixFrequencies(kernel.frequencies(n, d, rng))


def orthogonal(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> MatrixFrequencies:
    """Blocks of d orthogonal directions, uniformly distributed; lengths |w| in random order."""
    lengths = kernel.lengths(n, d, rng)
    if lengths is None:
        raise ValueError(
            f"sampling='orthogonal' needs frequencies that are equally likely in all directions, "
            f"as those of Gaussian and Matern; {kernel!r} has others: use 'iid' or 'qmc'."
        )
    whole, rest = divmod(n, d)
    directions = [_orthonormal(whole, d, d, rng), _orthonormal(1, d, rest, rng)]
    return MatrixFrequencies(lengths[:, None] * np.concatenate(directions))


def quasi_random(
    kernel: ShiftInvariantKernel, n: int, d: int, sequence: str, rng: np.random.Generator
) -> MatrixFrequencies:
    """Points of a scrambled low-discrepancy sequence through inverse distributions.

    Deshmukh, Algorithm 2. The cosine is even, so w and -w are the same frequency; the first
    coordinate is therefore kept on its upper half, where no point has a twin.
    """
    dimensions = kernel.n_uniform(d)
    if dimensions is None:
        raise ValueError(
            f"sampling='qmc' needs the inverse distribution of frequencies, known for Gaussian, "
            f"Laplacian, Cauchy and Matern but not for {kernel!r}: use 'iid'."
        )
    points = _halton(n, dimensions, rng) if sequence == "halton" else _sobol(n, dimensions, rng)
    points[:, 0] = (1 + points[:, 0]) / 2
    return MatrixFrequencies(kernel.quantiles(points))


def structured(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> RotatedFrequencies:
    """Rows of H D_2 H P D_1 H D_0 with random signs D_k, with lengths |w| in random order."""
    size = max(_SHORTEST, padded_length(d))
    scales = _mixture("structured", kernel, n, rng)
    n_blocks = -(-n // size)
    lengths = normal_lengths(n, size, rng)
    signs = 1.0 - 2.0 * rng.integers(0, 2, (n_blocks, 3, size))
    permutations = _permutations(n_blocks, size, rng)
    return RotatedFrequencies(signs, permutations, scales * lengths / size**1.5, size)


def fastfood(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> RotatedFrequencies:
    """S H P G H B with random signs B, normal G and lengths S (Le, Sarlos and Smola 2013).

    Rows of one block share G and vary together, which makes the error up to a third larger than
    that of independent frequencies. So three of eight rows of each block are used, which leaves
    about a tenth.
    """
    size = max(_SHORTEST, padded_length(d))
    used = 3 * size // 8
    scales = _mixture("fastfood", kernel, n, rng)
    n_blocks = -(-n // used)
    diagonals = np.empty((n_blocks, 2, size))
    diagonals[:, 0] = 1.0 - 2.0 * rng.integers(0, 2, (n_blocks, size))
    diagonals[:, 1] = rng.standard_normal((n_blocks, size))
    norms = np.repeat(np.linalg.norm(diagonals[:, 1], axis=1), used)[:n]
    lengths = normal_lengths(n, size, rng)
    permutations = _permutations(n_blocks, size, rng)
    return RotatedFrequencies(
        diagonals, permutations, scales * lengths / (norms * np.sqrt(size)), used
    )


def _orthonormal(n_blocks: int, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Blocks of n orthonormal rows, uniformly distributed, one under the other."""
    q, r = np.linalg.qr(rng.standard_normal((n_blocks, d, n)))
    signs = np.where(np.diagonal(r, axis1=1, axis2=2) < 0, -1.0, 1.0)
    q = q * signs[:, None]  # without this, q is not uniform (Mezzadri 2007)
    return np.asarray(np.swapaxes(q, 1, 2).reshape(n_blocks * n, d))


def _mixture(
    sampling: str, kernel: ShiftInvariantKernel, n: int, rng: np.random.Generator
) -> np.ndarray:
    scales = kernel.mixture(n, rng)
    if scales is None:
        raise ValueError(
            f"sampling={sampling!r} needs frequencies that are normal up to a random length, as "
            f"those of Gaussian and Matern; {kernel!r} has others: use 'iid' or 'qmc'."
        )
    return scales


def _permutations(n_blocks: int, size: int, rng: np.random.Generator) -> np.ndarray:
    order = np.tile(np.arange(size, dtype=np.uint32), (n_blocks, 1))
    return rng.permuted(order, axis=1)


def _sobol(n: int, dimensions: int, rng: np.random.Generator) -> np.ndarray:
    """Scrambled Sobol points, in the middle of their cells so that none lies on the boundary.

    Beyond the dimensions that SciPy has directions for, groups of coordinates have a sequence each,
    in random order (Latin supercube sampling, Owen 1998).
    """
    power = max(
        0, int(n - 1).bit_length()
    )  # a whole net: Sobol points are balanced in nothing less
    groups = []
    for start in range(0, dimensions, qmc.Sobol.MAXDIM):
        width = min(qmc.Sobol.MAXDIM, dimensions - start)
        points = qmc.Sobol(width, bits=_SOBOL_BITS, seed=rng).random_base2(power)
        groups.append(points if start == 0 else rng.permutation(points))
    return np.concatenate(groups, axis=1)[:n] + 2.0 ** -(_SOBOL_BITS + 1)


def _halton(n: int, dimensions: int, rng: np.random.Generator) -> np.ndarray:
    if dimensions > _HALTON_MOST:
        raise ValueError(
            f"sequence='halton' is offered for up to {_HALTON_MOST} dimensions, here are "
            f"{dimensions}; use sequence='sobol'."
        )
    points: np.ndarray = qmc.Halton(dimensions, seed=rng).random(n)
    return np.asarray(np.clip(points, 2.0**-53, 1 - 2.0**-53))
