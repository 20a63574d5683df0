"""PLACEHOLDER"""

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import normalize

from craftmaps import Gaussian, Nystroem, OnePassClassifier
from craftmaps.datasets import Dataset, deskew, jittered, load, split

SIZE, ROWS = 8192, 1_500_000  # landmarks, and rows of the stream: what 20 minutes allow
KERNEL = Gaussian(gamma=4.0)
ALPHA = 1e-6  # per row
JITTER = {"shift": 0.0, "angle": 10.0, "scale": 0.1, "shear": 0.0, "elastic": 0.7}
COPIES = 8  # jittered copies of a test row whose scores are averaged with its own
HELD_OUT = 10_000


def main() -> None:
    """Learn, test, and say what it took."""
    options = arguments()
    start = time.perf_counter()
    data = images(options.quick, options.held_out)
    model = OnePassClassifier(
        FrozenEstimator(features(data, options.size, options.seed)), alpha=ALPHA * options.rows
    )
    print(f"{time.perf_counter() - start:6.0f} s  {options.size} landmarks are chosen", flush=True)
    model.fit_blocks(stream(data, options.rows, options.seed), classes=np.unique(data.y_train))
    print(f"{time.perf_counter() - start:6.0f} s  {options.rows} rows are learnt", flush=True)
    plain, averaged = errors(model, data)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{seconds:6.0f} s  in all, {peak:.1f} GB at most")
    print(
        f"error on {len(data.y_test)} rows: {plain:.2f} %; averaged over copies: {averaged:.2f} %"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--size", type=int, help=f"landmarks; default {SIZE}")
    parser.add_argument("--rows", type=int, help=f"rows of the stream; default {ROWS}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", action="store_true", help="test on 10,000 training rows")
    parser.add_argument("--quick", action="store_true", help="scikit-learn's digits, in seconds")
    options = parser.parse_args()
    options.size = options.size or (300 if options.quick else SIZE)
    options.rows = options.rows or (10_000 if options.quick else ROWS)
    return options


def images(quick: bool, held_out: bool) -> Dataset:
    """MNIST, or its training rows alone, of which the last ones take the place of the test."""
    if quick:
        return split(load("digits"), 0.6)
    data = load("mnist")
    if not held_out:
        return data
    X, y, n = data.X_train, data.y_train, len(data.X_train) - HELD_OUT
    return replace(data, X_train=X[:n], y_train=y[:n], X_test=X[n:], y_test=y[n:])


def upright(X: np.ndarray) -> np.ndarray:
    """What the kernel sees of images."""
    return np.asarray(normalize(deskew(X), copy=False))


def stream(data: Dataset, n_rows: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The training rows, then jittered ones, made as they are learnt."""
    for X, y in jittered(data.X_train, data.y_train, n_rows, seed=seed, **JITTER):
        yield upright(X), y
