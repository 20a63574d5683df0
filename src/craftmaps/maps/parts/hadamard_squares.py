"""Squares of features for a fold: four slices of products times four others make 16 slices.

A feature of degree n is a product of n rotated entries. Slices P_0, ..., P_3 hold products of the
first n // 2 factors, slices Q_0, ..., Q_3 hold products of the others, and the 16 slices P_a Q_b
are features. Only 8 slices are multiplied from rotated entries instead of 16, and the other
multiplications read the first-level cache once for four slices.

- P_a Q_b and P_a Q_c share entries, so they are correlated. They are never added to the same column
  of the fold, where shared entries would add to the variance of the down-projection. The variance
  of the up-projection grows by about a quarter, which `DegreeStatistics.shared` predicts.
- P_a Q_b and P_c Q_d with a != c and b != d share no entry. `GROUP` of them are added to the same
  column.
- Four slices of a factor that are a quarter of a rotated row long contain every entry once, which
  keeps the variance below the variance of independent features.
"""

import math

import numpy as np

from craftmaps.loops.hadamard import GROUP, LANES, MAX_FACTORS, SIDE
from craftmaps.maps.parts.hadamard_runs import SLICE, aligned_step

_IN_SQUARE = SIDE * SIDE
_MIN_SLICE = 64  # entries of a slice; shorter slices gain less and make model files large
_MAX_IMBALANCE = 0.02  # variance of the fold that unequal numbers of features per column may add
_MAX_SHARE = 1 / 16  # share of all products of a degree that is drawn without checking for repeats


def longest_slice(n_features: int, size: int, fold: int) -> int:
    """Return the length of the slices of whole squares, or 0 if the fold is better without them.

    Each column of the fold gets a multiple of `GROUP` features. If the ratio of features to columns
    is not such a multiple, the numbers of features per column differ by `GROUP`, which adds to the
    variance of the fold. Slices of a square that are not added to each other have different
    columns.
    """
    ratio = n_features / fold
    part = ratio / GROUP % 1
    if ratio < 2 * GROUP:
        return 0
    if part * (1 - part) * GROUP**2 > _MAX_IMBALANCE * ratio * (ratio - 1):
        return 0
    longest = min(size // SIDE, SLICE, _whole(fold) * GROUP // _IN_SQUARE // LANES * LANES)
    return longest if longest >= _MIN_SLICE else 0


def squares(
    counts: np.ndarray,
    weights: np.ndarray,
    size: int,
    longest: int,
    fold: int,
    occupied: int,
    rng: np.random.Generator,
) -> tuple[list[dict[str, np.ndarray]], np.ndarray, int]:
    """Draw squares with slices of at most `longest` for as many of counts[n] features as possible.

    Returns the blocks of each degree, the number of features of each degree that are left, and the
    column of the fold where these begin. The blocks of a square follow each other, and P_a Q_b is
    block SIDE a + b.
    """
    left, pieces = counts.copy(), []
    position = occupied + -occupied % LANES
    for n in range(2, min(len(counts), 2 * MAX_FACTORS + 1)):
        if not weights[n] or counts[n] > _MAX_SHARE * float(size) ** n:
            continue
        n_whole, rest = divmod(int(counts[n]), _IN_SQUARE * longest)
        lengths = np.full(n_whole + 1, longest)
        lengths[-1] = rest // _IN_SQUARE // LANES * LANES
        lengths = lengths[lengths > 0]
        if len(lengths):
            pieces.append(_of_degree(n, lengths, size, longest, fold, position, rng))
            pieces[-1]["scale"] *= math.sqrt(weights[n])
            position += SIDE * SIDE // GROUP * int(lengths.sum())
            left[n] -= _IN_SQUARE * int(lengths.sum())
    return pieces, left, position % _whole(fold)


def _whole(fold: int) -> int:
    """Return the number of columns to fill in each round, so that slices stay aligned."""
    return fold // LANES * LANES


def _of_degree(
    n: int,
    lengths: np.ndarray,
    size: int,
    longest: int,
    fold: int,
    position: int,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Draw blocks of squares of degree n; the first block begins in the column of `position`."""
    offsets = _offsets(n, lengths, size, longest, rng)
    sign = rng.choice([-1.0, 1.0], (len(lengths), SIDE))
    starts = position + _IN_SQUARE // GROUP * (np.cumsum(lengths) - lengths)
    square, first, last = _cut(starts, lengths, _whole(fold))
    a, b = np.divmod(np.arange(_IN_SQUARE), SIDE)
    group = (b - a) % SIDE * (SIDE // GROUP) + a // GROUP
    place = starts[square, None] + group * lengths[square, None] + first[:, None]
    rounds, column = np.divmod(place, _whole(fold))
    column += (fold - _whole(fold)) * (rounds % 2)  # so that the last columns get features too
    half = n // 2
    P, Q = offsets[square][:, a, :half], offsets[square][:, b, half:]
    signs = P[:, :, :1]  # one for each entry of the first factor
    offset = (np.concatenate([signs, P, Q], axis=2) + first[:, None, None]) % size
    n_blocks = column.size
    return {
        "set": np.zeros(n_blocks, dtype=np.int64),
        "factors": np.full(n_blocks, n),
        "length": np.repeat(last - first, _IN_SQUARE),
        "column": column.ravel(),
        "scale": sign[square][:, a].ravel(),
        "offset": offset.reshape(n_blocks, 1 + n),
    }


def _offsets(
    n: int, lengths: np.ndarray, size: int, longest: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw where the slices of each square and side begin in each of the n factors.

    Consecutive slices of one or more sides together contain each entry of a rotated row once, in a
    different order for each factor.
    """
    step = aligned_step(n, _IN_SQUARE * int(lengths.sum()), size)
    n_slices = size // longest // SIDE * SIDE
    n_rounds = -(-SIDE * len(lengths) // n_slices)
    order = rng.permuted(np.tile(np.arange(n_slices), (n_rounds, n, 1)), axis=2)
    start = step * rng.integers(0, size // step, (n_rounds, n, 1))
    slices = np.moveaxis(start + longest * order, 1, 2).reshape(-1, SIDE, n)
    return np.asarray(slices[: len(lengths)] % size)


def _cut(
    starts: np.ndarray, lengths: np.ndarray, n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut squares where a group of slices continues in the first column.

    Returns the square, the first entry and the last entry of each part.
    """
    group, at = np.divmod(-starts % n_columns, lengths)
    is_cut = (group < _IN_SQUARE // GROUP) & (at > 0)
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
    a, b = np.divmod(np.arange(_IN_SQUARE), SIDE)
    begin = a // GROUP * GROUP
    meets = column[:, begin, (b - a + begin) % SIDE]  # the column of the first of each group
    return bool(
        ((n >= 2) & (n <= 2 * MAX_FACTORS)).all()
        and (degree == degree[:, :1, :1]).all()
        and (length == length[:, :1, :1]).all()
        and not (length % LANES).any()
        and (column == meets.reshape(column.shape)).all()
        and (scale == scale[:, :, :1]).all()
        and (P[:, :, :1] == P).all()
        and (Q[:, :1] == Q).all()
    )
