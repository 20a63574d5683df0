"""Products of rows with few columns, which BLAS computes at a third of its speed.

BLAS first copies its large operand into an order of its own. With about ten columns, that takes
longer than the products. These loops read rows in place and keep tiles of results in registers:
sums of vectors along the rows for scores, and slices of rows for gradients.
"""

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from craftmaps.loops.compiled import contracted


def _has_wide_vectors() -> bool:
    """Whether the machine has 32 registers of 64 bytes, and not 16 of 32 bytes or equivalent."""
    try:
        return bool(llvm.get_host_cpu_features().get("avx512f"))
    except RuntimeError:  # LLVM does not know the features of some processors
        return False


_TILE = 4  # columns of a tile
_WIDE = _has_wide_vectors()
_BYTES = 64 if _WIDE else 32  # of a vector
_SIDE = 4 if _WIDE else 3  # rows or slices of a tile, all of whose sums fit the registers
_MOST_COLUMNS = 32 if _WIDE else 12  # with more columns, BLAS is as fast
_PART = 1024  # entries of rows that are multiplied at a time, which stay in the first-level cache
_ROWS = 64  # rows whose gradient is added up at a time
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def padded(W: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return W^T, with rows of zeros up to a multiple of four if the loops are faster than BLAS."""
    n_columns = W.shape[1]
    size = -(-n_columns // _TILE) * _TILE if 1 < n_columns <= _MOST_COLUMNS else n_columns
    rows = np.zeros((size, W.shape[0]), dtype)
    rows[:n_columns] = W.T
    return rows


def scores(Z: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return Z W^T for a matrix W from `padded`."""
    if not _fits(Z, len(W)):
        return np.asarray(Z @ W.T)
    F = np.zeros((len(Z), len(W)), Z.dtype)
    rows, columns = _whole(len(Z), _SIDE), _whole(Z.shape[1], _BYTES // Z.itemsize)
    _add_scores(Z, W, F, rows, columns)
    if columns < Z.shape[1]:
        F[:rows] += Z[:rows, columns:] @ W[:, columns:].T
    if rows < len(Z):
        F[rows:] = Z[rows:] @ W.T
    return F


def gradients(Z: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return G^T Z, where G has as many columns as `padded` has rows."""
    if not _fits(Z, G.shape[1]):
        return np.asarray(G.T @ Z)
    total = np.zeros((G.shape[1], Z.shape[1]), Z.dtype)
    columns = _whole(Z.shape[1], _SIDE * (_BYTES // Z.itemsize))
    _add_gradients(Z, G, total, columns)
    if columns < Z.shape[1]:
        total[:, columns:] = G.T @ Z[:, columns:]
    return total


def _fits(Z: np.ndarray, n_columns: int) -> bool:
    return 1 < n_columns <= _MOST_COLUMNS and n_columns % _TILE == 0 and Z.flags.c_contiguous


def _whole(size: int, step: int) -> int:
    return size - size % step


class _Tile:
    """Writes code for vectors of numbers in consecutive places of two-dimensional arrays."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.context, self.builder = context, builder
        self.align = dtype.bitwidth // 8
        self.lanes = _BYTES // self.align
        self.type = ir.VectorType(context.get_value_type(dtype), self.lanes)

    def place(self, array_type: Any, array: Any, row: Any, column: Any) -> Any:
        """Return a pointer to an entry of a C-ordered array."""
        known = self.context.make_array(array_type)(self.context, self.builder, array)
        width = self.builder.extract_value(known.shape, 1)
        offset = self.builder.add(self.builder.mul(row, width), column)
        return self.builder.gep(known.data, [offset])

    def load(self, pointer: Any, offset: Any) -> Any:
        place = self.builder.gep(pointer, [offset])
        return self.builder.load(
            self.builder.bitcast(place, self.type.as_pointer()), align=self.align
        )

    def store(self, vector: Any, pointer: Any, offset: Any) -> None:
        place = self.builder.gep(pointer, [offset])
        place = self.builder.bitcast(place, self.type.as_pointer())
        self.builder.store(vector, place, align=self.align)

    def sums(self, first: list[list[Any]]) -> list[list[Any]]:
        """Return variables for vectors, which the compiler keeps in registers."""
        found = []
        for row in first:
            found.append([cgutils.alloca_once(self.builder, self.type) for _ in row])
            for variable, value in zip(found[-1], row, strict=True):
                self.builder.store(value, variable)
        return found

    def add_product(self, variable: Any, a: Any, b: Any) -> None:
        product = self.builder.fmul(a, b, flags=("contract",))
        total = self.builder.fadd(self.builder.load(variable), product, flags=("contract",))
        self.builder.store(total, variable)

    def shuffled(self, vector: Any, lanes: list[int]) -> Any:
        mask = ir.Constant(ir.VectorType(_I32, self.lanes), lanes)
        return self.builder.shuffle_vector(vector, vector, mask)

    def broadcast(self, value: Any) -> Any:
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.Constant(_I32, 0))
        return self.shuffled(first, [0] * self.lanes)

    def total(self, vector: Any) -> Any:
        """Return the sum of the lanes of a vector."""
        half = self.lanes // 2
        while half:
            turned = [(lane + half) % self.lanes for lane in range(self.lanes)]
            vector = self.builder.fadd(vector, self.shuffled(vector, turned))
            half //= 2
        return self.builder.extract_element(vector, _number(0))


def _number(value: int) -> Any:
    return ir.Constant(_I64, value)


_COLUMNS, _SIDES = range(_TILE), range(_SIDE)


@intrinsic
def _add_dot_products(_typing, Z, W, F, i, j, first, last):  # type: ignore[no-untyped-def]
    """Add Z[i:, first:last] W[j:, first:last]^T to a tile of F at i, j."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (Z_type, W_type, F_type), (z, w, f, i, j, first, last) = signature.args[:3], values
        tile = _Tile(context, builder, Z_type.dtype)
        rows = [tile.place(Z_type, z, builder.add(i, _number(r)), _number(0)) for r in _SIDES]
        columns = [tile.place(W_type, w, builder.add(j, _number(c)), _number(0)) for c in _COLUMNS]
        zero = ir.Constant(tile.type, [0.0] * tile.lanes)
        sums = tile.sums([[zero] * _TILE for _ in _SIDES])
        with cgutils.for_range_slice(builder, first, last, _number(tile.lanes)) as (e, _):
            left = [tile.load(row, e) for row in rows]
            for c in _COLUMNS:
                right = tile.load(columns[c], e)
                for r in _SIDES:
                    tile.add_product(sums[r][c], left[r], right)
        for r in _SIDES:
            for c in _COLUMNS:
                row, column = builder.add(i, _number(r)), builder.add(j, _number(c))
                place, found = (
                    tile.place(F_type, f, row, column),
                    tile.total(builder.load(sums[r][c])),
                )
                builder.store(builder.fadd(builder.load(place), found), place)
        return context.get_dummy_value()

    return types.void(Z, W, F, *(4 * [types.int64])), write


@intrinsic
def _add_slices(_typing, Z, G, total, e, j, first, last):  # type: ignore[no-untyped-def]
    """Add G[first:last, j:]^T Z[first:last, e:] to a tile of `total` at j, e."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (Z_type, G_type, total_type), (z, g, t, e, j, first, last) = signature.args[:3], values
        tile = _Tile(context, builder, Z_type.dtype)
        slices = [_number(s * tile.lanes) for s in _SIDES]
        ends = [tile.place(total_type, t, builder.add(j, _number(c)), e) for c in _COLUMNS]
        sums = tile.sums([[tile.load(end, s) for s in slices] for end in ends])
        with cgutils.for_range_slice(builder, first, last, _number(1)) as (i, _):
            row, factors = tile.place(Z_type, z, i, e), tile.place(G_type, g, i, j)
            right = [tile.load(row, s) for s in slices]
            for c in _COLUMNS:
                factor = builder.load(builder.gep(factors, [_number(c)]))
                left = tile.broadcast(factor)
                for s in _SIDES:
                    tile.add_product(sums[c][s], left, right[s])
        for c in _COLUMNS:
            for s in _SIDES:
                tile.store(builder.load(sums[c][s]), ends[c], slices[s])
        return context.get_dummy_value()

    return types.void(Z, G, total, *(4 * [types.int64])), write


@contracted
def _add_scores(Z, W, F, rows, columns):  # type: ignore[no-untyped-def]
    for first in range(0, columns, _PART):
        last = min(first + _PART, columns)
        for i in range(0, rows, _SIDE):
            for j in range(0, len(W), _TILE):
                _add_dot_products(Z, W, F, i, j, first, last)


@contracted
def _add_gradients(Z, G, total, columns):  # type: ignore[no-untyped-def]
    step = _SIDE * (_BYTES // Z.itemsize)
    for first in range(0, len(Z), _ROWS):
        last = min(first + _ROWS, len(Z))
        for e in range(0, columns, step):
            for j in range(0, len(total), _TILE):
                _add_slices(Z, G, total, e, j, first, last)
