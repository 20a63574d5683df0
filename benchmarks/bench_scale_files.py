"""Fits from files against the same rows in memory, memory over a large set, checkpoints."""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.harness import once, peak_bytes, table
from craftmaps import CraftMap, OnePassClassifier, Polynomial
from craftmaps.scale import blocks

SIZE, DEGREE, COLUMNS, BLOCK = 2048, 4, 256, 4096
ROWS = 200_000
LARGE_FILES, LARGE_ROWS = 8, 500_000  # 4 GB in float32, in row groups of 0.5 GB
PASSES = 4  # over the rows in memory, for a fit that lasts for several checkpoints
EVERY = 10.0
TURNS = 3

LARGE_FIT = """
from benchmarks.bench_scale_files import learner
from craftmaps.scale import blocks

learner().fit_blocks(blocks.read({folder!r}, target="y"), classes=[0, 1])
print(resident("VmHWM"))
"""


def report() -> str:
    """Time, memory and the price of checkpoints, as a section of Markdown."""
    X, y = rows(ROWS)
    learner().fit(X[:10_000], y[:10_000])  # compiles
    with tempfile.TemporaryDirectory() as folder:
        parts = [files(X, y, Path(folder)), checkpoints(X, y, Path(folder)), texts(Path(folder))]
    return "\n".join(["## Files larger than memory\n", *parts, memory()])


def rows(size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of unit norm in float32, and two classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size, COLUMNS), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int64)


def learner() -> OnePassClassifier:
    """The classifier of this report."""
    return OnePassClassifier(CraftMap(Polynomial(DEGREE), SIZE, random_state=0), alpha=1.0)


def write_parquet(X: np.ndarray, y: np.ndarray, path: Path) -> None:
    columns: dict[str, Any] = {f"c{j}": X[:, j] for j in range(X.shape[1])}
    pq.write_table(pa.table(columns | {"y": y}), path)


def files(X: np.ndarray, y: np.ndarray, folder: Path) -> str:
    """A fit from each format against the fit of the same rows in memory."""
    write_parquet(X, y, folder / "rows.parquet")
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    parquet = blocks.read(folder / "rows.parquet", target="y", block_rows=BLOCK)
    npy = blocks.read(folder / "X.npy", target=folder / "y.npy", block_rows=BLOCK)
    works = {
        "rows in memory": lambda: learner().fit(X, y),
        "Parquet": lambda: learner().fit_blocks(parquet),
        "npy": lambda: learner().fit_blocks(npy),
    }
    title = f"### Fit of {len(X):,} x {COLUMNS} rows, E = {SIZE:,}\n\n"
    return title + in_turns(works)


def checkpoints(X: np.ndarray, y: np.ndarray, folder: Path) -> str:
    """A fit with checkpoints against the same without."""

    def stream() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for _ in range(PASSES):
            for start in range(0, len(X), BLOCK):
                yield X[start : start + BLOCK], y[start : start + BLOCK]

    def kept() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            learner().fit_blocks(stream(), checkpoint=fresh, checkpoint_every=EVERY)

    works = {
        "no checkpoints": lambda: learner().fit_blocks(stream()),
        f"checkpoints every {EVERY:g} s": kept,
    }
    title = f"### Checkpoints of a fit of {PASSES * len(X):,} rows, E = {SIZE:,}\n\n"
    return title + in_turns(works)


def texts(folder: Path, n_rows: int = 20_000) -> str:
    """Megabytes of svmlight text per second, against scikit-learn's reader."""
    X = sparse.random(n_rows, 1000, 0.05, format="csr", random_state=0)
    path = folder / "rows.svmlight"
    dump_svmlight_file(X, np.arange(n_rows) % 2, str(path), zero_based=False)
    size = path.stat().st_size / 1e6
    read = blocks.read(path, n_columns=1000)
    works: dict[str, Callable[[], Any]] = {
        "scikit-learn": lambda: load_svmlight_file(str(path), n_features=1000),
        "blocks.read": lambda: sum(len(y) for _, y in read),
    }
    for work in works.values():
        work()
    rates = {
        name: statistics.median(size / once(work) for _ in range(TURNS))
        for name, work in works.items()
    }
    lines = [[name, f"{rate:.0f}"] for name, rate in rates.items()]
    return "### Svmlight text\n\n" + table(["reader", "MB/s"], lines)


def memory() -> str:
    """Peak memory of a whole process that fits from a large set."""
    with tempfile.TemporaryDirectory() as folder:
        for part in range(LARGE_FILES):
            write_parquet(*rows(LARGE_ROWS, part), Path(folder) / f"part-{part}.parquet")
        peak = peak_bytes(LARGE_FIT.replace("{folder!r}", repr(folder)))
    size = LARGE_FILES * LARGE_ROWS * COLUMNS * 4
    title = f"### Peak memory over a Parquet set of {size / 1e9:.1f} GB, E = {SIZE:,}\n\n"
    return title + f"{peak / 1e9:.2f} GB resident, the interpreter and its libraries included.\n"


def in_turns(works: dict[str, Callable[[], Any]]) -> str:
    """Times of works done one after the other, and their ratios to the first of the same turn."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(TURNS):
        for name, work in works.items():
            times[name].append(once(work))
    first = next(iter(times.values()))
    lines = []
    for name, values in times.items():
        ratio = statistics.median(v / f for v, f in zip(values, first, strict=True))
        lines.append([name, f"{statistics.median(values):.2f}", f"{ratio:.3f}"])
    return table(["work", "seconds", "ratio (median of turns)"], lines)
