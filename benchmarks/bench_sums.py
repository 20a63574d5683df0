"""What the sums know: densities, intervals, components, drift and anomalies, beside other tools.

Times are CPU seconds of one thread. GPyTorch and MAPIE take part where they are installed.
"""

import importlib.util
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from benchmarks.harness import DATA, table
from benchmarks.peers_of_sums import exact_process, mapie_interval, permutation_test, svgp
from craftmaps import FourierFeatures, Gaussian, KernelPCA, Matern, OnePassRegressor
from craftmaps.diagnose import anomaly_score, drift

TABLES = ("airfoil", "concrete", "wine", "elevators", "uci_kin8nm", "uci_protein")
TABLES += ("california_housing_raw",)
DENSITIES = ("uci_kin8nm", "california_housing_raw", "uci_protein")
FEATURES = 2048
COMPONENT_FEATURES = 1024
WIDTHS = (0.1, 0.3, 1.0, 3.0)
JUDGED_ROWS = 4000  # by whose leave-one-out errors the kernel and its width are chosen
COVERAGE = 0.9
DRAWS = 1000


def report() -> str:
    if not DATA:
        return "## What the sums know\n\nSkipped: CRAFTMAPS_DATA is not set."
    with threadpool_limits(1):
        parts = [densities(), intervals(), components(), drifts(), anomalies()]
    return "## What the sums know\n\nOne thread; times are CPU seconds.\n\n" + "\n".join(parts)


def rows_of(name: str) -> tuple[np.ndarray, ...]:
    """Standardized rows and targets: four fifths to learn from, and a fifth to test."""
    file = np.load(f"{DATA}/{name}.npz", allow_pickle=False)
    X, y = file["X"].astype(np.float64), file["y"].astype(np.float64).ravel()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
    scaler = StandardScaler().fit(X[train])
    y = (y - y[train].mean()) / y[train].std()
    X = scaler.transform(X).astype(np.float32)
    return X[train], y[train], X[test], y[test]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def chosen_kernel(X: np.ndarray, y: np.ndarray) -> Any:
    """Gaussian or Matern, and a width, by the leave-one-out error of small models."""
    tried = []
    for kind in (Gaussian, Matern):
        gamma = FourierFeatures(kind(), 8, random_state=0).fit(X[:JUDGED_ROWS]).kernel_.gamma
        for width in WIDTHS:
            kernel = kind(gamma=width * gamma)
            feature_map = FourierFeatures(kernel, 256, random_state=0)
            model = OnePassRegressor(feature_map).fit(X[:JUDGED_ROWS], y[:JUDGED_ROWS])
            tried.append((float(model.scores_.min()), kernel))
    return min(tried, key=itemgetter(0))[1]


def ours(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    feature_map = FourierFeatures(chosen_kernel(X, y), FEATURES, random_state=0)
    return OnePassRegressor(feature_map).fit(X, y).predict(new, return_std=True)


def densities() -> str:
    lines = []
    for name in DENSITIES:
        X, y, new, truth = rows_of(name)
        found, seconds = timed(lambda X=X, y=y, new=new: ours(X, y, new))
        results = {f"craftmaps, {FEATURES:,} features": (found, seconds)}
        for factor in (1, 4):
            if importlib.util.find_spec("gpytorch"):
                budget = factor * seconds
                results[f"GPyTorch SVGP, 512 points, {factor} x the time"] = timed(
                    lambda X=X, y=y, new=new, budget=budget: svgp(X, y, new, budget)
                )
        results["scikit-learn exact process, 2,000 rows"] = timed(
            lambda X=X, y=y, new=new: exact_process(X[:2000], y[:2000], new)
        )
        for method, ((mean, std), used) in results.items():
            error = np.sqrt(np.mean((mean - truth) ** 2))
            density = np.mean(0.5 * np.log(2 * np.pi * std**2) + (truth - mean) ** 2 / (2 * std**2))
            lines.append([name, method, f"{error:.3f}", f"{density:.3f}", f"{used:.0f}"])
            print(lines[-1], flush=True)
    header = ["data", "method", "RMSE / std", "negative log density", "seconds"]
    text = "### Predictive densities\n\nOf standardized targets; the smaller, the better.\n\n"
    return text + table(header, lines)


def intervals() -> str:
    lines = []
    for name in TABLES:
        X, y, new, truth = rows_of(name)
        feature_map = FrozenEstimator(FourierFeatures(Matern(), 512, random_state=0).fit(X[:4000]))

        def own(X: Any = X, y: Any = y, new: Any = new, feature_map: Any = feature_map) -> Any:
            return OnePassRegressor(feature_map).fit(X, y).predict_interval(new, COVERAGE)

        results = {"craftmaps": timed(own)}
        if importlib.util.find_spec("mapie"):
            results["MAPIE, CV+ of 5 folds"] = timed(
                lambda X=X, y=y, new=new, m=feature_map: mapie_interval(m, X, y, new, COVERAGE)
            )
        error = np.sqrt(COVERAGE * (1 - COVERAGE) * (1 / len(truth) + 1 / min(1024, len(y))))
        for method, (ends, used) in results.items():
            covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
            width = np.mean(ends[:, 1] - ends[:, 0])
            shown = [f"{covered:.3f}", f"{error:.3f}", f"{width:.3f}", f"{used:.1f}"]
            lines.append([name, len(y), method, *shown])
            print(lines[-1], flush=True)
    header = ["data", "rows", "method", f"coverage of {COVERAGE}", "standard error", "width / std"]
    text = "### Intervals\n\n`predict_interval` and MAPIE with the same 512 features; the standard "
    text += "error is of the test rows and of the rows that tell the quantile.\n\n"
    return text + table([*header, "seconds"], lines)


def components() -> str:
    rows = np.load(f"{DATA}/mnist.npz", allow_pickle=False)["X_train"] / np.float32(255)
    feature_map = FourierFeatures(Gaussian(), COMPONENT_FEATURES, random_state=0)
    pca = KernelPCA(feature_map, 50)
    _, seconds = timed(lambda: pca.fit(rows))
    lines = [
        [
            "craftmaps",
            f"{len(rows):,}",
            f"{seconds:.1f}",
            f"{8 * COMPONENT_FEATURES**2 / 1e6:.0f} MB",
        ]
    ]
    gamma = pca.feature_map_.kernel_.gamma
    few = rows[:2000]
    exact = ExactKernelPCA(50, kernel="rbf", gamma=gamma, eigen_solver="randomized", random_state=0)
    _, seconds = timed(lambda: exact.fit(few))
    lines.append(["scikit-learn KernelPCA", f"{len(few):,}", f"{seconds:.1f}", "32 MB"])
    lines.append(["scikit-learn KernelPCA", "60,000", "not run", "28,800 MB"])
    print(lines, flush=True)
    text = f"### Components of MNIST\n\n50 components, {COMPONENT_FEATURES:,} features, Gaussian "
    text += "kernel.\n\n"
    return text + table(["method", "rows", "seconds", "square matrix"], lines)


def drifts() -> str:
    rng = np.random.default_rng(0)
    feature_map = FourierFeatures(Gaussian(0.1), 128, random_state=0).fit(np.zeros((2, 5)))
    frozen = FrozenEstimator(feature_map)
    small = [
        drift(rng.standard_normal((500, 5)), rng.standard_normal((100, 5)), frozen).p_value
        for _ in range(DRAWS)
    ]
    shares = [f"{np.mean(np.array(small) < level):.3f}" for level in (0.01, 0.05, 0.1)]
    text = f"### Drift\n\nShare of p-values below 0.01, 0.05 and 0.1 in {DRAWS:,} draws without "
    text += f"drift (500 and 100 rows): {', '.join(shares)}.\n\nPower at 0.05 in 100 draws:\n\n"
    lines = []
    changes = {"mean + 0.15": lambda A: A + 0.15, "spread x 1.15": lambda A: 1.15 * A}
    changes["correlation 0.5"] = lambda A: np.c_[
        A[:, :1], 0.5 * A[:, :1] + 0.75**0.5 * A[:, 1:2], A[:, 2:]
    ]
    for name, change in changes.items():
        found: dict[str, list[float]] = {"sums": [], "permutations": []}
        times = dict.fromkeys(found, 0.0)
        for _ in range(100):
            A, B = rng.standard_normal((500, 5)), change(rng.standard_normal((100, 5)))
            for method, test in (
                ("sums", lambda A=A, B=B: drift(A, B, frozen).p_value),
                ("permutations", lambda A=A, B=B: permutation_test(A, B, 0.1, 200, rng)),
            ):
                p_value, used = timed(test)
                found[method].append(p_value)
                times[method] += used / 100
        power = [f"{np.mean(np.array(values) < 0.05):.2f}" for values in found.values()]
        lines.append([name, *power, *(f"{1000 * used:.1f}" for used in times.values())])
        print(lines[-1], flush=True)
    header = ["change", "drift, 128 features", "exact MMD, 200 permutations", "ms", "ms"]
    return text + table(header, lines)


def anomalies() -> str:
    sets = {}
    file = np.load(f"{DATA}/pendigits.npz", allow_pickle=False)
    for digit in range(10):
        own = file["X_train"][file["y_train"] == digit].astype(np.float64)
        sets[f"pendigits {digit}"] = own, file["X_test"], file["y_test"] != digit
    file = np.load(f"{DATA}/covertype.npz", allow_pickle=False)
    X, y = file["X"][:, :10].astype(np.float64), file["y"]
    usual = np.random.default_rng(0).permutation(np.flatnonzero(y == 2))[:20_000]
    rare = np.flatnonzero(y == 4)
    test = np.r_[usual[10_000:], rare]
    sets["covertype, class 4 among class 2"] = X[usual[:10_000]], X[test], y[test] == 4
    scores: dict[str, list[float]] = {}
    times = np.zeros((2, 3))
    for name, (own, new, strange) in sets.items():
        scaler = StandardScaler().fit(own)
        own, new = scaler.transform(own), scaler.transform(new)
        feature_map = FourierFeatures(Gaussian(1 / own.shape[1]), 512, random_state=0)
        works = (
            lambda own=own, new=new, m=feature_map: anomaly_score(own, new, feature_map=m),
            lambda own=own, new=new: -IsolationForest(random_state=0).fit(own).score_samples(new),
            lambda own=own, new=new: -OneClassSVM().fit(own).score_samples(new),
        )
        results = [timed(work) for work in works]
        key = name.split()[0].rstrip(",")
        scores.setdefault(key, []).append([roc_auc_score(strange, s) for s, _ in results])  # type: ignore[arg-type]
        times[int(key != "pendigits")] += [used for _, used in results]
    lines = []
    for (key, values), used in zip(scores.items(), times, strict=True):
        means = np.mean(values, axis=0)
        cells = [f"{mean:.4f} ({seconds:.1f} s)" for mean, seconds in zip(means, used, strict=True)]
        lines.append([key, *cells])
        print(lines[-1], flush=True)
    text = "### Anomalies\n\nArea under the ROC curve: one digit against the others (mean of ten), "
    text += "and class 4 of covertype against class 2, learned from the usual class alone.\n\n"
    header = ["data", "anomaly_score, 512 features", "IsolationForest", "OneClassSVM"]
    return text + table(header, lines)
