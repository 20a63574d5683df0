"""Columns go by name in every format, and weights are a column like the target."""

import numpy as np
import pandas as pd
import pytest

from craftmaps import OnePassRegressor
from craftmaps.scale import blocks, read

NAMES = ["a", "b", "c", "w", "y"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    values = np.column_stack([X, rng.uniform(0, 2, 90), X @ [1.0, 10.0, 100.0]])
    return pd.DataFrame(values, columns=NAMES)


def write(table, path):
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)


def test_names_with_spaces_around_them_are_found(tmp_path):
    (tmp_path / "t.csv").write_text("a, b, y\n1, 2, 3\n4, 5, 6\n")
    rows = read(tmp_path / "t.csv", target="y")
    assert rows.names == ["a", " b"]
    ((X, y),) = rows
    assert (X.tolist(), y.tolist()) == ([[1, 2], [4, 5]], [3, 6])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("columns", [None, ["c", "a"], [2, 0]])
def test_columns_in_another_order_are_found_by_name(suffix, columns, table, tmp_path):
    write(table[:40], tmp_path / f"1{suffix}")
    write(table[NAMES[::-1]][40:], tmp_path / f"2{suffix}")
    for path in (tmp_path, tmp_path / f"1{suffix}"):
        rows = read(path, target="y", weight="w", columns=columns, block_rows=32)
        X, y, weight = (np.concatenate(part) for part in zip(*rows, strict=True))
        wanted = ["a", "b", "c"] if columns is None else ["c", "a"]
        assert rows.names == wanted
        np.testing.assert_allclose(X, table[wanted][: len(X)], rtol=1e-12)
        np.testing.assert_allclose(y, table["y"][: len(X)], rtol=1e-12)
        np.testing.assert_allclose(weight, table["w"][: len(X)], rtol=1e-12)
    assert len(rows.fingerprint()["weight"]) > 0


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_another_set_of_columns_is_an_error(suffix, table, tmp_path):
    write(table[:40], tmp_path / f"1{suffix}")
    write(table[40:].rename(columns={"b": "z"}), tmp_path / f"2{suffix}")
    with pytest.raises(ValueError, match=rf"2\{suffix}: there is no column 'b'; its 5 columns"):
        list(read(tmp_path, target="y"))
    write(table[40:].assign(z=0.0), tmp_path / f"2{suffix}")
    with pytest.raises(ValueError, match=rf"2\{suffix}, column 'z': .*1\{suffix} has no such"):
        list(read(tmp_path, target="y"))
    assert sum(len(X) for X, _ in read(tmp_path, target="y", columns=["a", "b"])) == 90


def test_files_without_names_must_have_equally_many_columns(tmp_path):
    (tmp_path / "1.csv").write_text("1,2,3\n")
    (tmp_path / "2.csv").write_text("1,2,3,4\n")
    with pytest.raises(ValueError, match=r"2\.csv, column 3: .*1\.csv has no such column"):
        list(read(tmp_path, target=0, header=False))


def weighted_files(folder, table):
    X, w, y = (
        np.ascontiguousarray(table[["a", "b", "c"]]),
        table["w"].to_numpy(),
        table["y"].to_numpy(),
    )
    np.save(folder / "X.npy", X)
    np.save(folder / "w.npy", w)
    np.save(folder / "y.npy", y)
    np.save(folder / "all.npy", table.to_numpy())
    np.savez(folder / "all.npz", X=X, w=w, y=y)
    write(table, folder / "all.csv")
    write(table, folder / "all.parquet")
    yield read(folder / "X.npy", target=folder / "y.npy", weight=folder / "w.npy")
    yield read(folder / "all.npy", target=4, weight=-2, block_rows=17)
    yield read(folder / "all.npz", target="y", weight="w", block_rows=17)
    yield read(folder / "all.csv", target="y", weight="w", block_rows=17)
    yield read(folder / "all.parquet", target="y", weight="w", block_rows=17)


def test_weights_are_learned_from_every_format_that_has_columns(table, tmp_path):
    expected = OnePassRegressor(alpha=1.0).fit(
        table[["a", "b", "c"]].to_numpy(), table["y"], sample_weight=table["w"]
    )
    for rows in weighted_files(tmp_path, table):
        found = OnePassRegressor(alpha=1.0).fit_blocks(rows)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7)
        assert rows.n_rows in (90, None)
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="svmlight files have no column of weights"):
        read(tmp_path / "rows.svm", weight=0)


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", ""])
def test_weights_are_numbers_of_at_least_0(weight, tmp_path):
    (tmp_path / "t.csv").write_text(f"a,w,y\n1,1,2\n3,{weight},4\n")
    with pytest.raises(
        ValueError, match=r"line 3, column 'w': the weight .* of at least 0; on_bad"
    ):
        list(read(tmp_path / "t.csv", target="y", weight="w"))
    rows = read(tmp_path / "t.csv", target="y", weight="w", on_bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad row"):
        ((X, y, w),) = rows
    assert (X.tolist(), y.tolist(), w.tolist()) == ([[1.0]], [2], [1.0])
    with pytest.raises(ValueError, match="it is the weight and cannot be a column of X"):
        read(tmp_path / "t.csv", target="y", weight="w", columns=["a", "w"])


def test_rows_are_counted_where_headers_tell(table, tmp_path):
    files = list(weighted_files(tmp_path, table))
    assert [rows.n_rows for rows in files] == [90, 90, 90, None, 90]
    assert read(tmp_path / "all.npy", target=4, on_bad_rows="skip").n_rows is None
    files[3].n_rows = 90
    assert files[3].n_rows == 90


def test_read_is_the_short_door():
    assert read is blocks.read
