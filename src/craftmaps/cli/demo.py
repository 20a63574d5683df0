"""Kernel classifiers on the digits that scikit-learn bundles: the exact one and every map."""

import pickle
import time
from pathlib import Path
from typing import Any

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


def measure(model: Any, data: tuple[Any, ...]) -> tuple[float, float, float]:
    """Test error in per cent, seconds to fit, kilobytes that predictions need."""
    train, test, train_labels, test_labels = data
    start = time.perf_counter()
    model.fit(train, train_labels)
    seconds = time.perf_counter() - start
    error = 100 * (1 - model.score(test, test_labels))
    if isinstance(model, OnePassClassifier):  # the sums of the pass are not needed any more
        model = (model.feature_map_, model.coef_.astype("float32"), model.intercept_)
    return error, seconds, len(pickle.dumps(model)) / 1024


def main() -> None:
    """Measure, print a table, save a plot."""
    X, y = load_digits(return_X_y=True)
    data = tuple(train_test_split(normalize(X), y, test_size=0.4, random_state=0, stratify=y))
    print(f"{len(data[0])} digits to learn from, {len(data[1])} to test on, {X.shape[1]} pixels.")
    print(f"The kernel is {KERNEL}; for FourierFeatures it is {WIDTH},")
    print("for CompositionalMap a quadratic of that. The maps feed a one-pass ridge classifier.\n")
    print(f"{'model':<34}{'test error':>11}{'fit time':>11}{'size':>11}")

    for feature_map in (None, *feature_maps(SIZES[0]).values()):
        OnePassClassifier(feature_map).fit(data[0], data[2])  # compiles; not to be counted below

    def row(name: str, model: Any) -> float:
        error, seconds, size = measure(model, data)
        print(f"{name:<34}{error:>9.2f} %{1000 * seconds:>8.0f} ms{size:>8.0f} kB", flush=True)
        return error

    exact = SVC(kernel="poly", degree=KERNEL.degree, gamma=KERNEL.gamma, coef0=KERNEL.coef0, C=10)
    lines = {
        "exact kernel SVM": row("exact kernel SVM", exact),
        "linear ridge": row("linear ridge, no map", OnePassClassifier()),
    }
    curves: dict[str, list[float]] = {}
    for n_components in SIZES:
        for name, feature_map in feature_maps(n_components).items():
            error = row(f"{name}, {n_components} features", OnePassClassifier(feature_map))
            curves.setdefault(name, []).append(error)
    plot(lines, curves)
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


if __name__ == "__main__":
    main()
