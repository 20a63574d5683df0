"""Draw the rotations H P S of `HadamardProducts`: permutations P, signs S and padding.

With 64 entries or more, all rotations share one random arrangement of the columns of a row, in
groups of eight entries. A rotation moves the groups at random, and permutes the entries within each
group at random. Such a permutation needs two vector instructions for sixteen entries, where any
other one gathers them one by one. It is random enough. In one factor, two neighboring features are
as likely to be correlated as after any random permutation. In all factors of a product, they are
correlated only if the large entries of a row share their groups, which the arrangement prevents
except for very few entries.
"""

import numpy as np

from craftmaps.loops.hadamard import HALF, NO_MOVES, SMALLEST, Moves

_NEGATIVE = 128  # added to the code of an entry with a negative sign


def draw_rotations(
    n_factors: int, d: int, size: int, parts: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw indices into (x, -x, 0) for each real rotation: its signs, permutation and padding."""
    gather = np.full((n_factors * parts, size), 2 * d, dtype=np.uint32)
    in_groups = parts == 1 and size >= SMALLEST
    arrangement = rng.permutation(size) if in_groups else np.arange(size)
    for k in range(n_factors):
        order = _moved(arrangement, rng) if in_groups else rng.permutation(size)
        places = np.argsort(order)[:d] if in_groups else order[:d]
        signs = rng.integers(0, 2 * parts, d)
        signed = np.arange(d) + d * (signs % 2)
        for part in range(parts):
            chosen = signs // 2 == part
            gather[k * parts + part, places[chosen]] = signed[chosen]
    return gather


def _moved(arrangement: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move groups of eight entries at random, and permute the entries of each group."""
    groups = rng.permutation(arrangement.reshape(-1, HALF), axis=0)
    return np.asarray(rng.permuted(groups, axis=1).ravel())


def moves_of(gather: np.ndarray, d: int) -> Moves:
    """Return real rotations of d columns as moves of groups, or `NO_MOVES` if they are not.

    The first rotation is the arrangement. Entries of padding move to any entry of padding.
    """
    n_rotations, size = gather.shape
    used = gather < 2 * d
    column = np.where(used, gather % d, d)
    once = np.append(np.arange(d), np.full(max(0, size - d), d))
    if size < SMALLEST or d > size or not n_rotations:
        return NO_MOVES
    if not (np.sort(column, axis=1) == once).all():
        return NO_MOVES  # complex rotations
    place = np.argsort(column[0], kind="stable")
    is_padding = np.append(~used[0], True).nonzero()[0]  # the last one stands for none at all
    pad = np.full(size // HALF, -1)
    pad[is_padding[:-1] // HALF] = is_padding[:-1] % HALF
    source = np.append(place[:d], -1)[column].reshape(n_rotations, -1, HALF)
    used = used.reshape(source.shape)
    group = source.max(axis=2) // HALF
    group[group < 0] = is_padding[0] // HALF  # nothing but padding
    lane = np.where(used, source % HALF, pad[group][:, :, None])
    if not (used <= (source // HALF == group[:, :, None])).all() or (lane < 0).any():
        return NO_MOVES
    other = HALF * (np.arange(size // HALF) % 2)  # so that codes count in vectors of 16 numbers
    negative = (gather >= d) & (gather < 2 * d)
    code = (lane + other[:, None]).reshape(n_rotations, size) + _NEGATIVE * negative
    group = (HALF * group).astype(np.uint32)
    return Moves(place[:d], group.ravel(), code.astype(np.uint8).ravel())
