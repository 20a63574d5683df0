"""A statistical test with a stated false-alarm rate, which also shows what it is able to see."""

import numpy as np
from scipy import stats

# If the library is right, the chance that any statistical test of the suite fails for a new
# choice of seeds is below SUITE: at most COMPARISONS means are compared, each at an equal share
# (Bonferroni), by Student's t, whose normality holds because every estimate is a sum of many.
SUITE = 1e-6
COMPARISONS = 2000
# A bias of the stated size is found with at least this many standard errors to spare (97.7 %).
SPARE = 2.0


class Biased(AssertionError):
    """The mean of the estimates is not what it should be."""


def threshold(n_estimates):
    """How many standard errors a mean may lie off its expectation."""
    return stats.t.isf(SUITE / COMPARISONS / 2, n_estimates - 1)


def check_unbiased(estimates, expected, smallest):
    """Raise `Biased` unless each column of `estimates` has the expected mean.

    Parameters
    ----------
    estimates : array of shape (n_seeds, n_quantities), rows independent
    expected : array of shape (n_quantities,)
    smallest : the bias, relative to `expected`, that must be seen; if the sample is too small to
        see it, the test is of no use and fails for that reason.
    """
    estimates = np.asarray(estimates, dtype=float)
    expected = np.asarray(expected, dtype=float)
    limit = threshold(len(estimates))
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    rounding = 1e-12 * np.abs(expected)
    visible = (limit + SPARE) * error
    assert (visible <= smallest * np.abs(expected)).all(), (
        f"too few seeds: they show a bias of {visible / np.abs(expected)}, not of {smallest}"
    )
    off = np.abs(estimates.mean(axis=0) - expected) / (error + rounding)
    if (off > limit).any():
        raise Biased(
            f"means {estimates.mean(axis=0)} instead of {expected}: {off.max():.1f} standard "
            f"errors off, where {limit:.1f} are allowed"
        )


def kernel_estimates(make_map, X, pairs, seeds):
    """<z(x), z(y)> for each seed (rows) and each pair of rows of X (columns)."""
    left, right = np.transpose(pairs)
    estimates = []
    for seed in seeds:
        Z = make_map(seed).fit_transform(X)
        estimates.append(np.einsum("ij,ij->i", Z[left], Z[right]))
    return np.array(estimates)


def check_map(make_map, kernel, X, pairs, smallest=0.03):
    """Raise `Biased` unless the map that `make_map(seed)` makes is unbiased for `kernel`.

    A pilot of 40 seeds tells how many others it takes to see the smallest bias (Stein 1945). If
    it was wrong about the spread, more are added; their number never depends on the means.
    """
    expected = np.array([float(kernel.value(X[i] @ X[j])) for i, j in pairs])
    pilot = kernel_estimates(make_map, X, pairs, range(10**6, 10**6 + 40))
    estimates = np.empty((0, len(pairs)))
    for _ in range(4):
        seen = estimates if len(estimates) else pilot
        spread = (seen.std(axis=0, ddof=1) / np.abs(expected)).max()
        needed = 50 + int(1.1 * ((threshold(100) + SPARE) * spread / smallest) ** 2)
        if needed > len(estimates):
            more = kernel_estimates(make_map, X, pairs, range(len(estimates), needed))
            estimates = np.concatenate([estimates, more])
    check_unbiased(estimates, expected, smallest)
