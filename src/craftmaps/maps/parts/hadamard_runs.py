"""Draw the features of `HadamardProducts`: runs, and their columns in a fold."""

import math

import numpy as np

from craftmaps.loops.hadamard import HALF

SLICE = 256  # features computed at a time; rotated rows repeat this many entries at their end
N_SIGNS = 1024  # size of the table from which slices of a fold take their signs
_MAX_DISTINCT_RUNS = 1 << 40  # below this many choices, runs are drawn without replacement


def runs(n: int, count: int, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw blocks for `count` features of degree n: runs of up to `size`, cut into slices.

    The offsets (o_1, ..., o_n) define a run up to a common shift, so there are size^(n-1) runs.
    """
    n_runs, step = -(-count // size), aligned_step(n, count, size, HALF)
    choices = (size // step) ** (n - 1)
    n_sets = -(-n_runs // choices)
    if choices < _MAX_DISTINCT_RUNS:
        picks = np.concatenate(
            [
                rng.choice(choices, min(choices, n_runs - s * choices), replace=False)
                for s in range(n_sets)
            ]
        )
        differences = (picks[:, None] // (size // step) ** np.arange(n - 1)) % (size // step)
    else:  # with so many choices, two equal runs are practically impossible
        differences = rng.integers(0, size // step, (n_runs, n - 1))
    start = rng.integers(0, size // step, (n_runs, 1))
    offsets = step * np.concatenate([start, start + differences], axis=1)
    slices = np.arange(0, size, min(size, SLICE))
    run = np.repeat(np.arange(n_runs), len(slices))
    within = np.tile(slices, n_runs)
    feature = run * size + within
    kept = feature < count
    run, within, feature = run[kept], within[kept], feature[kept]
    ends = np.append(feature[1:], count)
    return {
        "set": run // min(choices, n_runs),  # choices may exceed any integer type
        "factors": np.full(len(run), n),
        "length": ends - feature,
        "column": feature,
        "offset": (offsets[run] + within[:, None]) % size,
    }


def aligned_step(n: int, count: int, size: int, lanes: int) -> int:
    """Return the step of the offsets of `count` features of degree n.

    Multiples of the `lanes` of a vector keep loads aligned. If there are too few of them, the step
    is smaller, because two runs are correlated if their offsets differ by the same number in two
    factors.
    """
    n_runs = -(-count // size)
    alike = lanes * n_runs * math.comb(n, 2) / (size * 2 ** (n - 2)) if n > 2 else 0.0
    return lanes if size >= 64 and n_runs <= (size // lanes) ** (n - 1) and alike < 0.25 else 1


def joined(pieces: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join the blocks of all degrees, with offsets padded to the highest degree."""
    most = max((piece["offset"].shape[1] for piece in pieces), default=0)
    empty: dict[str, np.ndarray] = {
        name: np.zeros(0, dtype=np.int64) for name in ("set", "factors", "length", "column")
    }
    empty |= {"scale": np.zeros(0), "offset": np.zeros((0, most), dtype=np.int64)}
    for piece in pieces:
        missing = most - piece["offset"].shape[1]
        piece["offset"] = np.pad(piece["offset"], ((0, 0), (0, missing)))
    return {name: np.concatenate([empty[name], *(p[name] for p in pieces)]) for name in empty}


def folded(
    drawn: dict[str, np.ndarray], fold: int, own_signs: bool, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Place blocks in `fold` columns, cut them where they wrap around, and add signs as a factor.

    The sign of a feature is the sign of its block times an entry of the table of signs. Blocks that
    are added to the same column have independent signs, so the fold is unbiased. With `own_signs`,
    the table has one sign for each entry of the first factor.
    """
    place = drawn["column"] % fold
    n_cuts = (place + drawn["length"] - 1) // fold + 1
    block = np.repeat(np.arange(len(place)), n_cuts)
    cut = np.arange(len(block)) - np.repeat(np.cumsum(n_cuts) - n_cuts, n_cuts)
    first = np.maximum(0, cut * fold - place[block])
    last = np.minimum(drawn["length"][block], (cut + 1) * fold - place[block])
    offset = drawn["offset"][block] + first[:, None]
    drawn_signs = None if own_signs else rng.integers(0, N_SIGNS // HALF, (len(block), 1))
    table = offset[:, :1] if drawn_signs is None else HALF * drawn_signs
    return {
        "set": drawn["set"][block],
        "factors": drawn["factors"][block],
        "length": last - first,
        "column": (place[block] + first) % fold,
        "scale": drawn["scale"][block] * rng.choice([-1.0, 1.0], len(block)),
        "offset": np.concatenate([table, offset], axis=1),
    }
