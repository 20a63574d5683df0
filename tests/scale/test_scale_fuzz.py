"""Damaged files of every format: rows or an error of ours, and nothing else."""

import gzip
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from craftmaps.scale import read
from craftmaps.scale.files.errors import FileError

N = 12
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a file here waits for no disk
READERS = {
    "csv": ["t.csv", "t.csv.gz", "mixed.csv"],
    "svmlight": ["t.svm"],
    "npy": ["t.npy"],
    "npz": ["t.npz", "compressed.npz"],
    "parquet": ["t.parquet", "mixed.parquet"],
}


def text_of(X, y):
    rows = zip(X.tolist(), y.tolist(), strict=True)
    return "a,b,y\n" + "".join(f"{a!r},{b!r},{label}\n" for (a, b), label in rows)


def originals(folder):
    """A whole file of each format, and how it is read."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, 2)), rng.integers(0, 3, N)
    text = text_of(X, y)
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    lines = (f"{label} 1:{a!r} 2:{b!r}" for (a, b), label in zip(X.tolist(), y, strict=True))
    (folder / "t.svm").write_text("\n".join(lines))
    np.save(folder / "t.npy", np.column_stack([X, y]))
    np.savez(folder / "t.npz", X=X, y=y)
    np.savez_compressed(folder / "compressed.npz", X=X, y=y)
    dates = np.datetime64("2024-02-29") + np.arange(N)
    mixed = pa.table(
        {"when": dates, "word": ["ape", "b,ee", None] * (N // 3), "x": X[:, 0], "y": y}
    )
    pq.write_table(mixed, folder / "mixed.parquet")
    csv.write_csv(mixed, folder / "mixed.csv")
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), folder / "t.parquet")
    return {
        "t.csv": {"target": "y"},
        "t.csv.gz": {"target": "y"},
        "t.svm": {"n_columns": 2},
        "t.npy": {"target": 2},
        "t.npz": {"target": "y"},
        "compressed.npz": {"target": "y"},
        "t.parquet": {"target": "y"},
        "mixed.csv": {"target": "y"},
        "mixed.parquet": {"target": "y"},
    }


def damaged(whole, rng):
    """Bytes flipped, cut out, doubled, exchanged, or cut off."""
    data = bytearray(whole)
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(0, max(1, len(data))))
        # headers and ends decide about a file, and are a small part of it
        start = [start, start % 128, len(data) - 1 - start % 200][rng.integers(3)] % len(data)
        stop = start + int(rng.integers(1, 12))
        match rng.integers(5):
            case 0:
                data[start] ^= 1 << int(rng.integers(8))
            case 1:
                del data[start:stop]
            case 2:
                data[start:start] = data[start:stop]
            case 3:
                data[start:stop] = rng.bytes(stop - start)
            case 4:
                data = data[: start + 1]
        data = data or bytearray(b"\0")
    return bytes(data)


def outcome(path, options, rng):
    """ "rows" or "refused"; any other exception fails the test."""
    try:
        rows = read(path, **options, on_bad_rows="skip" if rng.integers(2) else "error")
        for X, y in rows:
            assert X.shape[0] == len(y)
            if rows.schema is not None:  # damaged numbers may be text
                assert X.schema == rows.schema
            else:
                assert np.isfinite(X.data if hasattr(X, "tocsr") else X).all()
    except FileError as error:
        return "refused" if str(path) in str(error) else "an error does not name its file"
    return "rows"


def fuzz(name, cases, seed=0):
    """How often damage to one file had which outcome."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        return Counter(_outcomes(Path(folder), name, cases, seed))


def _outcomes(folder, name, cases, seed):
    options = originals(folder)[name]
    path, whole = folder / name, (folder / name).read_bytes()
    for case in range(cases):
        rng = np.random.default_rng([case, len(name), seed])
        path.write_bytes(damaged(whole, rng))
        try:
            yield outcome(path, options, rng)
        except Exception as error:
            raise AssertionError(f"case {case} of {name}: {error!r}") from error


@pytest.mark.parametrize("name", [name for names in READERS.values() for name in names])
@pytest.mark.filterwarnings("ignore")
def test_damage_is_told_or_harmless(name):
    outcomes = fuzz(name, 100)
    assert outcomes.keys() <= {"rows", "refused"}
    assert outcomes["refused"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "name"), [(reader, name) for reader, names in READERS.items() for name in names]
)
@pytest.mark.filterwarnings("ignore")
def test_damage_of_10_000_files_of_a_reader_is_told_or_harmless(reader, name):
    cases = -(-10_000 // len(READERS[reader]))
    outcomes = fuzz(name, cases, 1)
    assert outcomes.keys() <= {"rows", "refused"}
    assert outcomes.total() == cases
    assert outcomes["refused"] > 100
    assert outcomes["rows"] > 50 or name == "t.csv.gz"  # a checksum finds all damage
