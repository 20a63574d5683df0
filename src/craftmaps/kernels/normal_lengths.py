"""Lengths of normal vectors, spread evenly over their distribution."""

import numpy as np
from scipy.special import gammaincinv


def normal_lengths(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """The lengths |g| of n standard normal vectors in d dimensions, in random order.

    Each has the chi distribution, but together they have one in each n-th of it (stratified
    sampling): sums over them vary less than over independent ones.
    """
    levels = (rng.permutation(n) + rng.random(n)) / n
    return np.asarray(np.sqrt(2 * gammaincinv(d / 2, levels)))
