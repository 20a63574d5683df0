"""Bandwidths that the data suggests: lengths over which rows differ."""

from typing import Any

import numpy as np
from scipy import sparse

_SAMPLE_ROWS = 512
_SEED = 20070913  # fixed: a kernel has no random state, and equal rows must give equal bandwidths


def variance(X: Any) -> float:
    """The variance of all entries of X; 1 where they are all equal."""
    if sparse.issparse(X):
        X = X.astype(np.float64)
        mean = X.mean()
        found = float(X.multiply(X).mean() - mean**2)
    else:
        found = float(np.var(X, dtype=np.float64))
    return found if found > 0 else 1.0


def median_distance(X: Any, metric: str) -> float:
    """The median distance between two different rows of a sample of X; 1 where it is 0."""
    from sklearn.metrics import pairwise_distances  # slow to import, seldom needed

    n_rows = X.shape[0]
    if n_rows > _SAMPLE_ROWS:
        rows = np.random.default_rng(_SEED).choice(n_rows, _SAMPLE_ROWS, replace=False)
        X = X[np.sort(rows)]
    distances = pairwise_distances(X.astype(np.float64), metric=metric)[
        np.triu_indices(X.shape[0], k=1)
    ]
    found = float(np.median(distances)) if distances.size else 0.0
    return found if found > 0 else 1.0
