"""A full grid over preprocessing, maps, kernels and alphas: what careful advice is held against.

It is as fast as it can be made: every map is fitted once, all alphas come from one factorisation,
and k-means landmarks are shared among kernels. Its best error is the least error on the test rows,
which is more than a user, who has to choose on training rows, can get out of it.
"""

import json
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from benchmarks.harness import DATA
from craftmaps import (
    Composed,
    CompositionalMap,
    CraftMap,
    Exponential,
    FourierFeatures,
    Gaussian,
    Laplacian,
    Matern,
    NormalEquations,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
)
from craftmaps.learn.solvers.path import RidgePath

CLASSIFICATION = ("mnist", "usps", "pendigits", "letter", "a9a", "covertype")
REGRESSION = ("california_housing_raw", "uci_kin8nm")
N_COMPONENTS = 512
PREPROCESSING = {
    "unit norm": make_pipeline(Normalizer()),
    "0 to 1, unit norm": make_pipeline(MinMaxScaler(), Normalizer()),
    "centred, unit norm": make_pipeline(StandardScaler(with_std=False), Normalizer()),
    "standardised": make_pipeline(StandardScaler()),
}


@dataclass
class Point:
    """A configuration of the grid, the alpha that is best for it on the test rows, and its cost."""

    preprocessing: str
    label: str
    error: float
    alpha: float
    seconds: float


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """X, y, X_test, y_test; features in float32."""
    with np.load(Path(str(DATA)) / f"{name}.npz") as data:
        if "X_train" in data:
            parts = [data[key] for key in ("X_train", "y_train", "X_test", "y_test")]
        elif "test_masks" in data:
            test = data["test_masks"][:, 0]
            parts = [data["X"][~test], data["y"][~test], data["X"][test], data["y"][test]]
        else:
            size = min(len(data["y"]), 100_000)
            rows = np.random.default_rng(0).permutation(len(data["y"]))[:size]
            X, X_test, y, y_test = train_test_split(
                data["X"][rows], data["y"][rows], test_size=0.2, random_state=0
            )
            parts = [X, y, X_test, y_test]
    parts[0], parts[2] = (X.reshape(len(X), -1).astype(np.float32) for X in parts[::2])
    return tuple(parts)


def is_classification(name: str) -> bool:
    return name in CLASSIFICATION


def error(predicted: np.ndarray, truth: np.ndarray, classes: np.ndarray | None) -> float:
    """Share of wrong labels, or root mean square error in standard deviations of the truth."""
    if classes is not None:
        return float(np.mean(classes[predicted.argmax(axis=1)] != truth))
    return float(np.sqrt(np.mean((predicted[:, 0] - truth) ** 2)) / np.std(truth))


def prepared(name: str, preprocessing: str) -> tuple[Any, Any, Any, Any]:
    """X, y, X_test, y_test after preprocessing."""
    X, y, X_test, y_test = load(name)
    scaler = clone(PREPROCESSING[preprocessing]).fit(X)
    X, X_test = (np.asarray(scaler.transform(A), dtype=np.float32) for A in (X, X_test))
    return X, y, X_test, y_test


def learned_error(name: str, feature_map: Any, rows: tuple[Any, Any, Any, Any]) -> float:
    """Test error of a learner with all its defaults, of `prepared` rows."""
    X, y, X_test, y_test = rows
    learner = OnePassClassifier if is_classification(name) else OnePassRegressor
    predicted = learner(feature_map).fit(X, y).predict(X_test)
    if is_classification(name):
        return float(np.mean(predicted != y_test))
    return error(predicted[:, None], y_test, None)


def full_grid(name: str) -> list[Point]:
    """All points of the grid; kept in the folder CRAFTMAPS_GRIDS, if it is set, once finished."""
    kept = Path(os.environ.get("CRAFTMAPS_GRIDS", "")) / f"{name}-{N_COMPONENTS}.json"
    if "CRAFTMAPS_GRIDS" in os.environ and kept.exists():
        return [Point(**point) for point in json.loads(kept.read_text())]
    X, y, X_test, y_test = load(name)
    classes = np.unique(y) if is_classification(name) else None
    Y = (2.0 * (y[:, None] == classes) - 1 if classes is not None else y[:, None]).astype("f4")
    points = []
    for preprocessing, scaler in PREPROCESSING.items():
        start = time.perf_counter()
        rows = np.asarray(clone(scaler).fit(X).transform(X), dtype=np.float32)
        test = np.asarray(clone(scaler).fit(X).transform(X_test), dtype=np.float32)
        centres = Nystroem(n_components=N_COMPONENTS, landmarks="kmeans", random_state=0).fit(rows)
        points.append(Point(preprocessing, "k-means", np.inf, 0, time.perf_counter() - start))
        for label, feature_map in configurations(rows, centres.landmarks_):
            start = time.perf_counter()
            found, alpha = best_alpha(feature_map, rows, Y, test, y_test, classes)
            seconds = time.perf_counter() - start
            points.append(Point(preprocessing, label, found, alpha, seconds))
            print(f"  {name}: {preprocessing}, {label}: {found:.4f}, {seconds:.1f} s", flush=True)
    if "CRAFTMAPS_GRIDS" in os.environ:
        kept.write_text(json.dumps([asdict(point) for point in points]))
    return points


def configurations(X: np.ndarray, centres: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Every map of the library with several kernels, for rows X."""
    size: dict[str, Any] = {"n_components": N_COMPONENTS, "random_state": 0}
    scale = 1 / float(np.mean(np.sum(X.astype(float) ** 2, axis=1)))
    dots = {f"(1 + t)^{p}": Polynomial(p, gamma=scale) for p in (2, 3, 5, 7)}
    dots["exp(2 t)"] = Exponential(2 * scale)
    for label, kernel in dots.items():
        yield f"RandomMaclaurin {label}", RandomMaclaurin(kernel, **size)
        if isinstance(kernel, Polynomial):
            yield f"TensorSketch {label}", TensorSketch(kernel, **size)
        yield f"CraftMap {label}", CraftMap(kernel, **size)
        yield f"Nystroem rpcholesky {label}", Nystroem(kernel, landmarks="rpcholesky", **size)
        yield f"Nystroem kmeans {label}", Nystroem(kernel, landmarks=centres, **size)
    for p in (3, 7):
        up = CraftMap(dots[f"(1 + t)^{p}"], n_up=4 * N_COMPONENTS, down="principal", **size)
        yield f"CraftMap principal (1 + t)^{p}", up
    shifts = {f"Gaussian {c:g}": widths(Gaussian, X, c) for c in (0.5, 2, 8)}
    shifts |= {f"Laplacian {c:g}": widths(Laplacian, X, c) for c in (0.5, 2)}
    shifts |= {f"Matern {c:g}": widths(Matern, X, c) for c in (1, 3)}
    for label, kernel in shifts.items():
        sampling = "qmc" if isinstance(kernel, Laplacian) else "orthogonal"
        yield f"Fourier {sampling} {label}", FourierFeatures(kernel, sampling=sampling, **size)
        yield f"Nystroem rpcholesky {label}", Nystroem(kernel, landmarks="rpcholesky", **size)
        if not isinstance(kernel, Laplacian):
            yield f"Nystroem kmeans {label}", Nystroem(kernel, landmarks=centres, **size)
    composed = Composed(Polynomial(2), widths(Gaussian, X, 1))
    yield "CompositionalMap (1 + Gaussian)^2", CompositionalMap(composed, **size)


def widths(kernel: Any, X: np.ndarray, factor: float) -> Any:
    """A kernel whose gamma is `factor` times what the median distance suggests."""
    return kernel(gamma=factor * kernel(gamma="median").resolved(X).gamma)


def best_alpha(
    feature_map: Any, X: Any, Y: Any, X_test: Any, y_test: Any, classes: Any
) -> tuple[float, float]:
    """The least error on the test rows over alphas two to a decade, and its alpha."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        equations = NormalEquations()
        try:
            feature_map = feature_map.fit(X)
            for start in range(0, len(X), 8192):
                rows = slice(start, start + 8192)
                equations.update(feature_map.transform(X[rows]), Y[rows], overwrite=True)
        except ValueError as refusal:  # kernel values beyond float32, on rows without a unit norm
            print("   refused:", refusal, flush=True)
            return np.inf, 0.0
        path = RidgePath(equations, True)
        Z = feature_map.transform(X_test)
        found = {}
        for alpha in path.grid()[::2]:
            solution = path.solve(np.asarray(alpha))
            predicted = Z @ solution.coef.astype("f4") + solution.intercept
            found[error(predicted, y_test, classes)] = float(alpha)
    return min(found), found[min(found)]


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        full_grid(name)
