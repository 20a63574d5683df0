"""Nyström maps: what choosing landmarks gains, what it costs, and speed against scikit-learn."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.linalg import cholesky
from sklearn.kernel_approximation import Nystroem as ScikitNystroem

from benchmarks.harness import DATA, alternating, table
from craftmaps import Gaussian, Nystroem, Polynomial
from craftmaps.kernels.pairs import fill_blocks
from craftmaps.maps.parts import landmarks as choose
from craftmaps.threads import at_most_threads

KERNELS = {
    "Gaussian, median": Gaussian("median"),
    "Gaussian, scale": Gaussian("scale"),
    "(1 + t)^7": Polynomial(7),
}
CHOICES = {
    "uniform": {"landmarks": "uniform"},
    "leverage": {"landmarks": "leverage"},
    "rpcholesky": {"landmarks": "rpcholesky"},
    "kmeans": {"landmarks": "kmeans"},
    "kmeans, unit norm": {"landmarks": "kmeans", "unit_norm": True},
}
SEEDS = 20


def report() -> str:
    if DATA is None:
        return "## Nyström maps\n\nNot measured: CRAFTMAPS_DATA does not name a folder with MNIST."
    X = mnist()
    return (
        "## Nyström maps\n\n"
        f"Relative Frobenius error of 500 landmarks for 1000 unit-norm rows of MNIST, mean of "
        f"{SEEDS} seeds, and in brackets the one-sided p-value of a paired t-test against uniform "
        f"landmarks.\n\n{errors(X[:: len(X) // 1000][:1000].astype(np.float64))}\n"
        "Choosing 1000 landmarks among 60,000 x 784 rows, float32, against computing the kernel "
        f"of these rows and 1000 of them once; in turns.\n\n{choosing(X)}\n"
        "Time of one transformation of 10,000 x 784 rows with 1000 landmarks, in turns; in "
        f"brackets, how many times as fast as scikit-learn.\n\n{transforming(X)}\n"
        f"{large(X)}"
    )


def mnist() -> np.ndarray:
    with np.load(Path(str(DATA)) / "mnist.npz") as archive:
        X = archive["X_train"].astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def errors(X: np.ndarray) -> str:
    lines = []
    for name, kernel in KERNELS.items():
        exact = kernel(X)
        found = {}
        for choice, parameters in CHOICES.items():
            found[choice] = []
            for seed in range(SEEDS):
                Z = Nystroem(kernel, 500, random_state=seed, **parameters).fit_transform(X)
                found[choice].append(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact))
        base = found["uniform"]
        cells = [f"{np.mean(base):.5f}"]
        for choice in list(CHOICES)[1:]:
            p = stats.ttest_rel(found[choice], base, alternative="less").pvalue
            cells.append(f"{np.mean(found[choice]):.5f} ({p:.0e})")
        lines.append([name, *cells])
    return table(["kernel", *CHOICES], lines)


def choosing(X: np.ndarray) -> str:
    lines = []
    for name, kernel in KERNELS.items():
        kernel = kernel.resolved(X)
        buffer = np.empty((len(X), 1000), dtype=X.dtype)

        def block(kernel=kernel, buffer=buffer) -> None:
            fill_blocks(kernel.against(X[:1000], X.dtype), X, buffer)

        def pivots(kernel=kernel) -> None:
            candidates = choose.Candidates.of_rows(kernel, X)
            choose.rpcholesky(candidates, 1000, np.random.default_rng(0))

        times = alternating({"one kernel block": block, "rpcholesky": pivots}, repeats=3)
        ratio = times["rpcholesky"] / times["one kernel block"]
        lines.append([name, *(f"{value:.2f} s" for value in times.values()), f"{ratio:.2f}"])
    return table(["kernel", *times, "ratio"], lines)


def transforming(X: np.ndarray) -> str:
    lines = []
    for name, kernel in KERNELS.items():
        kernel = kernel.resolved(X)
        if isinstance(kernel, Gaussian):
            peer = ScikitNystroem(kernel="rbf", gamma=kernel.gamma, n_components=1000)
        else:
            peer = ScikitNystroem(kernel="poly", gamma=1, coef0=1, degree=7, n_components=1000)
        for dtype in (np.float32, np.float64):
            rows = X[:10_000].astype(dtype)
            maps = {
                "scikit-learn": peer.fit(rows),
                "craftmaps": Nystroem(kernel, 1000).fit(rows),
                "not whitened": Nystroem(kernel, 1000, whiten=False).fit(rows),
            }
            times = alternating(
                {one: lambda m=m, r=rows: m.transform(r) for one, m in maps.items()}
            )
            base = times["scikit-learn"]
            cells = [f"{value * 1e3:.0f} ms ({base / value:.2f})" for value in times.values()]
            lines.append([f"{name}, {dtype.__name__}", *cells])
    return table(["kernel", *times], lines)


def large(X: np.ndarray) -> str:
    """CPU seconds of 2,048 landmarks on all rows, on one thread: fit, and one transformation.

    Falkon's recipe does not whiten: it factors K_LL twice for a preconditioner, and computes the
    kernel between rows and landmarks in each of its iterations.
    """
    kernel, n = Gaussian("median").resolved(X), 2048
    landmarks = X[np.random.default_rng(0).choice(len(X), n, replace=False)]
    theirs = ScikitNystroem(kernel="rbf", gamma=kernel.gamma, n_components=n, random_state=0)
    ours = Nystroem(kernel, landmarks=landmarks)
    plain = Nystroem(kernel, landmarks=landmarks, whiten=False)
    buffer = np.empty((len(X), n), dtype=X.dtype)

    def preconditioner() -> None:
        gram = kernel(landmarks.astype(np.float64)) + 1e-8 * n * np.eye(n)
        factor = cholesky(gram)
        cholesky(factor @ factor.T / n + 1e-6 * np.eye(n))

    def columns() -> None:
        fill_blocks(kernel.against(landmarks, X.dtype), X, buffer)

    with at_most_threads(1):
        Nystroem(kernel, 16).fit_transform(X[:64])  # compiles
        times = {
            "scikit-learn": [cpu(lambda: theirs.fit(X)), cpu(lambda: theirs.transform(X))],
            "Falkon's recipe": [cpu(preconditioner), cpu(columns)],
            "craftmaps": [cpu(lambda: ours.fit(X)), cpu(lambda: ours.transform_into(X, buffer))],
            "craftmaps, not whitened": [
                cpu(lambda: plain.fit(X)),
                cpu(lambda: plain.transform_into(X, buffer)),
            ],
        }
    lines = [[name, *(f"{value:.2f} s" for value in pair)] for name, pair in times.items()]
    text = "2,048 landmarks of a Gaussian kernel, 60,000 x 784 rows, float32, CPU time of one "
    return text + "thread.\n\n" + table(["map", "fit", "transform"], lines)


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of a call, which other processes of a busy machine hardly change."""
    start = time.process_time()
    work()
    return time.process_time() - start
