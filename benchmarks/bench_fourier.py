"""Fourier features: error of each sampling, and speed against scikit-learn's RBFSampler."""

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from benchmarks.harness import alternating, table
from craftmaps import FourierFeatures, Gaussian

SAMPLINGS = ("iid", "orthogonal", "structured", "qmc", "fastfood")


def report() -> str:
    return (
        "## Fourier features\n\n"
        "Mean relative Frobenius error over 20 seeds: 200 normal rows, 16 columns, 512 "
        "frequencies, Gaussian kernel; in brackets, the ratio to iid. 'median' and 'scale' are "
        f"the two bandwidths that the kernel offers.\n\n{errors()}\n"
        "Time of one transformation of 2000 x 1024 rows into 8192 columns, in turns; in brackets, "
        f"how many times as fast as RBFSampler.\n\n{speed()}"
    )


def errors() -> str:
    X = np.random.default_rng(0).standard_normal((200, 16))
    lines = []
    for gamma in ("median", "scale"):
        kernel = Gaussian(gamma).resolved(X)
        mean = {sampling: mean_error(kernel, sampling, X) for sampling in SAMPLINGS}
        mean["qmc, Halton"] = mean_error(kernel, "qmc", X, sequence="halton")
        cells = [f"{value:.4f} ({value / mean['iid']:.2f})" for value in mean.values()]
        lines.append([f"{gamma} ({kernel.gamma:.4f})", *cells])
    return table(["gamma", *mean], lines)


def mean_error(kernel: Gaussian, sampling: str, X: np.ndarray, **parameters: str) -> float:
    exact = kernel(X)
    values = []
    for seed in range(20):
        feature_map = FourierFeatures(
            kernel, 1024, sampling=sampling, random_state=seed, **parameters
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
