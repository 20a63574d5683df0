"""Losses and penalties: errors, probabilities and the choice of alpha."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
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
PROBABILITIES = ("mnist", "letter", "a9a", "covertype")
TRAINING_ROWS = 20_000  # at most, for probabilities
BINS = 15  # of probabilities, for the calibration error
SEEDS = 3
OWN_CLASS_SIZES = {"pendigits": (64, 128, 256, 512), "letter": (256, 512)}


def report() -> str:
    if not DATA:
        return "## Losses and penalties\n\nSkipped: CRAFTMAPS_DATA is not set."
    parts = (own_class, errors, probabilities, penalties)
    return "\n".join(["## Losses and penalties\n", *(part() for part in parts)])


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
                    fixed = FrozenEstimator(
                        FourierFeatures(n_components=size, random_state=seed).fit(X)
                    )
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
