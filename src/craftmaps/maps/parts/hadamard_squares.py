"""Squares of features for a fold: four slices of products times four others make 16 slices.

A feature of degree n is a product of n rotated entries. Slices P_0, ..., P_3 hold products of the
first n // 2 factors, slices Q_0, ..., Q_3 hold products of the others, and the 16 slices P_a Q_b
are features. Only 8 slices are multiplied from rotated entries instead of 16, and the other
multiplications read the first-level cache once for four slices.

- P_a Q_b and P_a Q_c share entries, so they are correlated. They are never added to the same column
  of the fold, where shared entries would add to the variance of the down-projection. The variance
  of the up-projection grows by about a quarter, which `DegreeStatistics.shared` predicts.
- P_a Q_b and P_c Q_d with a != c and b != d share no entry. Four of them are added to the same
  column, or two if the columns then get more equal numbers of features.
- Four slices of a factor that are a quarter of a rotated row long contain every entry once, which
  keeps the variance below the variance of independent features.
"""

import math
from typing import NamedTuple

import numpy as np

from craftmaps.loops.hadamard import GROUPS, HALF, LANES, MAX_FACTORS, SIDE, meeting
from craftmaps.maps.parts.hadamard_runs import SLICE, aligned_step

_IN_SQUARE = SIDE * SIDE
_MIN_SLICE = 64  # entries of a slice; shorter slices gain less and make model files large
_MIN_COLUMNS = 512  # columns of the fold; with fewer, slices are short
_MAX_IMBALANCE = 0.02  # variance of the fold that unequal numbers of features per column may add
_MIN_RATIO = 3.99  # features per column; with fewer, squares would make most of the error
_MAX_SHARE = 1 / 16  # share of all products of a degree that is drawn without checking for repeats


class Shape(NamedTuple):
    """Squares of features of rows with `size` entries, for a fold into `fold` columns.

    Slices have at most `longest` entries, and `group` of them are added into the same columns.
    """

    size: int
    fold: int
    longest: int
    group: int

    @classmethod
    def of(cls, n_features: int, size: int, fold: int) -> "Shape | None":
        """Return the best shape, or None if the fold is better without squares.

        The number of features of each column is a multiple of `group`. If the ratio of features to
        columns is not such a multiple, these numbers differ by `group`, which adds to the variance
        of the fold.
        """
        ratio = n_features / fold
        for group in GROUPS:
            part, most = ratio / group % 1, _MAX_IMBALANCE * ratio * (ratio - 1)
            if ratio >= _MIN_RATIO and part * (1 - part) * group**2 <= most:
                shape = cls(size, fold, min(size // SIDE, SLICE), group)
                fits = shape.n_columns // shape.n_groups // LANES * LANES
                shape = shape._replace(longest=min(shape.longest, fits))
                large = fold >= _MIN_COLUMNS and shape.longest >= _MIN_SLICE
                return shape if large else None
        return None

    @property
    def n_columns(self) -> int:
        """Number of columns to fill in each round, so that slices stay aligned."""
        return self.fold // LANES * LANES

    @property
    def n_groups(self) -> int:
        """Number of slices of a square with different columns."""
        return _IN_SQUARE // self.group


def squares(
    counts: np.ndarray,
    weights: np.ndarray,
    shape: Shape,
    occupied: int,
    rng: np.random.Generator,
) -> tuple[list[dict[str, np.ndarray]], np.ndarray, int]:
    """Draw squares for as many of counts[n] features of each degree n as possible.

    Returns the blocks of each degree, the number of features of each degree that are left, and the
    column of the fold where these begin. The blocks of a square follow each other, and P_a Q_b is
    block SIDE a + b.
    """
    left, pieces = counts.copy(), []
    position = occupied + -occupied % LANES
    for n in range(2, min(len(counts), 2 * MAX_FACTORS + 1)):
        if not weights[n] or counts[n] > _MAX_SHARE * float(shape.size) ** n:
            continue
        n_whole, rest = divmod(int(counts[n]), _IN_SQUARE * shape.longest)
        lengths = np.full(n_whole + 1, shape.longest)
        lengths[-1] = rest // _IN_SQUARE // LANES * LANES
        lengths = lengths[lengths > 0]
        if len(lengths):
            pieces.append(_of_degree(n, lengths, shape, position, rng))
            pieces[-1]["scale"] *= math.sqrt(weights[n])
            position += shape.n_groups * int(lengths.sum())
            left[n] -= _IN_SQUARE * int(lengths.sum())
    return pieces, left, position % shape.n_columns


def _of_degree(
    n: int, lengths: np.ndarray, shape: Shape, position: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw blocks of squares of degree n; the first block begins in the column of `position`."""
    offsets = _offsets(n, lengths, shape, rng)
    sign = rng.choice([-1.0, 1.0], (len(lengths), SIDE))
    starts = position + shape.n_groups * (np.cumsum(lengths) - lengths)
    square, first, last = _cut(starts, lengths, shape)
    a, b = np.divmod(np.arange(_IN_SQUARE), SIDE)
    *_, where, signs = np.transpose(meeting(shape.group))
    place = starts[square, None] + where * lengths[square, None] + first[:, None]
    rounds, column = np.divmod(place, shape.n_columns)
    # every other round begins further right, so that the last columns get features too
    column += (shape.fold - shape.n_columns) * (rounds % 2)
    half = n // 2
    P, Q = offsets[square][:, a, :half], offsets[square][:, b, half:]
    table = P[:, :, :1]  # one sign for each entry of the first factor
    offset = (np.concatenate([table, P, Q], axis=2) + first[:, None, None]) % shape.size
    n_blocks = column.size
    return {
        "set": np.zeros(n_blocks, dtype=np.int64),
        "factors": np.full(n_blocks, n),
        "length": np.repeat(last - first, _IN_SQUARE),
        "column": column.ravel(),
        "scale": (sign[square][:, a] * signs).ravel(),
        "offset": offset.reshape(n_blocks, 1 + n),
    }


def _offsets(n: int, lengths: np.ndarray, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Draw where the slices of each square and side begin in each of the n factors.

    Consecutive slices of one or more sides together contain each entry of a rotated row once, in a
    different order for each factor.
    """
    size, longest = shape.size, shape.longest
    step = aligned_step(n, _IN_SQUARE * int(lengths.sum()), size, LANES)
    n_slices = size // longest // SIDE * SIDE
    n_rounds = -(-SIDE * len(lengths) // n_slices)
    order = rng.permuted(np.tile(np.arange(n_slices), (n_rounds, n, 1)), axis=2)
    start = step * rng.integers(0, size // step, (n_rounds, n, 1))
    slices = np.moveaxis(start + longest * order, 1, 2).reshape(-1, SIDE, n)
    return np.asarray(slices[: len(lengths)] % size)


def _cut(
    starts: np.ndarray, lengths: np.ndarray, shape: Shape
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut squares where a group of slices continues in the first column.

    Returns the square, the first entry and the last entry of each part.
    """
    group, at = np.divmod(-starts % shape.n_columns, lengths)
    is_cut = (group < shape.n_groups) & (at > 0)
    square = np.repeat(np.arange(len(starts)), 1 + is_cut)
    is_second = np.append(False, square[1:] == square[:-1])
    is_first = np.append(square[1:] == square[:-1], False)
    first = np.where(is_second, at[square], 0)
    last = np.where(is_first, at[square], lengths[square])
    return square, first, last


def are_squares(
    degree: np.ndarray,
    length: np.ndarray,
    column: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray,
) -> bool:
    """Return whether blocks have the structure of squares that the loops expect.

    The first factor of each block is its sign.
    """
    shape = (-1, SIDE, SIDE)
    degree, length, column, scale = (a.reshape(shape) for a in (degree, length, column, scale))
    n, offset = degree[:, 0, 0] - 1, offset[:, 1:].reshape(*degree.shape, -1)
    k = np.arange(offset.shape[3])
    in_p = k < n[:, None] // 2
    in_q = (k < n[:, None]) & ~in_p
    P = np.where(in_p[:, None, None], offset, 0)
    Q = np.where(in_q[:, None, None], offset, 0)
    in_groups = np.zeros(len(column), dtype=bool)
    for group in GROUPS:
        *_, where, signs = np.transpose(meeting(group))
        first = [int(np.argmax(where == place)) for place in where]
        meets = column.reshape(-1, _IN_SQUARE)[:, first].reshape(column.shape)
        plus = scale * signs.reshape(SIDE, SIDE)
        same = (column == meets) & (plus == plus[:, :, :1])
        in_groups |= same.all(axis=(1, 2))
    return bool(
        ((n >= 2) & (n <= 2 * MAX_FACTORS)).all()
        and (degree == degree[:, :1, :1]).all()
        and (length == length[:, :1, :1]).all()
        and not (length % HALF).any()
        and in_groups.all()
        and (P[:, :, :1] == P).all()
        and (Q[:, :1] == Q).all()
    )
