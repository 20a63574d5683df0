"""Products of slices of randomly rotated rows: the structured projection of Random Maclaurin.

CRAFT s.3.5 multiplies entries of H M_t x with the Hadamard matrix H and random signs M_t. As
published, two factors of one feature may share their signs, which biases the product. Three things
are different here:

- Every factor k has its own signs and its own permutation of the padded row, u_k = H P_k S_k x, so
  a feature prod_k u_k[i_k] is exactly unbiased. Without the permutations, neighboring features of
  sparse rows are correlated, and their sum varies many times more than a sum of independent
  features.
- The features of one degree are runs u_1[o_1 + l] ... u_n[o_n + l] for l = 0, 1, ..., at most as
  long as the padded row. Runs are contiguous slices, so nothing is gathered. A run uses no index of
  a factor twice, so its variance is below the variance of independent features.
- Runs of one degree have distinct offsets. When all offsets are used, a new set of rotations
  begins.

With `fold`, features are added with random signs into the given number of columns. This is the
down-projection of CRAFT s.3.3 in the same loop, without a vector of D features in memory. For a
fold into far fewer columns, most features are computed in squares, which share products.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from craftmaps.loops import hadamard
from craftmaps.maps.parts.base import check_facts, is_sorted, is_whole, is_within
from craftmaps.maps.parts.columns import NO_COLUMN, onnx_columns
from craftmaps.maps.parts.hadamard_runs import N_SIGNS, SLICE, folded, joined, runs
from craftmaps.maps.parts.hadamard_squares import Shape, are_squares, squares
from craftmaps.maps.parts.rotations import draw_rotations, moves_of
from craftmaps.storage.packing import storable
from craftmaps.threads import dense_block, for_each_block
from craftmaps.validation import is_integer

_MAX_TILE_BYTES = 1 << 18  # size of the features of a tile of rows that fits into the cache
_ONNX_RUN = 8  # neighboring entries of a rotation that an ONNX model gathers together


def padded_length(n_columns: int) -> int:
    """Return the smallest power of two that is at least n_columns."""
    return 1 << (n_columns - 1).bit_length()


@storable
@dataclass(frozen=True)
class HadamardProducts:
    """Rotations and blocks of features that were drawn.

    `gather` contains the permutation, signs and padding of each rotation. `rotations` and `blocks`
    contain the first rotation and the first block of each set. A block is a slice of `length`
    features. They are products of `degree` factors at `offset`, times `scale`, and are written to
    (or added to) the columns from `column` on. `signs` is a table with the signs of the features of
    a fold. The first blocks form `n_squares` squares (see `hadamard_squares`).
    """

    gather: np.ndarray
    rotations: np.ndarray
    blocks: np.ndarray
    degree: np.ndarray
    length: np.ndarray
    column: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    signs: np.ndarray
    complex_to_real: bool
    n_squares: int = 0

    @classmethod
    def draw(
        cls,
        counts: np.ndarray,
        weights: np.ndarray,
        first_column: int,
        n_columns_in: int,
        complex_to_real: bool,
        rng: np.random.Generator,
        fold: int | None = None,
        occupied: int = 0,
    ) -> "HadamardProducts":
        """Draw counts[n] features of each degree n >= 1, in columns from `first_column` on.

        With `fold`, they are added into that many columns, of which the first `occupied` contain
        other features already.
        """
        size = padded_length(n_columns_in)
        parts = 2 if complex_to_real else 1
        width = size + min(size, SLICE)
        pieces, in_squares = [], list[dict[str, np.ndarray]]()
        column = occupied
        wraps = fold is not None and occupied + int(counts[1:].sum()) > fold
        shape = Shape.of(int(counts[1:].sum()), size, fold) if fold else None
        if shape:
            in_squares, counts, column = squares(counts, weights, shape, occupied, rng)
        for n in range(1, len(counts)):
            if counts[n] and weights[n]:
                piece = runs(n, int(counts[n]), size, rng)
                piece["column"] = column + parts * piece["column"]
                piece["scale"] = np.full(len(piece["length"]), np.sqrt(weights[n]))
                pieces.append(piece)
            column += parts * int(counts[n])
            if wraps:
                column += -column % hadamard.HALF  # whole vectors, until the fold wraps around
        drawn = joined(pieces)
        first = 1 if fold else 0  # the first factor of a fold is a sign
        signs = rng.choice([-1.0, 1.0], size if shape else first * (N_SIGNS + SLICE))
        if shape:
            signs = np.append(signs, signs[:SLICE])
        if fold:
            drawn = joined([*in_squares, folded(drawn, fold, shape is not None, rng)])
        # The table of signs comes before the rotations.
        n_factors = drawn["offset"].shape[1] - first
        drawn["offset"][:, first:] += len(signs) + parts * width * np.arange(n_factors)
        order = np.argsort(drawn["set"], kind="stable")
        drawn = {name: values[order] for name, values in drawn.items()}
        n_sets = int(drawn["set"].max(initial=-1)) + 1
        factors = [int(drawn["factors"][drawn["set"] == s].max()) for s in range(n_sets)]
        return cls(
            gather=draw_rotations(sum(factors), n_columns_in, size, parts, rng),
            rotations=parts * np.cumsum([0, *factors]),
            blocks=np.searchsorted(drawn["set"], np.arange(n_sets + 1)),
            degree=drawn["factors"] + first,
            length=drawn["length"],
            column=first_column + drawn["column"],
            scale=drawn["scale"],
            offset=drawn["offset"],
            signs=signs,
            complex_to_real=complex_to_real,
            n_squares=sum(len(piece["length"]) for piece in in_squares) // hadamard.SIDE**2,
        )

    def with_own_inputs(self, width: int, n_factors: int) -> "HadamardProducts":
        """Return the same products for wider rows, where factor k reads columns from k * width on.

        `gather` points into (x, -x, 0), so indices of the second half move when x becomes wider.
        """
        gather = self.gather.astype(np.int64)
        for first, last in pairwise(self.rotations):
            for k in range(last - first):
                row = gather[first + k]
                negative, padding = (row >= width) & (row < 2 * width), row == 2 * width
                row += k * width
                row[negative] += (n_factors - 1) * width
                row[padding] = 2 * n_factors * width
        return replace(self, gather=gather.astype(np.uint32))

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Write the features of the rows of X into `out`; columns without features become 0."""
        dtype = out.dtype
        whole = self._whole
        drawn = hadamard.Blocks(
            whole.gather,
            whole.rotations,
            whole.blocks,
            whole.degree,
            whole.length,
            whole.column.astype(np.int64, copy=False),
            whole.scale.astype(dtype),
            whole.offset.astype(np.int64, copy=False),
            min(whole.gather.shape[1], SLICE),
            whole.n_squares,
        )
        signs = self.signs.astype(dtype) if len(self.signs) else None  # there is a fold, or not
        moves = self._moves(X.shape[1]) if dtype == np.float32 else hadamard.NO_MOVES
        in_tiles = self._in_tiles(out)
        unused = self._unused_columns(out.shape[1]) if signs is None else None

        def task(start: int, stop: int) -> None:
            rows, target = dense_block(X, start, stop, dtype), out[start:stop]
            if unused is not None:  # in the task, so that threads share the cost of new memory
                target[:, unused] = 0
            if self.complex_to_real:
                hadamard.complex_product_rows(rows, drawn, target)
            elif in_tiles:
                hadamard.product_tiles(rows, drawn, signs, target)
            else:
                hadamard.product_rows(rows, drawn, *moves, signs, target)

        # A block of the output is at most a large page of memory, which is cleared as a whole.
        row_bytes = dtype.itemsize * max(X.shape[1], out.shape[1] // 2)
        for_each_block(task, X.shape[0], row_bytes)

    def _moves(self, d: int) -> hadamard.Moves:
        """Return the rotations of rows with d columns in the form that loops read fastest."""
        if d not in self._known_moves:
            self._known_moves[d] = (
                moves_of(self.gather, d) if hadamard.can_move() else hadamard.NO_MOVES
            )
        return self._known_moves[d]

    @cached_property
    def _known_moves(self) -> dict[int, hadamard.Moves]:
        return {}

    @cached_property
    def _whole(self) -> "HadamardProducts":
        """The same products, where the lengths of squares are multiples of `LANES`.

        Squares in files of 0.2.0 may be longer by eight features, which become blocks of their own.
        """
        in_squares = np.arange(len(self.length)) < self.n_squares * hadamard.SIDE**2
        rest = np.where(in_squares, self.length % hadamard.LANES, 0)
        (cut,) = rest.nonzero()
        if not len(cut):
            return self
        length = self.length - rest
        first, at = length[cut], self.blocks[1]
        return replace(
            self,
            blocks=self.blocks + len(cut) * (np.arange(len(self.blocks)) > 0),
            degree=np.insert(self.degree, at, self.degree[cut]),
            length=np.insert(length, at, rest[cut]),
            column=np.insert(self.column, at, self.column[cut] + first),
            scale=np.insert(self.scale, at, self.scale[cut]),
            offset=np.insert(self.offset, at, self.offset[cut] + first[:, None], axis=0),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # no caches

    def _in_tiles(self, out: np.ndarray) -> bool:
        """Whether runs of features are so short that processing rows side by side is faster."""
        size = self.gather.shape[1]
        fits = hadamard.TILE * out.shape[1] * out.dtype.itemsize <= _MAX_TILE_BYTES
        return bool(size < hadamard.HALF or (size < hadamard.SMALLEST and fits))

    def _unused_columns(self, n_columns: int) -> np.ndarray:
        """Return the columns that no block writes to."""
        steps = np.zeros(n_columns + 1, dtype=np.int64)
        steps[self.column] += 1
        np.subtract.at(steps, self.column + self.length * (2 if self.complex_to_real else 1), 1)
        return np.flatnonzero(np.cumsum(steps[:-1]) == 0)

    def check(self, n_in: int, n_out: int) -> None:
        """Raise ValueError unless every index stays within its array."""
        names = ("gather", "rotations", "blocks", "degree", "length", "column", "offset")
        whole = {name: is_whole(getattr(self, name)) for name in names}
        check_facts(self, **whole)
        in_rows = {name: getattr(self, name).flags.c_contiguous for name in names}
        check_facts(self, **in_rows)  # loops read them as one long vector
        # Loops subtract all of these but the first, and unsigned differences could wrap around.
        signed = {name: getattr(self, name).dtype.kind == "i" for name in names[1:]}
        check_facts(self, **signed)
        # Files store small integer types, in which sums could wrap around.
        arrays = (getattr(self, name).astype(np.int64) for name in names)
        gather, rotations, blocks, degree, length, column, offset = arrays
        n_blocks, parts = len(length), 2 if self.complex_to_real else 1
        check_facts(
            self,
            gather=gather.ndim == 2 and gather.shape[1] == padded_length(gather.shape[1]),
            blocks=blocks.shape == rotations.shape and is_sorted(blocks, n_blocks),
            rotations=is_sorted(rotations, len(gather)),
            degree=degree.shape == (n_blocks,),
            length=length.shape == (n_blocks,),
            column=column.shape == (n_blocks,),
            scale=self.scale.shape == (n_blocks,),
            offset=offset.ndim == 2 and len(offset) == n_blocks,
            signs=self.signs.ndim == 1 and (parts == 1 or not len(self.signs)),
        )
        size, n_signs = gather.shape[1], len(self.signs)
        slice_ = min(size, SLICE)
        last = n_signs + int(np.diff(rotations).max(initial=0)) * (size + slice_)
        if parts == 2:
            last -= size + slice_  # imaginary parts are in the next rotation
        first = min(n_signs, 1)  # with a fold, the first factor is a sign
        used = np.arange(offset.shape[1]) < degree[:, None]
        ends = np.where(used, offset + length[:, None], 0)
        check_facts(
            self,
            gather=is_within(gather, 0, 2 * n_in),
            degree=is_within(degree, 1 + first, offset.shape[1]),
            length=is_within(length, 1, slice_),
            offset=is_within(offset, 0, last)
            and is_within(ends, 0, last)
            and is_within(offset[:, first:][used[:, first:]], n_signs, last),
            signs=is_within(ends[:, :first], 0, n_signs),
            column=is_within(column, 0, n_out) and is_within(column + parts * length, 0, n_out),
        )
        check_facts(self, n_squares=not self.n_squares or self._has_squares())

    def _has_squares(self) -> bool:
        """Return whether the first blocks are squares, with a sign for each entry of a factor."""
        if not is_integer(self.n_squares) or self.complex_to_real or not len(self.signs):
            return False
        size, stop = self.gather.shape[1], self.n_squares * hadamard.SIDE**2
        named = (self.degree, self.length, self.column, self.scale, self.offset)
        return bool(
            0 < stop <= self.blocks[1]
            and len(self.signs) == size + min(size, SLICE)
            and (self.offset[:, 0] + len(self.signs) == self.offset[:, 1]).all()
            and are_squares(*(array[:stop] for array in named))
        )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int, first: int = 0) -> str:
        """Add the columns from `first` on; rotations are products with Hadamard matrices."""
        columns, signs = _sources(self.gather, n_in)
        copies, size = columns.shape
        if not len(self.length):
            return onnx_columns(g, x, [], first, n_out)
        moved = g.add("Mul", g.gather(x, columns, axis=1), g.floats(signs))
        rotated = g.hadamard(moved, copies, size)
        u = g.transpose(g.reshape(rotated, 0, copies * size))
        columns_made = []
        for factors, scale, *targets in self._by_degree():
            n, n_features = factors.shape
            places = [*factors] if len(targets) == 1 else [*factors, *(factors + size)]
            whole = copies * size % _ONNX_RUN == 0  # False if rows have few columns
            run = _ONNX_RUN if whole and all(map(_in_runs, places)) else 1
            source = g.reshape(u, copies * size // run, run, -1)
            taken = [g.gather(source, index[::run] // run, axis=0) for index in places]
            made = g.complex_product(taken[:n], taken[n:]) if taken[n:] else [g.product(taken)]
            n_made = run * -(-n_features // run)  # the last run may be longer than necessary
            spare = (0, n_made - n_features)
            for value, target in zip(made, targets, strict=True):
                column = np.pad(target, spare, constant_values=NO_COLUMN)
                columns_made.append((g.reshape(value, n_made, -1), column, np.pad(scale, spare)))
        return onnx_columns(g, x, columns_made, first, n_out)

    def _by_degree(self) -> list[tuple[np.ndarray, ...]]:
        """Return factors, scale and columns of the features of each degree.

        Feature f is scale[f] prod_k u[factors[k, f]], where u contains all rotations one after
        another. Complex features have a second array of columns for their imaginary parts. The
        imaginary parts of u are in the next rotation.
        """
        size, parts = self.gather.shape[1], 2 if self.complex_to_real else 1
        width = size + min(size, SLICE)
        first = int(len(self.signs) > 0)  # the first factor of a fold is a sign
        block = np.repeat(np.arange(len(self.length)), self.length)
        starts = np.repeat(np.cumsum(self.length) - self.length, self.length)
        within = np.arange(len(block)) - starts
        scale = self.scale[block]
        if first:
            scale = scale * self.signs[self.offset[block, 0] + within]
        # Offsets count from the table of signs on, and rotations are stored with some overlap.
        place = (self.offset[:, first:] - len(self.signs))[block]
        rotation = np.repeat(self.rotations[:-1], np.diff(self.blocks))[block, None]
        rotation = rotation + parts * (place // (parts * width))
        factors = rotation * size + (place % (parts * width) + within[:, None]) % size
        columns = [self.column[block] + within]
        if parts == 2:
            columns.append(columns[0] + self.length[block])
        degrees = []
        for n in np.unique(self.degree):
            chosen = self.degree[block] == n
            targets = (column[chosen] for column in columns)
            degrees.append((factors[chosen, : n - first].T, scale[chosen], *targets))
        return degrees


def _sources(gather: np.ndarray, n_in: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and signs that indices into (x, -x, 0) stand for; padding has sign 0."""
    sign = np.select([gather < n_in, gather < 2 * n_in], [1, -1], 0)
    return np.where(sign, gather % n_in, 0), sign


def _in_runs(index: np.ndarray) -> bool:
    """Whether an index consists of runs of `_ONNX_RUN` neighbors."""
    starts = index[::_ONNX_RUN]
    whole = (starts[:, None] + np.arange(_ONNX_RUN)).ravel()[: len(index)]
    return not (starts % _ONNX_RUN).any() and bool((whole == index).all())
