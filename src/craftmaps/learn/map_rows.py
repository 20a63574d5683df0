"""The rows that a feature map is fitted on: a uniform sample that depends on places alone.

A row is in the sample because of its place in the stream, not because of its values or of how the
stream is cut into blocks. So an array, a folder of files and a cluster choose the same rows, and a
file that is sorted by its target is sampled as evenly as a shuffled one.
"""

import numpy as np

DEFAULT_MAP_ROWS = 10_000


def sample_places(n_rows: int, size: int) -> np.ndarray:
    """Sorted places of a uniform sample of `size` among `n_rows` rows, or of all if they are fewer.

    Examples
    --------
    >>> sample_places(n_rows=1_000_000, size=3)
    array([     0,  70274, 573549])
    >>> sample_places(n_rows=3, size=10)
    array([0, 1, 2])
    """
    if n_rows <= size:
        return np.arange(n_rows)
    priority = place_priority(np.arange(n_rows))
    return np.sort(np.argpartition(priority, size)[:size])


def place_priority(places: np.ndarray) -> np.ndarray:
    """Well mixed 64-bit numbers, one for each place (the finalizer of splitmix64)."""
    x = places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
