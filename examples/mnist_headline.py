"""MNIST with jittered digits: 0.42 % test error in 70 seconds on two cores.

The compact random feature maps of Hamid, Xiao, Gittens and DeCoste (2014) reached 0.91 % with 8.1
million jittered rows, 2^16 features of pixels and 40 cores. Here, training digits are rotated,
stretched and bent as they are needed, made upright, and seen as oriented gradients; a Gaussian
kernel is learned from them, by exact ridge regression in one pass or by the log-loss. The
gradients are not learned, but they more than halve the error (see below), and the paper had none
of them: `--view pixels` is the kernel of gray values (not run at full size).

    $ CRAFTMAPS_DATA=... python examples/mnist_headline.py
        36 s  6144 landmarks, Gaussian(gamma=3.0) of gradients
       725 s  600000 rows learned, alpha = 0.6
       727 s  in all, 2.7 GB of memory at most
    error on 10000 rows not learned from: 0.42 %

    $ CRAFTMAPS_DATA=... python examples/mnist_headline.py --loss log --size 4096 --rows 400000
         3 s  4096 landmarks, Gaussian(gamma=3.0) of gradients
        69 s  400000 rows learned, alpha = 0.4
        70 s  in all, 7.9 GB of memory at most
    error on 10000 rows not learned from: 0.42 %

The test rows were looked at twice, for these lines. All choices were made before, by learning from
the first 50,000 training rows and testing on the other 10,000 (as `--held-out` does). With 2,000
landmarks and 100,000 rows:

    gradients in 7 x 7 cells    0.57 %    alpha = 0.01: 0.55 %    alpha = 1: 0.66 %
    gradients in 9 x 9 cells    0.60 %    alpha = 0.01: 0.59 %    alpha = 1: 0.69 %
    pixels                      1.40 %    alpha = 0.01: 1.39 %    alpha = 1: 1.46 %

The angle, the stretch and the bend were chosen on pixels, the width of the kernel between two that
did not differ. Size and number of rows are what time allows.

    --quick       the digits of scikit-learn, in seconds
    --held-out    10,000 training rows take the place of the test rows
    --loss log    the log-loss instead of the squared loss, in several passes

The features of the log-loss should fit into half of the memory, because each pass computes them
again otherwise: `--loss log --size 4096 --rows 400000` takes 6.6 GB for them.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import normalize

from craftmaps import Gaussian, KernelClassifier, Nystroem
from craftmaps.maps.parts.images import gradients

sys.path.insert(0, str(Path(__file__).parents[1]))  # data sets and jitter are outside the package

from reproduction.datasets import Dataset, load, split
from reproduction.images import deskew, jittered

HELD_OUT = 10_000
# A kernel this wide makes columns that are nearly dependent, which sums of float32 products could
# not tell apart. With the log-loss, sums are only a preconditioner, and features stay in memory.
PRECISION = {"squared": np.float64, "log": np.float32}


class View(NamedTuple):
    """What the kernel sees of upright images, and what suits it."""

    look: Callable[[np.ndarray], np.ndarray]
    kernel: Gaussian
    alpha: float  # for 100,000 rows
    jitter: dict[str, float]
    size: int
    rows: int


def strokes(X: np.ndarray) -> np.ndarray:
    """Oriented gradients in 7 x 7 cells."""
    return gradients(X, cells=7)


def pixels(X: np.ndarray) -> np.ndarray:
    """Roots of gray values, to length 1."""
    return np.asarray(normalize(np.sqrt(X), copy=False))


VIEWS = {
    "gradients": View(
        strokes, Gaussian(3.0), 0.1, {"angle": 10.0, "scale": 0.1, "elastic": 0.7}, 6144, 600_000
    ),
    "pixels": View(
        pixels, Gaussian(2.5), 0.1, {"angle": 7.0, "scale": 0.07, "elastic": 0.7}, 8192, 900_000
    ),
}


def main() -> None:
    options = arguments()
    view: View = VIEWS[options.view]
    start = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - start:6.0f} s  {text}", flush=True)

    data = images(options.quick, options.held_out)
    feature_map = landmarks(data, view, options.size, options.seed, options.loss)
    say(f"{options.size} landmarks, {feature_map.kernel_} of {options.view}")
    alpha = view.alpha * options.rows / 100_000
    model = KernelClassifier(FrozenEstimator(feature_map), loss=options.loss, alpha=alpha)
    rows = Stream(data, view, options.rows, options.seed, options.loss)
    model.fit_blocks(rows, np.unique(data.y_train))
    say(f"{options.rows} rows learned, alpha = {alpha:.3g}")
    error = 100 * (1 - model.score(seen(view, data.X_test, options.loss), data.y_test))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    say(f"in all, {peak:.1f} GB of memory at most")
    print(f"error on {len(data.y_test)} rows not learned from: {error:.2f} %")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MNIST in one pass over jittered rows.")
    parser.add_argument("--view", choices=VIEWS, default="gradients", help="of the upright image")
    parser.add_argument("--loss", choices=PRECISION, default="squared")
    parser.add_argument("--size", type=int, help="landmarks")
    parser.add_argument("--rows", type=int, help="rows of the stream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", action="store_true", help="test on 10,000 training rows")
    parser.add_argument("--quick", action="store_true", help="scikit-learn's digits, in seconds")
    options = parser.parse_args()
    options.size = options.size or (300 if options.quick else VIEWS[options.view].size)
    options.rows = options.rows or (6_000 if options.quick else VIEWS[options.view].rows)
    return options


def images(quick: bool, held_out: bool) -> Dataset:
    """Return MNIST, or only its training rows, with the last ones as test rows."""
    if quick:
        return split(load("digits"), 0.6)
    data = load("mnist")
    if not held_out:
        return data
    X, y, n = data.X_train, data.y_train, len(data.X_train) - HELD_OUT
    return replace(data, X_train=X[:n], y_train=y[:n], X_test=X[n:], y_test=y[n:])


def seen(view: View, X: np.ndarray, loss: str) -> np.ndarray:
    """Images as the kernel sees them, in the precision that the loss needs."""
    return view.look(deskew(X)).astype(PRECISION[loss])


@dataclass
class Stream:
    """The training rows, then jittered ones, which are made again in each iteration."""

    data: Dataset
    view: View
    n_rows: int
    seed: int
    loss: str
    options: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        still = {"shift": 0.0, "shear": 0.0}  # deskewing undoes them
        amounts = still | self.view.jitter | self.options
        X, y = self.data.X_train, self.data.y_train
        for images, labels in jittered(X, y, self.n_rows, seed=self.seed, **amounts):
            yield seen(self.view, images, self.loss), labels


def landmarks(data: Dataset, view: View, size: int, seed: int, loss: str) -> Nystroem:
    """A map whose landmarks are jittered rows of another stream.

    The columns are the kernel itself: the learner's penalty does what whitening would.
    """
    options = {"block_rows": size, "originals": False}
    rows, _ = next(iter(Stream(data, view, size, seed + 1, loss, options)))
    return Nystroem(view.kernel, size, landmarks=rows, whiten=False).fit(rows)


if __name__ == "__main__":
    main()
