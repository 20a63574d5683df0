"""Losses and penalties: errors, probabilities, the choice of alpha, and what the fits cost."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack
from scipy.special import logsumexp
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.harness import DATA, table
from craftmaps import (
    CraftMap,
    FourierFeatures,
    KernelClassifier,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
)

SIZES = {"pendigits": (64, 128, 256, 512), "mnist": (300, 512, 1024)}
DEGREES = {"pendigits": 9, "mnist": 7}
TABLES = ("airfoil", "concrete", "wine", "elevators")
PROBABILITIES = ("letter", "a9a", "covertype")
SPEED_FEATURES, SPEED_ROWS = 4096, 60_000
TRAINING_ROWS = 20_000  # at most, for probabilities
BLOCK_ROWS = 4096
BINS = 15  # of probabilities, for the calibration error
SEEDS = 3
PEER_FEATURES, PEER_ALPHA, PEER_ITERATIONS = 1024, 1.0, 1000
TOLERANCES = (1e-2, 1e-3, 1e-4)  # the last is the default
WARM_ROWS = 2000  # of a first fit, which compiles the loops
GROWTH_FEATURES, GROWTH_ROWS = (256, 512, 1024, 2048), 32_768
OWN_CLASS_SIZES = {"pendigits": (64, 128, 256, 512), "letter": (256, 512)}


def report() -> str:
    if not DATA:
        return "## Losses and penalties\n\nSkipped: CRAFTMAPS_DATA is not set."
    parts = (speed, peers, growth, own_class, errors, probabilities, penalties)
    return "\n".join(["## Losses and penalties\n", *(part() for part in parts)])


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


def own_class() -> str:
    """Errors of one pass with and without a larger weight of each class in its own target."""
    lines = []
    for name, sizes in OWN_CLASS_SIZES.items():
        for size in sizes:
            found = []
            for seed in range(SEEDS):
                if name in DEGREES:
                    X, y, X_test, y_test = unit_rows(name)
                    fixed = FrozenEstimator(craft(name, size, seed).fit(X))
                else:
                    X, y, X_test, y_test = rows(name)
                    X, X_test = standardized(X, X_test)
                    fixed = FrozenEstimator(FourierFeatures(size, random_state=seed).fit(X))
                models = (
                    OnePassClassifier(fixed),
                    OnePassClassifier(fixed, class_sums=True, class_weight="own-class"),
                )
                for model in models:
                    spent, _ = cpu_seconds(lambda model=model: model.fit(X, y))  # type: ignore[misc] # noqa: B023
                    found.append([spent, 100 * np.mean(model.predict(X_test) != y_test)])
            plain, own = np.mean(found[::2], axis=0), np.mean(found[1::2], axis=0)
            cells = [f"{plain[1]:.2f}", f"{own[1]:.2f}", f"{plain[0]:.1f}", f"{own[0]:.1f}"]
            lines.append([name, size, *cells])
    header = ["data", "E", "plain, wrong %", "own-class, wrong %", "plain, CPU s", "own-class"]
    return (
        '`OnePassClassifier` with and without `class_sums=True, class_weight="own-class"`: '
        f"CraftMap with D = 8 E (pendigits) or FourierFeatures (letter), means of {SEEDS} seeds."
        "\n\n" + table(header, lines)
    )


def errors() -> str:
    """Errors of the squared loss and of the log-loss on the same features."""
    lines = []
    for name, sizes in SIZES.items():
        X, y, X_test, y_test = unit_rows(name)
        for size in sizes:
            found = []
            for seed in range(SEEDS):
                fixed = FrozenEstimator(craft(name, size, seed).fit(X))
                models = (OnePassClassifier(fixed), KernelClassifier(fixed))
                found.append([np.mean(m.fit(X, y).predict(X_test) != y_test) for m in models])
            squared, log = 100 * np.mean(found, axis=0)
            lines.append([name, size, f"{squared:.2f}", f"{log:.2f}"])
    return (
        f"Test errors in percent, CraftMap with D = 8 E, rows of length 1, means of {SEEDS} "
        "seeds, alpha chosen by the learners.\n\n"
        + table(["data", "E", "squared loss", "log-loss"], lines)
    )


def probabilities() -> str:
    """Log-loss and calibration error of probabilities for test rows."""
    lines = []
    for name in PROBABILITIES:
        X, y, X_test, y_test = rows(name)
        X, X_test = standardized(X[:TRAINING_ROWS], X_test[:TRAINING_ROWS])
        y, y_test = y[:TRAINING_ROWS], y_test[:TRAINING_ROWS]
        fixed = FrozenEstimator(FourierFeatures(n_components=512, random_state=0).fit(X))
        for label, model in (
            ("squared", OnePassClassifier(fixed)),
            ("log", KernelClassifier(fixed)),
        ):
            p = model.fit(X, y).predict_proba(X_test)
            places = np.searchsorted(model.classes_, y_test)
            loss = -np.log(np.maximum(p[np.arange(len(p)), places], 1e-12)).mean()
            wrong = 100 * np.mean(p.argmax(axis=1) != places)
            cells = (f"{wrong:.2f}", f"{loss:.4f}", f"{calibration_error(p, places):.4f}")
            lines.append([name, label, *cells])
    header = ["data", "loss", "wrong, %", "log-loss", "calibration error"]
    return (
        "Probabilities for test rows: `FourierFeatures(n_components=512)` on standardized "
        f"columns, up to {TRAINING_ROWS:,} training rows, {BINS} bins.\n\n" + table(header, lines)
    )


def calibration_error(p: np.ndarray, places: np.ndarray) -> float:
    """Mean difference of the largest probability and of how often it is right, over bins."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == places
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [
        abs(sure[bins == b].mean() - right[bins == b].mean()) * np.mean(bins == b)
        for b in np.unique(bins)
    ]
    return float(np.sum(gaps))


def penalties() -> str:
    """Errors at the alpha that is chosen, beside the best alpha on the test rows."""
    lines = []
    for name in TABLES:
        with np.load(f"{DATA}/{name}.npz") as data:
            X, y, test = data["X"], data["y"].astype(np.float64), data["test"][0].astype(bool)
        X_train, X_test = standardized(X[~test], X[test])
        fixed = FrozenEstimator(FourierFeatures(n_components=1024, random_state=0).fit(X_train))

        def error(alpha: Any, rows: Any = (X_train, y[~test], X_test, y[test])) -> float:
            model = OnePassRegressor(fixed, alpha=alpha).fit(*rows[:2])  # noqa: B023
            return float(np.sqrt(np.mean((model.predict(rows[2]) - rows[3]) ** 2)) / rows[3].std())

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of alphas that are far too small
            best = min(error(float(alpha)) for alpha in 10.0 ** np.arange(-6, 3.1, 0.5))
            auto, gcv = error("auto"), error("gcv")
        ratio = f"{auto / best:.3f}"
        lines.append([name, int((~test).sum()), f"{best:.4f}", f"{auto:.4f}", ratio, f"{gcv:.4g}"])
    return (
        "RMSE over the standard deviation, `FourierFeatures(n_components=1024)` on standardized "
        "columns, first split. The best alpha is picked on the test rows.\n\n"
        + table(["table", "rows", "best alpha", '"auto"', "ratio", '"gcv"'], lines)
    )


def craft(name: str, size: int, seed: int) -> CraftMap:
    return CraftMap(Polynomial(degree=DEGREES[name]), size, n_up=8 * size, random_state=seed)


def unit_rows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X, y, X_test, y_test = rows(name)
    return normalize(X.astype(np.float32)), y, normalize(X_test.astype(np.float32)), y_test


def rows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows; the split is drawn where the data set has none."""
    with np.load(f"{DATA}/{name}.npz") as data:
        if "X_train" in data.files:
            return data["X_train"], data["y_train"], data["X_test"], data["y_test"]
        X, y = data["X"], data["y"]
    order = np.random.default_rng(0).permutation(len(X))
    cut = len(X) * 3 // 4
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def standardized(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test)


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of this process for one call, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
