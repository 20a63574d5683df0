"""Ways to draw the frequencies of a shift-invariant kernel."""

from typing import Any

import numpy as np
from scipy.stats import qmc

from craftmaps.kernels import ShiftInvariantKernel
from craftmaps.kernels.shift_invariant import normal_lengths
from craftmaps.maps.parts.frequencies import (
    MIN_ROTATION,
    FastfoodFrequencies,
    MatrixFrequencies,
    StructuredFrequencies,
)
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.maps.parts.sign_sets import n_sign_sets, sign_sets

_SOBOL_BITS = 30
_MAX_HALTON_DIMENSIONS = 1000  # the tables of SciPy's generator grow with their square


def iid(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> MatrixFrequencies:
    """Draw frequencies independently (Rahimi and Recht; Deshmukh, Algorithm 1)."""
    return MatrixFrequencies(kernel.frequencies(n, d, rng))


def orthogonal(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> MatrixFrequencies:
    """Draw blocks of d orthogonal directions, uniformly distributed, with lengths |w|."""
    lengths = kernel.lengths(n, d, rng)
    if lengths is None:
        raise ValueError(
            f"sampling='orthogonal' is for kernels whose frequencies are equally likely in all "
            f"directions, such as Gaussian and Matern; use 'iid' or 'qmc' for {kernel!r}."
        )
    whole, rest = divmod(n, d)
    directions = [_orthonormal(whole, d, d, rng), _orthonormal(1, d, rest, rng)]
    return MatrixFrequencies(lengths[:, None] * np.concatenate(directions))


def quasi_random(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator, sequence: str
) -> MatrixFrequencies:
    """Map points of a scrambled low-discrepancy sequence by inverse distributions.

    Deshmukh, Algorithm 2. The cosine is even, so w and -w are the same frequency. The first
    coordinate is restricted to its upper half, so that no frequency occurs twice.
    """
    dimensions = kernel.n_uniform(d)
    if dimensions is None:
        raise ValueError(
            f"sampling='qmc' is for Gaussian, Laplacian, Cauchy and Matern kernels, because it "
            f"needs the inverse distribution of the frequencies; use 'iid' for {kernel!r}."
        )
    points = _halton(n, dimensions, rng) if sequence == "halton" else _sobol(n, dimensions, rng)
    points[:, 0] = (1 + points[:, 0]) / 2
    return MatrixFrequencies(kernel.quantiles(points))


def structured(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> StructuredFrequencies:
    """Draw rows of H S_b H P D_1 H D_0 with random signs D_k, and lengths |w| in random order.

    As many blocks share a rotation H P D_1 H D_0 as there are sign sets S_b. With these sets, rows
    of any two blocks have inner products of size 1/sqrt(size), the smallest possible. Rows of
    independent blocks have this size only on average.
    """
    size = max(MIN_ROTATION, padded_length(d))
    scales = _mixture("structured", kernel, n, rng)
    n_blocks, n_sets = -(-n // size), n_sign_sets(size)
    n_groups = -(-n_blocks // n_sets)
    in_group = -(-n_blocks // n_groups)
    n_groups = -(-n_blocks // in_group)
    lengths = normal_lengths(n, size, rng)
    rotations = _signs((n_groups, 2, size), rng)
    permutations = _permutations(n_groups, size, rng)
    signs = np.empty((n_groups, in_group, size))
    for group in signs:
        group[:] = sign_sets(size, rng.permutation(n_sets)[:in_group]) * _signs(size, rng)
    return StructuredFrequencies(
        rotations,
        permutations,
        signs.reshape(-1, size)[:n_blocks],
        scales * lengths / size**1.5,
    )


def fastfood(
    kernel: ShiftInvariantKernel, n: int, d: int, rng: np.random.Generator
) -> FastfoodFrequencies:
    """Draw S H G P H B with random signs B, normal G and lengths S (Le, Sarlos and Smola 2013).

    Rows of one block share G and are correlated, which makes the error up to a third larger than
    with independent frequencies. Only a quarter of the rows of each block is used, which lowers
    this excess to about a tenth. B and the permutation P are drawn once, and P H B x is computed
    once, for all blocks. The normal G makes every row unbiased for any B and P, so blocks stay
    uncorrelated.
    """
    size = max(MIN_ROTATION, padded_length(d))
    used = size // 4
    scales = _mixture("fastfood", kernel, n, rng)
    n_blocks = -(-n // used)
    signs, permutation = _signs(size, rng), _permutations(1, size, rng)[0]
    diagonals = rng.standard_normal((n_blocks, size))
    norms = np.repeat(np.linalg.norm(diagonals, axis=1), used)[:n]
    scale = scales * normal_lengths(n, size, rng) / (norms * np.sqrt(size))
    return FastfoodFrequencies(signs, permutation, diagonals, scale, used)


DRAW: dict[str, Any] = {
    "iid": iid,
    "orthogonal": orthogonal,
    "structured": structured,
    "qmc": quasi_random,
    "fastfood": fastfood,
}


def _orthonormal(n_blocks: int, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw blocks of n orthonormal rows, uniformly distributed, stacked on each other."""
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
            f"sampling={sampling!r} is for kernels whose frequencies are normal vectors of random "
            f"length, such as Gaussian and Matern; use 'iid' or 'qmc' for {kernel!r}."
        )
    return scales


def _signs(shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.asarray(1.0 - 2.0 * rng.integers(0, 2, shape))


def _permutations(n_blocks: int, size: int, rng: np.random.Generator) -> np.ndarray:
    order = np.tile(np.arange(size, dtype=np.uint32), (n_blocks, 1))
    return rng.permuted(order, axis=1)


def _sobol(n: int, dimensions: int, rng: np.random.Generator) -> np.ndarray:
    """Draw scrambled Sobol points, in the middle of their cells so that none lies on the boundary.

    SciPy has direction numbers for a limited number of dimensions. Beyond it, each group of
    coordinates has its own sequence in random order (Latin supercube sampling, Owen 1998).
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
    if dimensions > _MAX_HALTON_DIMENSIONS:
        raise ValueError(
            f"sequence='halton' takes at most {_MAX_HALTON_DIMENSIONS} dimensions, got "
            f"{dimensions}; use sequence='sobol'."
        )
    points: np.ndarray = qmc.Halton(dimensions, seed=rng).random(n)
    return np.asarray(np.clip(points, 2.0**-53, 1 - 2.0**-53))
