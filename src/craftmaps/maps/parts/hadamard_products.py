"""Products of slices of randomly rotated rows: the structured projection of Random Maclaurin.

CRAFT s.3.5 multiplies entries of H M_t x, H the Hadamard matrix and M_t random signs. Printed as it
is, two factors of one feature may share their signs, which biases the product. Here

- every factor k has its own signs *and its own permutation* of the padded row, u_k = H P_k S_k x,
  so a feature prod_k u_k[i_k] is exactly unbiased. Without the permutations, neighbouring features
  of sparse rows vary together, and their sum many times more than one of independent features;
- the features of one degree are runs u_1[o_1 + l] ... u_n[o_n + l], l = 0, 1, ..., as long as the
  padded row at most: contiguous slices that need no gather. Within a run no index of a factor is
  used twice, which brings the variance below that of independent features;
- runs of one degree have distinct offsets; when all of them are spent, a new set of rotations
  begins.

With `fold`, features are added with random signs into that many columns instead of getting a
column each: the down-projection of CRAFT s.3.3 in the same loop, with no D-vector in memory.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.loops import hadamard
from craftmaps.storage.packing import storable
from craftmaps.threads import dense_block, for_each_block

_SLICE = 256  # features made at a time; a rotated row is stored with this many entries repeated
_SIGNS = 1024  # random signs from which the features of a fold take theirs, slice by slice
_TILE_BYTES = 1 << 18  # of the features of a tile of rows: more of them would leave the cache
_FEW = 1 << 40  # below this many choices, runs are drawn without replacement


def padded_length(n_columns: int) -> int:
    """The least power of two that is at least n_columns."""
    return 1 << (n_columns - 1).bit_length()


@dataclass(frozen=True)
class PlainProducts:
    """Features of one degree n as plain arrays, for those who compute them in another way.

    Feature f is scale[f] prod_k u[factors[k, f]] in (or added into) column[f], where u are all
    rotations one after another. Complex features have their imaginary part in imaginary[f], made
    with that of u, which is one rotation further.
    """

    factors: np.ndarray
    scale: np.ndarray
    column: np.ndarray
    imaginary: np.ndarray | None = None


@storable
@dataclass(frozen=True)
class HadamardProducts:
    """Drawn rotations and blocks of features, ready to be applied.

    `gather` holds permutation, signs and padding of each rotation; `rotations` and `blocks` say
    which of them belong to which set; a block is a slice of `length` features that are products of
    `degree` factors at `offset`, times `scale`, written to (or added into) columns from `column`
    on. `signs` is the table from which the features of a fold take theirs.
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

        With `fold`, they are added into that many columns, of which `occupied` are in use already.
        """
        size = padded_length(n_columns_in)
        parts = 2 if complex_to_real else 1
        width = size + min(size, _SLICE)
        pieces = []
        column = occupied
        wraps = fold is not None and occupied + int(counts[1:].sum()) > fold
        for n in range(1, len(counts)):
            if counts[n] and weights[n]:
                piece = _runs(n, int(counts[n]), size, rng)
                piece["column"] = column + parts * piece["column"]
                piece["scale"] = np.full(len(piece["length"]), np.sqrt(weights[n]))
                pieces.append(piece)
            column += parts * int(counts[n])
            if wraps:
                column += -column % hadamard.LANES  # whole vectors, until the fold wraps around
        drawn = _joined(pieces)
        # The table of signs comes before the rotations.
        signs = rng.choice([-1.0, 1.0], _SIGNS + _SLICE if fold else 0)
        drawn["offset"] += len(signs) + parts * width * np.arange(drawn["offset"].shape[1])
        if fold:
            drawn = _folded(drawn, fold, rng)
        order = np.argsort(drawn["set"], kind="stable")
        drawn = {name: values[order] for name, values in drawn.items()}
        n_sets = int(drawn["set"].max(initial=-1)) + 1
        factors = [int(drawn["factors"][drawn["set"] == s].max()) for s in range(n_sets)]
        return cls(
            gather=_draw_rotations(sum(factors), n_columns_in, size, parts, rng),
            rotations=parts * np.cumsum([0, *factors]),
            blocks=np.searchsorted(drawn["set"], np.arange(n_sets + 1)),
            degree=drawn["factors"] + (1 if fold else 0),
            length=drawn["length"],
            column=first_column + drawn["column"],
            scale=drawn["scale"],
            offset=drawn["offset"],
            signs=signs,
            complex_to_real=complex_to_real,
        )

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Write the features of the rows of X into `out`, zero in the columns of no feature."""
        dtype = out.dtype
        drawn = (
            self.gather,
            self.rotations,
            self.blocks,
            self.degree,
            self.length,
            self.column,
            self.scale.astype(dtype),
            self.offset,
            min(self.gather.shape[1], _SLICE),
        )
        signs = self.signs.astype(dtype) if len(self.signs) else None  # there is a fold, or not
        product = hadamard.product_tiles if self._in_tiles(out) else hadamard.product_rows
        unused = self._unused_columns(out.shape[1]) if signs is None else None

        def task(start: int, stop: int) -> None:
            rows, target = dense_block(X, start, stop, dtype), out[start:stop]
            if unused is not None:  # here, so that threads share the first touch of new memory
                target[:, unused] = 0
            if self.complex_to_real:
                hadamard.complex_product_rows(rows, *drawn, target)
            else:
                product(rows, *drawn, signs, target)

        # a block of the output is no larger than a large page of memory, which is cleared at once
        row_bytes = dtype.itemsize * max(X.shape[1], out.shape[1] // 2)
        for_each_block(task, X.shape[0], row_bytes)

    def _in_tiles(self, out: np.ndarray) -> bool:
        """Whether runs of features are so short that rows are better worked on side by side."""
        size = self.gather.shape[1]
        fits = hadamard.TILE * out.shape[1] * out.dtype.itemsize <= _TILE_BYTES
        return bool(size < hadamard.LANES or (size < hadamard.LANES**2 and fits))

    def _unused_columns(self, n_columns: int) -> np.ndarray:
        """Those that no block writes to; without a fold, each of the others has one."""
        steps = np.zeros(n_columns + 1, dtype=np.int64)
        steps[self.column] += 1
        np.subtract.at(steps, self.column + self.length * (2 if self.complex_to_real else 1), 1)
        return np.flatnonzero(np.cumsum(steps[:-1]) == 0)

    def stays_within(self, n_columns_in: int, n_columns_out: int) -> bool:
        """Whether no index leaves rows of so many columns, or an array."""
        size, parts = self.gather.shape[1], 2 if self.complex_to_real else 1
        slice_, n_blocks = min(size, _SLICE), len(self.length)
        used = np.arange(self.offset.shape[1]) < self.degree[:, None]
        last = len(self.signs) + np.diff(self.rotations).max(initial=0) * (size + slice_)
        if parts == 2:
            last -= size + slice_  # imaginary parts are one rotation further
        ends = np.where(used, self.offset + self.length[:, None], 0)
        first = min(len(self.signs), 1)  # the first factor of a fold is a sign, the others are not
        arrays = (self.degree, self.column, self.scale, self.offset)
        return bool(
            size == padded_length(size)
            and all(len(array) == n_blocks for array in arrays)
            and (parts == 1 or not len(self.signs))
            and within(self.gather, 0, 2 * n_columns_in)
            and climbs(self.rotations, len(self.gather))
            and climbs(self.blocks, n_blocks)
            and len(self.blocks) == len(self.rotations)
            and within(self.degree, 1 + first, self.offset.shape[1])
            and within(self.length, 1, slice_)
            and within(self.offset, 0, last)
            and within(ends, 0, last)
            and within(ends[:, :first], 0, len(self.signs))
            and within(self.offset[:, first:][used[:, first:]], len(self.signs), last)
            and within(self.column, 0, n_columns_out)
            and within(self.column + parts * self.length, 0, n_columns_out)
        )

    def sources(self, n_columns_in: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns and signs: rotation r is H (signs[r] x[columns[r]]); padding has sign 0."""
        return sources_of(self.gather, n_columns_in)

    def plain(self) -> list[PlainProducts]:
        """The features by degree, in the order of their columns but for the fold."""
        size, parts = self.gather.shape[1], 2 if self.complex_to_real else 1
        width = size + min(size, _SLICE)
        first = int(len(self.signs) > 0)  # the first factor of a fold is a sign
        block = np.repeat(np.arange(len(self.length)), self.length)
        within = np.arange(len(block)) - np.repeat(
            np.cumsum(self.length) - self.length, self.length
        )
        scale = self.scale[block]
        if first:
            scale = scale * self.signs[self.offset[block, 0] + within]
        # Offsets count from the signs on, through rotations that are stored with some overlap.
        place = (self.offset[:, first:] - len(self.signs))[block]
        rotation = np.repeat(self.rotations[:-1], np.diff(self.blocks))[block, None]
        rotation = rotation + parts * (place // (parts * width))
        factors = rotation * size + (place % (parts * width) + within[:, None]) % size
        column = self.column[block] + within
        imaginary = column + self.length[block] if parts == 2 else None
        found = []
        for n in np.unique(self.degree):
            of_degree = self.degree[block] == n
            found.append(
                PlainProducts(
                    factors[of_degree, : n - first].T,
                    scale[of_degree],
                    column[of_degree],
                    None if imaginary is None else imaginary[of_degree],
                )
            )
        return found


def within(array: np.ndarray, least: int, most: int) -> bool:
    """Whether all entries are whole numbers from `least` to `most`."""
    whole = array.dtype.kind in "iu"
    return whole and (not array.size or bool(array.min() >= least and array.max() <= most))


def climbs(array: np.ndarray, most: int) -> bool:
    """Whether entries are whole numbers from 0 to `most` that never fall."""
    return within(array, 0, most) and bool((np.diff(array.astype(np.int64)) >= 0).all())


def sources_of(gather: np.ndarray, n_columns_in: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and signs that indices into (x, -x, 0) mean."""
    sign = np.select([gather < n_columns_in, gather < 2 * n_columns_in], [1, -1], 0)
    return np.where(sign, gather % n_columns_in, 0), sign


def _runs(n: int, count: int, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Blocks for `count` features of degree n: runs of up to `size`, cut into slices.

    A run is known by its offsets (o_1, ..., o_n) up to a common shift, so there are size^(n-1).
    Offsets are multiples of eight, which keeps vector loads aligned, unless that is too few: two
    runs whose offsets differ by the same in two factors vary together (in all: they are the same).
    """
    n_runs = -(-count // size)
    alike = 8 * n_runs * math.comb(n, 2) / (size * 2 ** (n - 2)) if n > 2 else 0.0
    aligned = size >= 64 and n_runs <= (size // 8) ** (n - 1) and alike < 0.25
    step = 8 if aligned else 1
    choices = (size // step) ** (n - 1)
    n_sets = -(-n_runs // choices)
    if choices < _FEW:
        picks = np.concatenate(
            [
                rng.choice(choices, min(choices, n_runs - s * choices), replace=False)
                for s in range(n_sets)
            ]
        )
        differences = (picks[:, None] // (size // step) ** np.arange(n - 1)) % (size // step)
    else:  # two equal runs are then as good as impossible
        differences = rng.integers(0, size // step, (n_runs, n - 1))
    start = rng.integers(0, size // step, (n_runs, 1))
    offsets = step * np.concatenate([start, start + differences], axis=1)
    slices = np.arange(0, size, min(size, _SLICE))
    run = np.repeat(np.arange(n_runs), len(slices))
    within = np.tile(slices, n_runs)
    feature = run * size + within
    kept = feature < count
    run, within, feature = run[kept], within[kept], feature[kept]
    ends = np.append(feature[1:], count)
    return {
        "set": run // min(choices, n_runs),  # choices may be beyond any integer type
        "factors": np.full(len(run), n),
        "length": ends - feature,
        "column": feature,
        "offset": (offsets[run] + within[:, None]) % size,
    }


def _joined(pieces: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    most = max((piece["offset"].shape[1] for piece in pieces), default=0)
    empty: dict[str, np.ndarray] = {
        name: np.zeros(0, dtype=np.int64) for name in ("set", "factors", "length", "column")
    }
    empty |= {"scale": np.zeros(0), "offset": np.zeros((0, most), dtype=np.int64)}
    for piece in pieces:
        missing = most - piece["offset"].shape[1]
        piece["offset"] = np.pad(piece["offset"], ((0, 0), (0, missing)))
    return {name: np.concatenate([empty[name], *(p[name] for p in pieces)]) for name in empty}


def _folded(
    drawn: dict[str, np.ndarray], fold: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Blocks brought into `fold` columns, cut where they wrap around, with signs as a factor.

    The sign of a feature is that of its block times an entry of the table of signs. Blocks that
    meet in a column have independent signs, which makes the fold unbiased.
    """
    place = drawn["column"] % fold
    n_cuts = (place + drawn["length"] - 1) // fold + 1
    block = np.repeat(np.arange(len(place)), n_cuts)
    cut = np.arange(len(block)) - np.repeat(np.cumsum(n_cuts) - n_cuts, n_cuts)
    first = np.maximum(0, cut * fold - place[block])
    last = np.minimum(drawn["length"][block], (cut + 1) * fold - place[block])
    table = hadamard.LANES * rng.integers(0, _SIGNS // hadamard.LANES, (len(block), 1))
    return {
        "set": drawn["set"][block],
        "factors": drawn["factors"][block],
        "length": last - first,
        "column": (place[block] + first) % fold,
        "scale": drawn["scale"][block] * rng.choice([-1.0, 1.0], len(block)),
        "offset": np.concatenate([table, drawn["offset"][block] + first[:, None]], axis=1),
    }


def _draw_rotations(
    n_factors: int, d: int, size: int, parts: int, rng: np.random.Generator
) -> np.ndarray:
    """Indices into (x, -x, 0), one row per real rotation: sign, permutation and padding at once."""
    gather = np.full((n_factors * parts, size), 2 * d, dtype=np.uint32)
    for k in range(n_factors):
        places = rng.permutation(size)[:d]
        signs = rng.integers(0, 2 * parts, d)
        signed = np.arange(d) + d * (signs % 2)
        for part in range(parts):
            chosen = signs // 2 == part
            gather[k * parts + part, places[chosen]] = signed[chosen]
    return gather
