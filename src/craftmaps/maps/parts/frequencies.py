"""Frequencies of a shift-invariant kernel, as a matrix or as implicit rotations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from craftmaps.loops import hadamard
from craftmaps.maps.parts.base import check_facts, is_within
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.storage.packing import storable
from craftmaps.threads import dense_block, for_each_block
from craftmaps.validation import is_integer

MIN_ROTATION = 64  # shorter rotations do not cover the directions evenly
_BLOCK_ROWS = 1024

Finish = Callable[[np.ndarray], None]


def _leave(block: np.ndarray) -> None:
    """Leave a block of output unchanged."""


@storable
@dataclass(frozen=True)
class MatrixFrequencies:
    """Frequencies as the rows of a matrix."""

    matrix: np.ndarray

    def fill(self, X: Any, out: np.ndarray, column: int = 0, finish: Finish = _leave) -> None:
        """Set out[:, column:] = <x, w> for all frequencies w, then call `finish` on each block."""
        weights = self.matrix.astype(out.dtype, copy=False).T
        for start in range(0, X.shape[0], _BLOCK_ROWS):
            block, filled = X[start : start + _BLOCK_ROWS], out[start : start + _BLOCK_ROWS]
            if isinstance(block, np.ndarray):
                block = block.astype(out.dtype, copy=False)
                np.matmul(block, weights, out=filled[:, column:])
            else:
                filled[:, column:] = safe_sparse_dot(block, weights, dense_output=True)

            def task(first: int, last: int, filled: np.ndarray = filled) -> None:
                finish(filled[first:last])

            for_each_block(task, len(filled), out.itemsize * out.shape[1])

    def check(self, n_in: int, n_out: int) -> None:
        check_facts(self, matrix=self.matrix.shape == (n_out, n_in))

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        return str(g.add("MatMul", x, g.floats(self.matrix.T)))


@storable
@dataclass(frozen=True)
class StructuredFrequencies:
    """Frequencies as rows of H S_b H P D_1 H D_0, which is never formed.

    D_k = rotations[g, k] and P = permutations[g] belong to a group g of blocks b, S_b = signs[b].
    """

    rotations: np.ndarray
    permutations: np.ndarray
    signs: np.ndarray
    scale: np.ndarray

    def fill(self, X: Any, out: np.ndarray, column: int = 0, finish: Finish = _leave) -> None:
        """Set out[:, column:] = <x, w> for all frequencies w, then call `finish` on each block."""
        dtype = out.dtype
        rotations, signs, scale = (
            array.astype(dtype) for array in (self.rotations, self.signs, self.scale)
        )

        def loop(rows: np.ndarray, filled: np.ndarray) -> None:
            hadamard.structured_rows(
                rows, rotations, self.permutations, signs, scale, column, filled
            )

        _fill_blocks(X, out, loop, finish)

    def check(self, n_in: int, n_out: int) -> None:
        n_groups, (n_blocks, size) = len(self.rotations), self.signs.shape
        check_facts(
            self,
            signs=_is_size(size, n_in) and 1 <= n_groups <= n_blocks,
            rotations=self.rotations.shape == (n_groups, 2, size),
            permutations=self.permutations.shape == (n_groups, size)
            and is_within(self.permutations, 0, size - 1),
            scale=self.scale.shape == (n_out,)
            and (n_blocks - 1) * size <= n_out <= n_blocks * size,
        )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        n_groups, (n_blocks, size) = len(self.rotations), self.signs.shape
        v = _onnx_rotated(g, x, self.rotations[:, 0], n_in)
        v = g.reshape(g.add("Mul", v, g.floats(self.rotations[:, 1])), 0, n_groups * size)
        order = self.permutations + size * np.arange(n_groups)[:, None]
        v = g.hadamard(g.gather(v, order, axis=1), n_groups, size)
        group = np.arange(n_blocks) // -(-n_blocks // n_groups)
        v = g.gather(v, group, axis=1)
        v = g.hadamard(g.add("Mul", v, g.floats(self.signs)), n_blocks, size)
        taken = g.gather(g.reshape(v, 0, n_blocks * size), np.arange(n_out), axis=1)
        return str(g.add("Mul", taken, g.floats(self.scale)))


@storable
@dataclass(frozen=True)
class FastfoodFrequencies:
    """Frequencies as the first `used` rows of every H G_b P H B, which is never formed.

    B = signs, P = permutation, G_b = diagonals[b].
    """

    signs: np.ndarray
    permutation: np.ndarray
    diagonals: np.ndarray
    scale: np.ndarray
    used: int

    def fill(self, X: Any, out: np.ndarray, column: int = 0, finish: Finish = _leave) -> None:
        """Set out[:, column:] = <x, w> for all frequencies w, then call `finish` on each block."""
        dtype = out.dtype
        signs, diagonals, scale = (
            array.astype(dtype) for array in (self.signs, self.diagonals, self.scale)
        )

        def loop(rows: np.ndarray, filled: np.ndarray) -> None:
            hadamard.fastfood_rows(
                rows, signs, self.permutation, diagonals, scale, self.used, column, filled
            )

        _fill_blocks(X, out, loop, finish)

    def check(self, n_in: int, n_out: int) -> None:
        n_blocks, size = self.diagonals.shape
        check_facts(
            self,
            used=is_integer(self.used) and self.used == padded_length(self.used) <= size,
            diagonals=_is_size(size, n_in),
            signs=self.signs.shape == (size,),
            permutation=self.permutation.shape == (size,)
            and is_within(self.permutation, 0, size - 1),
            scale=self.scale.shape == (n_out,)
            and (n_blocks - 1) * self.used <= n_out <= n_blocks * self.used,
        )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        n_blocks, size = self.diagonals.shape
        v = g.gather(_onnx_rotated(g, x, self.signs[None], n_in), self.permutation, axis=2)
        v = g.hadamard(g.add("Mul", v, g.floats(self.diagonals)), n_blocks, size)
        used = np.arange(n_blocks * size).reshape(n_blocks, size)[:, : self.used].ravel()
        taken = g.gather(g.reshape(v, 0, n_blocks * size), used[:n_out], axis=1)
        return str(g.add("Mul", taken, g.floats(self.scale)))


Frequencies = MatrixFrequencies | StructuredFrequencies | FastfoodFrequencies


def _fill_blocks(
    X: Any,
    out: np.ndarray,
    loop: Callable[[np.ndarray, np.ndarray], None],
    finish: Finish,
) -> None:
    """Run `loop` on blocks of dense rows, and `finish` on each block while it is in the cache."""

    def task(start: int, stop: int) -> None:
        filled = out[start:stop]
        loop(dense_block(X, start, stop, out.dtype), filled)
        finish(filled)

    for_each_block(task, X.shape[0], out.itemsize * (X.shape[1] + out.shape[1]))


def _is_size(size: int, n_in: int) -> bool:
    """Return whether rows with n_in columns can have rotations of this size."""
    return size == padded_length(size) >= max(MIN_ROTATION, n_in)


def _onnx_rotated(g: Any, x: str, signs: np.ndarray, n_in: int) -> str:
    """Add H D x for every row D of signs to an ONNX graph."""
    copies, size = signs.shape
    start = g.reshape(g.padded(x, n_in, size), 0, 1, size)
    return str(g.hadamard(g.add("Mul", start, g.floats(signs)), copies, size))
