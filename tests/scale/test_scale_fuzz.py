"""Damaged files of every format: rows or an error of ours, and nothing else.

CRAFTMAPS_FUZZ_CASES is the number of cases for each format.
"""

import gzip
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from craftmaps.scale import read
from craftmaps.scale.files.errors import FileError

CASES = int(os.environ.get("CRAFTMAPS_FUZZ_CASES", "150"))
N = 40


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
    np.savez_compressed(folder / "u.npz", X=X, y=y)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), folder / "t.parquet")
    return {
        "t.csv": {"target": "y"},
        "t.csv.gz": {"target": "y"},
        "t.svm": {"n_columns": 2},
        "t.npy": {"target": 2},
        "t.npz": {"target": "y"},
        "u.npz": {"target": "y"},
        "t.parquet": {"target": "y"},
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


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.svm", "t.npy", "t.npz", "u.npz", "t.parquet"]
)
@pytest.mark.filterwarnings("ignore")
def test_damage_is_told_or_harmless(name, tmp_path):
    options = originals(tmp_path)[name]
    whole = (tmp_path / name).read_bytes()
    outcomes = {"rows": 0, "refused": 0}
    for case in range(CASES):
        rng = np.random.default_rng([case, len(name)])
        (tmp_path / name).write_bytes(damaged(whole, rng))
        skip = "skip" if rng.integers(2) else "error"
        try:
            rows = read(tmp_path / name, **options, on_bad_rows=skip)
            for X, y in rows:
                assert X.shape[0] == len(y)
                if rows.schema is not None:  # damaged numbers may be text
                    assert X.schema == rows.schema
                else:
                    assert np.isfinite(X.data if hasattr(X, "tocsr") else X).all()
            outcomes["rows"] += 1
        except FileError as error:
            outcomes["refused"] += str(tmp_path / name) in str(error)
        except Exception as error:
            raise AssertionError(f"case {case}: {error!r}") from error
    assert sum(outcomes.values()) == CASES, "an error does not name its file"
    assert outcomes["refused"] > 0
