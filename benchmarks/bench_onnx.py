"""Exported models: size of the file, and latency in onnxruntime against our own predict."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.harness import alternating, table
from craftmaps import (
    CraftMap,
    FourierFeatures,
    Gaussian,
    Nystroem,
    OnePassClassifier,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
    export_onnx,
)

BATCHES = (1, 64, 1024)
MAPS = {
    "CraftMap, E = 300, D = 9,600": CraftMap(Polynomial(7), 300, n_up=9600, random_state=0),
    "CraftMap, E = 1,024, D = 8,192": CraftMap(Polynomial(7), 1024, n_up=8192, random_state=0),
    "RandomMaclaurin, 1,024": RandomMaclaurin(Polynomial(7), 1024, random_state=0),
    "TensorSketch, 1,024": TensorSketch(Polynomial(3), 1024, random_state=0),
    "FourierFeatures, structured, 1,024": FourierFeatures(
        Gaussian(1.0), 1024, sampling="structured", random_state=0
    ),
    "Nystroem, 512": Nystroem(Gaussian(1.0), 512, random_state=0),
}


def report() -> str:
    return (
        "## ONNX models\n\n"
        "Classifiers of 10 classes on float32 rows of 784 columns. Files in KB, ours with the same "
        "predictions beside it; time per row of label and probabilities in onnxruntime, in turns "
        "with our own `predict_proba`, for batches of three sizes; in brackets, how many times as "
        f"long as ours.\n\n{exported()}"
    )


def exported() -> str:
    rng = np.random.default_rng(0)
    X = rng.random((2048, 784), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 10, len(X))
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, feature_map in MAPS.items():
            model = OnePassClassifier(feature_map, alpha=1.0).fit(X, y)
            paths = Path(folder, "model.onnx"), Path(folder, "model.craft")
            export_onnx(model, paths[0])
            model.save(paths[1])
            sizes = [f"{path.stat().st_size / 1024:.0f}" for path in paths]
            lines.append([name, *sizes, *latencies(model, paths[0], X)])
    batches = [f"{n} row{'s' if n > 1 else ''}" for n in BATCHES]
    return table(["map", "ONNX, KB", "ours, KB", *batches], lines)


def latencies(model: Any, path: Path, X: np.ndarray) -> list[str]:
    session = onnxruntime.InferenceSession(path)
    cells = []
    for n in BATCHES:
        rows = X[:n]
        works = {
            "onnx": lambda rows=rows: session.run(None, {"X": rows}),
            "ours": lambda rows=rows: model.predict_proba(rows),
        }
        times = alternating(works, repeats=15)
        micro = times["onnx"] / n * 1e6
        cells.append(f"{micro:.0f} us ({times['onnx'] / times['ours']:.1f})")
    return cells
