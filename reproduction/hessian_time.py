"""CPU time of projection and Hessian (CRAFT Figure 7c)."""

import time

import numpy as np

from craftmaps.learn import NormalEquations
from craftmaps.threads import at_most_threads
from reproduction.methods import feature_map, kernel_of
from reproduction.rows import unit_rows
from reproduction.spec import Run

_TIMED_ROWS = 8192


def measure(run: Run) -> dict[str, float]:
    """CPU seconds of one thread for all training rows, from those of a part of them."""
    X = unit_rows(run["data"], run["seed"]).X_train[: run.get("train_rows")]
    rows = X[:_TIMED_ROWS]
    n_columns = X.shape[1]
    drawn = feature_map(
        run["method"], kernel_of(run), run["size"], n_columns=n_columns, seed=run["seed"]
    )
    with at_most_threads(1):
        drawn.fit(X).transform(rows[:64])  # compiles
        start = time.process_time()
        Z = drawn.transform(rows)
        NormalEquations().update(Z, np.ones((len(Z), 1), dtype=Z.dtype))
        took = time.process_time() - start
    return {"compute_seconds": took * len(X) / len(rows)}
