"""How far estimates of kernel values are off, pair by pair (KK Figure 1, PP Figure 1)."""

import functools

import numpy as np
from sklearn.preprocessing import normalize

from reproduction.datasets import load
from reproduction.dot_maps import MAPS, kernel_of, map_of
from reproduction.spec import Run

METHODS = MAPS


def measure(run: Run) -> dict[str, float]:
    """Mean absolute difference, over all entries of the Gram matrix, and mean relative difference.

    Relative differences are those of pairs of different rows whose kernel value is not 0.
    """
    seed, size = run["seed"], run["size"]
    if "data" in run:
        X = _unit_rows(run["data"], run["rows"], seed)
    else:
        X = ball(run["rows"], run["columns"], seed)
    kernel = kernel_of(run["kernel"], X)
    # of its own for each size: equal streams would repeat an unlucky hash along the whole curve
    own_seed = int(np.random.SeedSequence([seed, size]).generate_state(1)[0])
    drawn = map_of(run["method"], kernel, size, n_columns=X.shape[1], seed=own_seed)
    Z = drawn.fit_transform(X)
    exact = kernel(X)
    off = np.abs(Z @ Z.T - exact)
    pairs = np.triu(exact != 0, k=1)
    return {
        "mean_absolute": float(off.mean()),
        "mean_relative": float((off[pairs] / np.abs(exact[pairs])).mean()),
    }


def ball(n_rows: int, n_columns: int, seed: int) -> np.ndarray:
    """Rows drawn uniformly from the unit ball."""
    rng = np.random.default_rng(seed)
    directions = normalize(rng.standard_normal((n_rows, n_columns)))
    return np.asarray(directions * rng.random((n_rows, 1)) ** (1 / n_columns))


@functools.lru_cache(maxsize=4)
def _unit_rows(name: str, n_rows: int, seed: int) -> np.ndarray:
    data = load(name)
    chosen = np.random.default_rng(seed).choice(len(data.X_train), n_rows, replace=False)
    return np.asarray(normalize(data.X_train[chosen].astype(float)))
