"""Error against training time on MNIST: the plot of the README, `docs/mnist.png`."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem as TheirNystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.harness import DATA, table
from craftmaps import Gaussian, KernelClassifier, Nystroem, OnePassClassifier

PICTURE = Path(__file__).parents[1] / "docs" / "mnist.png"
GAMMA = 2.0  # the width of all Gaussian kernels, for rows of length 1
STYLES = {
    "KernelClassifier": ("#c0392b", "o-"),
    "OnePassClassifier": ("#e08e0b", "s-"),
    "SVC": ("#34495e", "^-"),
    "Nystroem + LogisticRegression": ("#2e86c1", "v-"),
    "HistGradientBoosting": ("#239b56", "D"),
}
WORDS = {
    "KernelClassifier": "KernelClassifier (craftmaps)",
    "OnePassClassifier": "OnePassClassifier (craftmaps)",
    "SVC": "SVC on 10,000, 30,000, 60,000 images",
    "Nystroem + LogisticRegression": "Nystroem + LogisticRegression",
    "HistGradientBoosting": "HistGradientBoosting",
}
TEXT = f"""## Error against training time on MNIST

60,000 rows of length 1 to learn from (SVC: as many as stated), 10,000 to test on. All kernel
machines have the same Gaussian kernel, gamma = {GAMMA:g}; `SVC` has C = 10, and everything else
is at its default. CPU seconds of one thread. `Nystroem` is scikit-learn's in the pipeline with
`LogisticRegression`, and craftmaps' in the other learners.

"""


class Point(NamedTuple):
    method: str
    size: str
    model: Any
    n_rows: int = 60_000


def report() -> str:
    if not DATA:
        return "## Error against training time on MNIST\n\nSkipped: CRAFTMAPS_DATA is not set."
    with np.load(Path(DATA) / "mnist.npz") as file:
        X, new = (
            normalize(file[name].reshape(len(file[name]), -1).astype(np.float32))
            for name in ("X_train", "X_test")
        )
        y, truth = file["y_train"], file["y_test"]
    OnePassClassifier(Nystroem(Gaussian(GAMMA), 64)).fit(X[:500], y[:500])  # compiles
    curves: dict[str, list[tuple[float, float]]] = {}
    lines = []
    with threadpool_limits(1):
        for point in points():
            start = time.process_time()
            point.model.fit(X[: point.n_rows], y[: point.n_rows])
            seconds = time.process_time() - start
            error = 100 * float(np.mean(point.model.predict(new) != truth))
            curves.setdefault(point.method, []).append((seconds, error))
            lines.append([point.method, point.size, f"{seconds:.1f}", f"{error:.2f}"])
            print(lines[-1], flush=True)
    draw(curves)
    return TEXT + table(["learner", "size", "CPU seconds", "wrong, %"], lines)


def points() -> Iterator[Point]:
    for size in (256, 512, 1024, 2048, 4096):
        landmarks = Nystroem(Gaussian(GAMMA), size, random_state=0)
        words = f"{size:,} features"
        yield Point("OnePassClassifier", words, OnePassClassifier(landmarks))
        yield Point("KernelClassifier", words, KernelClassifier(landmarks, random_state=0))
    for size in (256, 512, 1024, 2048):
        features = TheirNystroem(gamma=GAMMA, n_components=size, random_state=0)
        learner = make_pipeline(features, LogisticRegression(max_iter=1000))
        yield Point("Nystroem + LogisticRegression", f"{size:,} features", learner)
    for n_rows in (10_000, 30_000, 60_000):
        yield Point("SVC", f"{n_rows:,} rows", SVC(C=10, gamma=GAMMA), n_rows)
    yield Point("HistGradientBoosting", "", HistGradientBoostingClassifier(random_state=0))


def draw(curves: dict[str, list[tuple[float, float]]]) -> None:
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for method, (color, marks) in STYLES.items():
        axes.plot(*zip(*curves[method], strict=True), marks, color=color, label=WORDS[method])
    ticks = (1, 1.5, 2, 3, 4, 6, 8)
    axes.set_yticks(ticks, labels=[f"{tick:g} %" for tick in ticks], minor=False)
    axes.set_yticks([], minor=True)
    axes.set_xticks((1, 10, 100, 1000), labels=["1 s", "10 s", "100 s", "1,000 s"])
    axes.set_xlabel("CPU time to fit, one thread")
    axes.set_ylabel("test error on MNIST")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    figure.savefig(PICTURE, dpi=130)
