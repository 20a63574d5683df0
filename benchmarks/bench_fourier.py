"""Fourier features: error of each sampling, and speed against scikit-learn's RBFSampler."""

from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from benchmarks.bench_learn import measures, mnist
from benchmarks.harness import DATA, alternating, table
from craftmaps import FourierFeatures, Gaussian, OnePassClassifier
from reproduction.classification import gaussian

SAMPLINGS = ("iid", "orthogonal", "structured", "qmc", "fastfood")


def report() -> str:
    parts = [
        "## Fourier features\n\n"
        "Mean relative Frobenius error over 20 seeds of 200 normal rows, Gaussian kernel; in "
        "brackets, the ratio to iid. 'median' and 'scale' are the two bandwidths that the kernel "
        f"offers.\n\n{errors()}\n"
        "Time of one transformation of 2000 x 1024 rows into 8192 columns, in turns; in brackets, "
        f"how many times as fast as RBFSampler.\n\n{speed()}"
    ]
    if DATA is not None and (Path(DATA) / "mnist.npz").exists():
        parts.append(mnist_errors())
    return "\n".join(parts)


def errors() -> str:
    lines = []
    for d, n in ((16, 512), (64, 2048)):
        X = np.random.default_rng(0).standard_normal((200, d))
        for gamma in ("median", "scale"):
            kernel = Gaussian(gamma).resolved(X)
            mean = {sampling: mean_error(kernel, sampling, X, 2 * n) for sampling in SAMPLINGS}
            mean["qmc, Halton"] = mean_error(kernel, "qmc", X, 2 * n, sequence="halton")
            cells = [f"{value:.4f} ({value / mean['iid']:.2f})" for value in mean.values()]
            lines.append([str(d), str(n), f"{gamma} ({kernel.gamma:.4f})", *cells])
    return table(["columns", "frequencies", "gamma", *mean], lines)


def mnist_errors(size: int = 4096, seeds: int = 3) -> str:
    """Test errors of the one-pass learner on maps that see no data, gamma by its GCV score."""
    data, kernel = mnist(), gaussian("mnist")
    rows = []
    for sampling in ("iid", "structured"):
        models = [
            OnePassClassifier(FourierFeatures(kernel, size, sampling=sampling, random_state=s))
            for s in range(seeds)
        ]
        found = np.array([measures(model, data)[0] for model in models])
        rows.append([sampling, f"{found.mean():.2f} % ({found.min():.2f} to {found.max():.2f})"])
    return (
        f"MNIST, rows of length 1, E = {size}, `OnePassClassifier` with its defaults, means of "
        f"{seeds} seeds; gamma = {kernel.gamma:g} has the least GCV score of 1,024 features on "
        f"10,000 training rows.\n\n{table(['sampling', 'test error (range)'], rows)}"
    )


def mean_error(
    kernel: Gaussian, sampling: str, X: np.ndarray, n_components: int, **parameters: str
) -> float:
    exact = kernel(X)
    values = []
    for seed in range(20):
        feature_map = FourierFeatures(
            kernel, n_components, sampling=sampling, random_state=seed, **parameters
        )
        Z = feature_map.fit_transform(X)
        values.append(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact))
    return float(np.mean(values))


def speed() -> str:
    lines = []
    for dtype in (np.float32, np.float64):
        X = np.random.default_rng(0).standard_normal((2000, 1024)).astype(dtype)
        gamma = 1 / 1024
        maps = {"RBFSampler": RBFSampler(gamma=gamma, n_components=8192, random_state=0)}
        for sampling in SAMPLINGS:
            maps[sampling] = FourierFeatures(
                Gaussian(gamma), 8192, sampling=sampling, random_state=0
            )
        works = {name: one.fit(X).transform for name, one in maps.items()}
        times = alternating({name: lambda w=work, r=X: w(r) for name, work in works.items()})
        base = times["RBFSampler"]
        cells = [f"{value * 1e3:.0f} ms ({base / value:.1f})" for value in times.values()]
        lines.append([dtype.__name__, *cells])
    return table(["rows", *times], lines)
