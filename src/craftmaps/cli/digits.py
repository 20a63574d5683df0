"""Kernel classifiers on the digits that scikit-learn bundles: the exact one and every map."""

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from craftmaps import (
    Composed,
    CompositionalMap,
    CraftMap,
    FourierFeatures,
    Gaussian,
    Nystroem,
    OnePassClassifier,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
)

KERNEL = Polynomial(degree=5)
WIDTH = Gaussian(gamma="median")
SIZES = (64, 128, 256, 512, 1024)
OUTPUT = Path("demo-output/digits.png")


def feature_maps(n_components: int) -> dict[str, Any]:
    """One of each map of the library, with as many output columns as asked for."""
    args: dict[str, Any] = {"n_components": n_components, "random_state": 0}
    return {
        "RandomMaclaurin": RandomMaclaurin(KERNEL, **args),
        "TensorSketch": TensorSketch(KERNEL, **args),
        "CraftMap": CraftMap(KERNEL, **args),
        "FourierFeatures": FourierFeatures(WIDTH, sampling="orthogonal", **args),
        "CompositionalMap": CompositionalMap(Composed(Polynomial(2), WIDTH), **args),
        "Nystroem": Nystroem(KERNEL, landmarks="kmeans", unit_norm=True, **args),
    }


class Row(NamedTuple):
    """Test error in per cent, seconds to fit, kilobytes that predictions need."""

    model: str
    n_components: int | None
    error: float
    seconds: float
    size_kb: float

    def line(self) -> str:
        size = "" if self.n_components is None else f", {self.n_components} features"
        return (
            f"{self.model + size:<34}{self.error:>9.2f} %{1000 * self.seconds:>8.0f} ms"
            f"{self.size_kb:>8.0f} kB"
        )


def measure(name: str, n_components: int | None, model: Any, data: tuple[Any, ...]) -> Row:
    """Fit and test one model."""
    train, test, train_labels, test_labels = data
    start = time.perf_counter()
    model.fit(train, train_labels)
    seconds = time.perf_counter() - start
    error = 100 * (1 - model.score(test, test_labels))
    if isinstance(model, OnePassClassifier):  # the sums of the pass are not needed any more
        model = (model.feature_map_, model.coef_.astype("float32"), model.intercept_)
    return Row(name, n_components, error, seconds, len(pickle.dumps(model)) / 1024)


def split() -> tuple[Any, ...]:
    """Rows and labels to learn from and to test on."""
    X, y = load_digits(return_X_y=True)
    return tuple(train_test_split(normalize(X), y, test_size=0.4, random_state=0, stratify=y))


def measured() -> Iterator[Row]:
    """Every model in turn; the exact machine and the linear one first."""
    data = split()
    for feature_map in (None, *feature_maps(SIZES[0]).values()):
        OnePassClassifier(feature_map).fit(data[0], data[2])  # compiles; not to be counted below
    exact = SVC(kernel="poly", degree=KERNEL.degree, gamma=KERNEL.gamma, coef0=KERNEL.coef0, C=10)
    yield measure("exact kernel SVM", None, exact, data)
    yield measure("linear ridge, no map", None, OnePassClassifier(), data)
    for size in SIZES:
        for name, feature_map in feature_maps(size).items():
            yield measure(name, size, OnePassClassifier(feature_map), data)


def main() -> None:
    """Measure, print a table, save a plot."""
    train, test, *_ = split()
    print(f"{len(train)} digits to learn from, {len(test)} to test on, {train.shape[1]} pixels.")
    print(f"The kernel is {KERNEL}; for FourierFeatures it is {WIDTH},")
    print("for CompositionalMap a quadratic of that. The maps feed a one-pass ridge classifier.\n")
    print(f"{'model':<34}{'test error':>11}{'fit time':>11}{'size':>11}")
    lines: dict[str, float] = {}
    curves: dict[str, list[float]] = {}
    for row in measured():
        print(row.line(), flush=True)
        if row.n_components is None:
            lines[row.model] = row.error
        else:
            curves.setdefault(row.model, []).append(row.error)
    try:
        plot(lines, curves)
    except ImportError:
        print("\nFor a plot, install matplotlib: pip install 'craftmaps[plots]'.")
    else:
        print(f"\nThe plot is in {OUTPUT}.")


def plot(lines: dict[str, float], curves: dict[str, list[float]]) -> None:
    """Test error against the number of features."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    for (name, error), style in zip(lines.items(), ("-", "--"), strict=True):
        axes.axhline(error, color="0.4", linestyle=style, linewidth=1.2, label=name)
    for name, errors in curves.items():
        axes.plot(SIZES, errors, marker="o", markersize=4, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("features (output columns)")
    axes.set_ylabel("test error, %")
    axes.set_title("Digits: a linear learner on random features against an exact kernel SVM")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=150)
