"""CPU time of the maps alone (PP Figure 2)."""

import time

import numpy as np
from sklearn.preprocessing import normalize

from craftmaps.threads import at_most_threads
from reproduction.datasets import load
from reproduction.dot_maps import MAPS, kernel_of, map_of
from reproduction.spec import Run

METHODS = MAPS


def measure(run: Run) -> dict[str, float]:
    """CPU seconds on one thread: of drawing the map, and of mapping all rows.

    Without a data set, rows are drawn that have as many columns as the map.
    """
    size, seed = run["size"], run["seed"]
    rng = np.random.default_rng(seed)
    if "data" in run:
        X = load(run["data"]).X_train
        X = X[rng.choice(len(X), min(run["rows"], len(X)), replace=False)].astype(float)
    else:
        X = rng.standard_normal((run["rows"], size))
    X = normalize(X)
    kernel = kernel_of(run["kernel"], X)
    with at_most_threads(1):
        drawn = map_of(run["method"], kernel, size, n_columns=X.shape[1], seed=seed)
        drawn.fit(X[:64]).transform(X[:64])  # compiles
        start = time.process_time()
        drawn.fit(X)
        fitted = time.process_time()
        drawn.transform(X)
        end = time.process_time()
    return {"seconds": end - start, "draw_seconds": fitted - start, "map_seconds": end - fitted}
