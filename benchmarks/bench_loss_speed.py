"""What fits with losses cost: against bare BLAS, against scikit-learn, and as features grow."""

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack
from scipy.special import logsumexp
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from benchmarks.bench_losses import cpu_seconds, craft, unit_rows
from benchmarks.harness import DATA, table
from craftmaps import KernelClassifier, OnePassClassifier

SPEED_FEATURES, SPEED_ROWS = 4096, 60_000
BLOCK_ROWS = 4096
PEER_FEATURES, PEER_ALPHA, PEER_ITERATIONS = 1024, 1.0, 1000
TOLERANCES = (1e-3, 1e-4, 1e-5)
WARM_ROWS = 2000  # of a first fit, which compiles the loops
GROWTH_FEATURES, GROWTH_ROWS = (256, 512, 1024, 2048), 32_768


def report() -> str:
    if not DATA:
        return "## Cost of losses\n\nSkipped: CRAFTMAPS_DATA is not set."
    return "\n".join(["## Cost of losses\n", *(part() for part in (speed, growth, peers))])


def speed() -> str:
    """CPU time of fits against the least that squared loss can cost."""
    X, y, X_test, y_test = unit_rows("mnist")
    X, y = X[:SPEED_ROWS], y[:SPEED_ROWS]
    feature_map = craft("mnist", SPEED_FEATURES, 0).fit(X)
    bare = bare_seconds(feature_map.transform(X))
    fixed = FrozenEstimator(feature_map)
    models = {
        "OnePassClassifier, alpha given": OnePassClassifier(fixed, alpha=1.0),
        "OnePassClassifier": OnePassClassifier(fixed),
        "KernelClassifier, log-loss": KernelClassifier(fixed),
    }
    lines = []
    for name, model in models.items():
        seconds, _ = cpu_seconds(lambda model=model: model.fit(X, y))  # type: ignore[misc]
        wrong = 100 * np.mean(model.predict(X_test) != y_test)
        lines.append([name, f"{seconds:.1f}", f"{seconds / bare:.2f}", f"{wrong:.2f}"])
    return (
        f"CPU time of fits of {len(X):,} rows of MNIST, CraftMap with {SPEED_FEATURES:,} features "
        f"and D = 8 E, against ssyrk of the features and one Cholesky factorization "
        f"({bare:.1f} s).\n\n" + table(["fit", "CPU s", "times bare BLAS", "wrong, %"], lines)
    )


def bare_seconds(Z: np.ndarray) -> float:
    """CPU time of the products of float32 features, and of one factorization in float64."""
    return cpu_seconds(lambda: bare_blas(Z))[0]


def bare_blas(Z: np.ndarray) -> None:
    size = Z.shape[1]
    H = np.zeros((size, size), np.float32, order="F")
    for start in range(0, len(Z), BLOCK_ROWS):
        blas.ssyrk(1.0, Z[start : start + BLOCK_ROWS].T, 1.0, H, lower=1, overwrite_c=1)
    system = H.astype(np.float64, order="F")
    np.fill_diagonal(system, system.diagonal() + 1.0)
    lapack.dpotrf(system, lower=1, overwrite_a=1)


def peers() -> str:
    """CPU time to the objective that scikit-learn's LogisticRegression reaches by default."""
    X, y, *_ = unit_rows("mnist")
    Z = craft("mnist", PEER_FEATURES, 0).fit_transform(X)
    KernelClassifier(None, loss="log", alpha=PEER_ALPHA).fit(Z[:WARM_ROWS], y[:WARM_ROWS])
    theirs = LogisticRegression(C=1 / PEER_ALPHA, max_iter=PEER_ITERATIONS)
    their_seconds, _ = cpu_seconds(lambda: theirs.fit(Z, y))
    goal = objective(theirs, Z, y, PEER_ALPHA)
    lines: list[list[Any]] = [
        [f"LogisticRegression, {int(theirs.n_iter_[0])} iterations", f"{goal:.4f}"]
    ]
    lines[0] += [f"{their_seconds:.1f}", ""]
    for tol in TOLERANCES:
        ours = KernelClassifier(None, loss="log", alpha=PEER_ALPHA, tol=tol)
        seconds, _ = cpu_seconds(lambda ours=ours: ours.fit(Z, y))  # type: ignore[misc]
        reached = objective(ours, Z, y, PEER_ALPHA)
        name = f"KernelClassifier, tol = {tol:g}"
        lines.append([name, f"{reached:.4f}", f"{seconds:.1f}", f"{their_seconds / seconds:.1f} x"])
    return (
        f"CPU time to the objective of scikit-learn's LogisticRegression (lbfgs, its default "
        f"tolerance), on the same features of {len(Z):,} rows of MNIST, CraftMap with "
        f"{PEER_FEATURES:,} features and D = 8 E, with the same penalty, alpha = {PEER_ALPHA:g}. "
        f"The bar is 5 x at an objective that is not larger.\n\n"
        + table(["fit", "objective", "CPU s", "speed"], lines)
    )


def objective(model: Any, Z: np.ndarray, y: np.ndarray, alpha: float) -> float:
    """Sum of the log-losses of all rows, and the penalty."""
    scores = model.decision_function(Z).astype(np.float64)
    own = scores[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    penalty = alpha / 2 * np.square(model.coef_, dtype=np.float64).sum()
    return float((logsumexp(scores, axis=1) - own).sum() + penalty)


def growth() -> str:
    """CPU time of log-loss fits, alpha search included, as the number of features grows."""
    X, y, *_ = unit_rows("mnist")
    X, y = X[:GROWTH_ROWS], y[:GROWTH_ROWS]
    craft_map = FrozenEstimator(craft("mnist", GROWTH_FEATURES[0], 0).fit(X))
    KernelClassifier(craft_map, loss="log").fit(X[:WARM_ROWS], y[:WARM_ROWS])
    seconds = []
    for size in GROWTH_FEATURES:
        model = KernelClassifier(FrozenEstimator(craft("mnist", size, 0).fit(X)), loss="log")
        seconds.append(cpu_seconds(lambda model=model: model.fit(X, y))[0])  # type: ignore[misc]
    slope = np.polyfit(np.log(GROWTH_FEATURES), np.log(seconds), 1)[0]
    return (
        f"CPU time of log-loss fits of {len(X):,} rows of MNIST, CraftMap with D = 8 E, alpha "
        f"chosen by the learner. The slope of log time against log E is {slope:.2f}, and the bar "
        f"is 1.5.\n\n"
        + table(
            ["E", *map(str, GROWTH_FEATURES)], [["CPU s", *(f"{spent:.1f}" for spent in seconds)]]
        )
    )
