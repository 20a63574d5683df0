"""Rows of files, block by block: every format gives the same rows, from any position."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from craftmaps import OnePassClassifier, OnePassRegressor
from craftmaps.scale import blocks
from craftmaps.scale.files.read_ahead import read_ahead

N, D = 1000, 4
NAMES = [f"c{j}" for j in range(D)]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(np.float32)
    return X, np.where(X[:, 0] > 0, 7, -3)


def table_of(X, y):
    return pa.table({name: X[:, j] for j, name in enumerate(NAMES)} | {"y": y})


def csv_text(X, y, header=True):
    every = np.column_stack([X, y]).tolist()
    lines = [",".join([*map(repr, values), str(int(label))]) for *values, label in every]
    return "\n".join([*([",".join([*NAMES, "y"])] if header else []), *lines]) + "\n"


def write_npy(folder, X, y):
    np.save(folder / "X.npy", X)
    np.save(folder / "labels.npy", y)
    return {"path": folder / "X.npy", "target": folder / "labels.npy"}


def write_npy_columns(folder, X, y):
    np.save(folder / "Xy.npy", np.asfortranarray(np.column_stack([X, y]).astype(np.float32)))
    return {"path": folder / "Xy.npy", "target": -1}


def write_npz(folder, X, y):
    np.savez(folder / "both.npz", X=X, labels=y)
    return {"path": folder / "both.npz", "target": "labels"}


def write_compressed_npz(folder, X, y):
    np.savez_compressed(folder / "both.npz", rows=X, labels=y)
    return {"path": folder / "both.npz", "target": "labels"}


def write_parquet(folder, X, y):
    pq.write_table(table_of(X, y), folder / "t.parquet", row_group_size=170)
    return {"path": folder / "t.parquet", "target": "y"}


def write_parquet_parts(folder, X, y):
    for part, some in enumerate(np.array_split(np.arange(N), 3)):
        pq.write_table(table_of(X[some], y[some]), folder / f"part-{part}.parquet")
    (folder / "_SUCCESS").write_text("")
    return {"path": folder, "target": "y"}


def write_csv(folder, X, y):
    (folder / "t.csv").write_text(csv_text(X, y))
    return {"path": str(folder / "*.csv"), "target": "y", "dtype": np.float32}


def write_csv_gz(folder, X, y):
    import gzip

    text = csv_text(X, y, header=False).replace("\n", "\r\n")
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    return {"path": folder / "t.csv.gz", "target": -1, "header": False, "dtype": "float32"}


def write_svmlight(folder, X, y):
    dump_svmlight_file(X, y, str(folder / "t.libsvm"), zero_based=False)
    return {"path": folder / "t.libsvm", "dtype": np.float32}


WRITERS = [
    write_npy,
    write_npy_columns,
    write_npz,
    write_compressed_npz,
    write_parquet,
    write_parquet_parts,
    write_csv,
    write_csv_gz,
    write_svmlight,
]


def joined(pairs):
    Xs, ys = zip(*pairs, strict=True)
    dense = [X.toarray() if sparse.issparse(X) else X for X in Xs]
    return np.concatenate(dense), np.concatenate(ys)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("block_rows", [7, 400, 5000])
def test_every_format_gives_the_rows_in_blocks_of_the_asked_size(write, block_rows, rows, tmp_path):
    X, y = rows
    read = blocks.read(**write(tmp_path, X, y), block_rows=block_rows)
    pairs = list(read)
    sizes = [len(labels) for _, labels in pairs]
    assert sizes == [block_rows] * (N // block_rows) + [N % block_rows] * (N % block_rows > 0)
    X_read, y_read = joined(pairs)
    assert X_read.dtype == np.float32
    np.testing.assert_array_equal(X_read, X)
    np.testing.assert_array_equal(y_read, y)
    np.testing.assert_array_equal(joined(read)[0], X)  # from the beginning again


@pytest.mark.parametrize("write", WRITERS)
def test_reading_goes_on_from_the_position_after_any_block(write, rows, tmp_path):
    X, y = rows
    read = blocks.read(**write(tmp_path, X, y), block_rows=150)
    positions = [position for position, _ in read.from_position()]
    for done, position in enumerate(positions[:-1], 1):
        X_rest, y_rest = joined(block for _, block in read.from_position(position))
        np.testing.assert_array_equal(X_rest, X[150 * done :])
        np.testing.assert_array_equal(y_rest, y[150 * done :])
    assert list(read.from_position(positions[-1])) == []


@pytest.mark.parametrize("write", WRITERS)
def test_columns_are_chosen_in_the_given_order(write, rows, tmp_path):
    X, y = rows
    columns = ["c3", "c0"] if write in (write_parquet, write_parquet_parts, write_csv) else [3, 0]
    X_read, y_read = joined(blocks.read(**write(tmp_path, X, y), columns=columns, block_rows=300))
    np.testing.assert_array_equal(X_read, X[:, [3, 0]])
    np.testing.assert_array_equal(y_read, y)


def test_a_fit_from_files_is_the_fit_from_memory(rows, tmp_path):
    X, y = rows
    in_memory = OnePassClassifier(alpha=1.0).fit(X, y)
    for number, write in enumerate(WRITERS):
        (tmp_path / str(number)).mkdir()
        read = blocks.read(**write(tmp_path / str(number), X, y), block_rows=130)
        from_file = OnePassClassifier(alpha=1.0).fit_blocks(read)
        np.testing.assert_allclose(from_file.coef_, in_memory.coef_, rtol=1e-5)


def test_partitioned_folders_add_their_columns(rows, tmp_path):
    X, y = rows
    table = table_of(X, y).append_column("year", pa.array(2020 + np.arange(N) % 2))
    partitioning = ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=partitioning)
    X_read, _y_read = joined(blocks.read(tmp_path, target="y", block_rows=300))
    expected = np.column_stack([X, 2020 + np.arange(N) % 2])[
        np.argsort(np.arange(N) % 2, kind="stable")
    ]
    np.testing.assert_array_equal(X_read, expected)
    X_read, labels = joined(blocks.read(tmp_path, target="year", columns=NAMES))
    np.testing.assert_array_equal(labels, np.repeat([2020, 2021], N // 2))
    assert X_read.dtype == np.float32


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_targets_keep_their_type(suffix, tmp_path):
    columns = {
        "integer": np.array([1, 2, 3]),
        "real": np.array([0.5, 1.5, 2.5]),
        "text": np.array(["ja", "nein", "vielleicht"]),
        "x": np.array([1, 2, 3], np.int16),
    }
    if suffix == "parquet":
        columns["category"] = pa.array(columns["text"].tolist()).dictionary_encode()
        columns["yes"] = np.array([True, False, True])
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    else:
        every = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in every)]
        (tmp_path / "t.csv").write_text("\n".join(lines))  # no newline at the end
    for name, kind in [
        ("integer", "i"),
        ("real", "f"),
        ("text", "U"),
        ("category", "U"),
        ("yes", "b"),
    ]:
        if name in columns:
            ((X, y),) = blocks.read(tmp_path / f"t.{suffix}", target=name, columns=["x"])
            assert y.dtype.kind == kind
            assert y.tolist() == columns[name].tolist() or name == "category"
            assert X.dtype == (np.float32 if suffix == "parquet" else np.float64)
    ((X, y),) = blocks.read(tmp_path / f"t.{suffix}", target=["real", "integer"], columns=["x"])
    np.testing.assert_array_equal(y, np.column_stack([columns["real"], columns["integer"]]))
    ((X, y),) = blocks.read(tmp_path / f"t.{suffix}", columns=["x"])
    assert y is None


def test_text_labels_are_learnt_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(500)
    pq.write_table(pa.table({"x": x, "y": np.where(x > 0, "up", "down")}), tmp_path / "t.parquet")
    model = OnePassClassifier().fit_blocks(blocks.read(tmp_path, target="y", block_rows=64))
    assert model.classes_.tolist() == ["down", "up"]
    assert model.predict([[2.0]]).tolist() == ["up"]


def test_several_files_of_targets_stand_beside_their_rows(rows, tmp_path):
    X, y = rows
    for part, some in enumerate(np.array_split(np.arange(N), 3)):
        np.save(tmp_path / f"X{part}.npy", X[some])
        np.save(tmp_path / f"y{part}.npy", y[some])
    read = blocks.read(tmp_path / "X*.npy", target=tmp_path / "y*.npy", block_rows=90)
    np.testing.assert_array_equal(joined(read)[1], y)
    listed = blocks.read(
        [tmp_path / "X2.npy", tmp_path / "X0.npy"],
        target=[str(tmp_path / "y2.npy"), str(tmp_path / "y0.npy")],
    )
    assert len(joined(listed)[1]) == 333 + 334
    with pytest.raises(ValueError, match="3 files of rows and 1 of targets"):
        blocks.read(tmp_path / "X*.npy", target=tmp_path / "y0.npy")


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2"])
def test_svmlight_is_read_as_scikit_learn_reads_it(suffix, tmp_path):
    import bz2
    import gzip

    X = sparse.random(3000, 5000, 0.005, format="csr", random_state=0)
    y = np.random.default_rng(0).standard_normal(3000)
    path = tmp_path / f"rows.svmlight{suffix}"
    dump_svmlight_file(X, y, str(tmp_path / "plain"), zero_based=False, query_id=np.arange(3000))
    text = (tmp_path / "plain").read_bytes().replace(b"\n", b" # a remark: 3:4\n\n", 20)
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
    path.write_bytes(pack(b"# all of them\n" + text))
    X_wanted, y_wanted = load_svmlight_file(str(path), n_features=5000)
    pairs = list(blocks.read(path, block_rows=700, n_columns=5000))
    assert all(isinstance(part, sparse.csr_matrix) for part, _ in pairs)
    X_read = sparse.vstack([part for part, _ in pairs])
    y_read = np.concatenate([labels for _, labels in pairs])
    assert X_read.shape == (3000, 5000)
    assert (X_read != X_wanted).nnz == 0
    np.testing.assert_array_equal(y_read, y_wanted)
    found = next(iter(blocks.read(path)))[0].shape[1]
    assert found == X.indices.max() + 1


def test_svmlight_numbers_are_rounded_exactly(tmp_path):
    rng = np.random.default_rng(0)
    tokens = [
        f"{v:.{rng.integers(1, 20)}{rng.choice(['g', 'e', 'f'])}}"
        for v in rng.standard_normal(20_000) * 10.0 ** rng.integers(-12, 12, 20_000)
    ]
    tokens += [
        "0",
        "-0.0",
        "+5",
        "5.",
        ".5",
        "1e5",
        "1E-5",
        "9007199254740993",
        "1e-320",
        "1e22",
        "123456789012345678",
        "123456789012345678901234567890",
        "0.000000000000000000001",
        "2.2250738585072014e-308",
        "8.5e+22",
        "999999999999999999e-22",
    ]
    path = tmp_path / "numbers.svm"
    path.write_text("\n".join(f"{token} 1:{token}" for token in tokens))
    ((X, y),) = blocks.read(path, block_rows=30_000)
    wanted = np.array([float(token) for token in tokens])
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(X.toarray()[:, 0], wanted)


def test_svmlight_has_no_columns_beyond_its_largest_index(tmp_path):
    dump_svmlight_file(np.eye(5), np.arange(5), str(tmp_path / "t.libsvm"), zero_based=False)
    for column in (5, -6, 1.5, "x"):
        rows = blocks.read(tmp_path / "t.libsvm", columns=[0, column])
        with pytest.raises(
            ValueError, match=f"there is no column {column!r}; .* gives it 5 of them"
        ):
            list(rows)
    ((X, _),) = blocks.read(tmp_path / "t.libsvm", columns=[5, -1], n_columns=6)
    np.testing.assert_array_equal(X.toarray(), np.zeros((5, 2)))
    ((X, _),) = blocks.read(tmp_path / "t.libsvm", columns=[2, 0], n_columns=3)
    np.testing.assert_array_equal(X.toarray(), np.eye(5)[:, [2, 0]])


def test_svmlight_may_count_from_zero(tmp_path):
    path = tmp_path / "zero.svm"
    path.write_text("1 0:2 2:3\n-1 1:4\n")
    ((X, y),) = blocks.read(path, zero_based=True)
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 3], [0, 4, 0]])
    assert y.tolist() == [1, -1]


def test_sparse_rows_are_learnt(tmp_path):
    X = sparse.random(500, 30, 0.2, format="csr", random_state=0)
    y = X @ np.arange(30.0)
    dump_svmlight_file(X, y, str(tmp_path / "t.libsvm"), zero_based=False)
    model = OnePassRegressor(alpha=1e-8).fit_blocks(
        blocks.read(tmp_path / "t.libsvm", n_columns=30, block_rows=100)
    )
    np.testing.assert_allclose(model.coef_, np.arange(30.0), atol=1e-4)


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "craftmaps reader"]


def test_no_more_than_a_few_items_are_made_ahead():
    made = []

    def items():
        for i in range(100):
            made.append(i)
            yield i

    taken = read_ahead(items(), ahead=2)
    for i in range(10):
        assert next(taken) == i
        assert len(made) <= i + 4
    taken.close()
    assert not readers()
    assert len(made) < 15


def test_the_reader_ends_with_its_consumer(rows, tmp_path):
    X, y = rows
    read = blocks.read(**write_npy(tmp_path, X, y), block_rows=10)
    iterator = iter(read)
    next(iterator)
    assert len(readers()) == 1
    iterator.close()
    assert not readers()
    for _ in read:
        break
    assert not readers()
    with pytest.raises(ValueError, match="not among the 2 classes") as caught:
        OnePassClassifier().fit_blocks(read, classes=[0, 1])
    assert not readers()  # although the traceback keeps the frames of the fit
    assert caught.traceback


def test_an_error_of_the_reader_reaches_the_consumer():
    def items():
        yield 1
        raise OSError("gone")

    taken = read_ahead(items())
    assert next(taken) == 1
    with pytest.raises(OSError, match="gone"):
        next(taken)
    assert not readers()
