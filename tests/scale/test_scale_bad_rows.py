"""Files with faults: an error that names the place, or the rows left out and counted."""

import bz2
import contextlib
import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from craftmaps.scale import blocks
from craftmaps.scale.files import csv, text

N = 200


def write_csv(path, faults=()):
    lines = ["a,b,label", *(f"{i},{i / 2},{i % 3}" for i in range(N))]
    for line, fault in faults:
        lines[line - 1] = fault
    path.write_text("\n".join(lines) + "\n")
    return path


def good_rows(read):
    pairs = list(read)
    return np.concatenate([X for X, _ in pairs])[:, 0], np.concatenate([y for _, y in pairs])


CSV_FAULTS = [
    ("17,8.5", "line 19: 2 values in 3 columns"),
    ("17,8.5,1,9", "line 19: 4 values in 3 columns"),
    ("17,oops,1", "line 19, column 'b': 'oops' is not a number"),
    ("17,,1", "line 19, column 'b': nan is not a finite number"),
    ("17,NaN,1", "line 19, column 'b': nan is not a finite number"),
    ("17,inf,1", "line 19, column 'b': inf is not a finite number"),
    ("17,8.5,", "line 19, column 'label': the target is missing"),
]


@pytest.mark.parametrize(("fault", "message"), CSV_FAULTS)
def test_a_fault_of_a_csv_file_is_named(fault, message, tmp_path):
    path = write_csv(tmp_path / "t.csv", [(19, fault)])
    with pytest.raises(ValueError, match=message) as caught:
        list(blocks.read(path, target="label", block_rows=30, table=False))
    assert str(path) in str(caught.value)
    way_out = "unlabeled" if "target" in message else "skip"
    assert f"on_bad_rows='{way_out}'" in str(caught.value)


@pytest.mark.parametrize("fault", [fault for fault, _ in CSV_FAULTS])
def test_a_fault_of_a_csv_file_is_left_out_and_counted(fault, tmp_path):
    path = write_csv(tmp_path / "t.csv", [(19, fault), (1 + N, fault)])
    read = blocks.read(path, target="label", block_rows=30, on_bad_rows="skip")
    with pytest.warns(UserWarning, match="^2 bad rows were left out"):
        a, y = good_rows(read)
    assert read.skipped_rows == 2
    expected = np.setdiff1d(np.arange(N), [17, N - 1])
    np.testing.assert_array_equal(a, expected)
    np.testing.assert_array_equal(y, expected % 3)
    assert y.dtype.kind == "i"


def test_a_target_that_is_no_number_is_found_when_the_others_are(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 500)
    path = write_csv(tmp_path / "t.csv", [(150, "148,74.0,?")])
    with pytest.raises(ValueError, match=r"line 150, column 'label': '\?' is not a number"):
        list(blocks.read(path, target="label"))


@pytest.mark.parametrize("skip", [False, True])
def test_targets_that_begin_as_whole_numbers(tmp_path, skip):
    (tmp_path / "0.csv").write_text("a,label\n")
    (tmp_path / "1.csv").write_text("a,label\n1,1\n2,2\n")
    (tmp_path / "2.csv").write_text("a,label\n3,1.5\n" + "x,3\n" * skip)
    read = blocks.read(tmp_path / "*.csv", target="label", on_bad_rows="skip" if skip else "error")
    with pytest.warns(UserWarning, match="1 bad row") if skip else contextlib.nullcontext():
        targets = np.concatenate([y for _, y in read])
    assert targets.tolist() == [1.0, 2.0, 1.5]


def test_a_return_within_a_line_is_named(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"u,v\n1,2\r3,4\n5,6\n")
    for target in (None, "v"):
        with pytest.raises(ValueError, match="line 2: "):
            list(blocks.read(tmp_path / "t.csv", target=target))


def test_files_without_rows_add_none(tmp_path):
    (tmp_path / "1.svm").write_text("1 1:2\n2 2:1\n")
    (tmp_path / "2.svm").write_text("# nothing\n")
    assert sum(len(y) for _, y in blocks.read(tmp_path / "*.svm")) == 2


def test_lines_are_counted_through_chunks_blank_lines_and_returns(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 97)
    path = write_csv(tmp_path / "t.csv", [(60, ""), (61, ""), (180, "x,1,1")])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(ValueError, match="line 180, column 'a': 'x' is not a number"):
        list(blocks.read(path, target="label", block_rows=7))
    read = blocks.read(path, target="label", block_rows=7, on_bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad row"):
        pairs = list(read.from_position())
    for number, (position, _) in enumerate(pairs[:-1], 1):
        with pytest.warns(UserWarning, match="^1 bad row"):
            rest = [block for _, block in read.from_position(position)]
        np.testing.assert_array_equal(
            np.concatenate([X for X, _ in rest]),
            np.concatenate([block[0] for _, block in pairs[number:]]),
        )


def test_text_that_is_no_utf8_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,label\n1,x\n2,\xff\xfe\n")
    with pytest.raises(ValueError, match="line 3: the line cannot be read"):
        list(blocks.read(path, target="label"))


def write_parquet(path, missing=()):
    a = np.arange(N, dtype=float)
    columns = {"a": pa.array(a), "label": pa.array(["xyz"[i % 3] for i in range(N)])}
    for name, row, value in missing:
        values = columns[name].to_pylist()
        values[row] = value
        columns[name] = pa.array(values)
    pq.write_table(pa.table(columns), path, row_group_size=64)
    return path


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (("a", 70, None), "row 70, column 'a': nan is not a finite number"),
        (("a", 70, float("nan")), "row 70, column 'a': nan is not a finite number"),
        (("a", 70, float("-inf")), "row 70, column 'a': -inf is not a finite number"),
        (("label", 70, None), "row 70, column 'label': the target is missing"),
    ],
)
def test_faults_of_parquet_files(fault, message, tmp_path):
    path = write_parquet(tmp_path / "t.parquet", [fault, (*fault[:1], 3, fault[2])])
    with pytest.raises(ValueError, match="row 3"):
        list(blocks.read(path, target="label", table=False))
    path = write_parquet(tmp_path / "t.parquet", [fault])
    with pytest.raises(ValueError, match=message):
        list(blocks.read(path, target="label", block_rows=50, table=False))
    read = blocks.read(path, target="label", block_rows=50, on_bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad row was left out of /"):
        a, y = good_rows(read)
    assert read.skipped_rows == 1
    np.testing.assert_array_equal(a, np.delete(np.arange(N), 70))
    assert y.dtype.kind == "U"


def test_integer_targets_beside_missing_ones_stay_exact(tmp_path):
    large = 2**60 + 1
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [large, None]}), tmp_path / "t.parquet")
    read = blocks.read(tmp_path, target="y", on_bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad row"):
        assert good_rows(read)[1].tolist() == [large]


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_faults_of_arrays(suffix, tmp_path):
    X, y = np.ones((N, 3)), np.arange(N) * 1.0
    X[150, 2] = np.nan
    y[151] = np.inf
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "both.npz", X=X, y=y)
    path = tmp_path / ("X.npy" if suffix == "npy" else "both.npz")
    target = tmp_path / "y.npy" if suffix == "npy" else "y"
    with pytest.raises(ValueError, match="row 150, column 2: nan is not a finite number"):
        list(blocks.read(path, target=target, block_rows=40))
    read = blocks.read(path, target=target, block_rows=40, on_bad_rows="skip")
    with pytest.warns(UserWarning, match="2 bad rows"):
        _, kept = good_rows(read)
    np.testing.assert_array_equal(kept, np.delete(np.arange(N), [150, 151]))


SVMLIGHT_FAULTS = [
    ("1 1:2 x:3", "line 2: 'x:3' is no index:value"),
    ("1 1:2 3", "line 2: '3' is no index:value"),
    ("1 2:2 1:3", "line 2: index of '1:3' does not ascend"),
    ("1 0:2", "line 2: index 0, but columns count from 1"),
    ("1 1:2 4:5", "line 2: index 4 is beyond n_columns=3"),
    ("1 1:2 2:abc", "line 2, column 2: nan is not a finite number"),
    ("1 1:2 2:", "line 2, column 2: nan is not a finite number"),
    ("1 1:2 2:1_0", "line 2, column 2: nan is not a finite number"),
    ("one 1:2", "line 2, column 'target': the target is missing or not finite"),
    ("1,2 1:2", "line 2, column 'target': the target is missing or not finite"),
    ("1:3 1:2", "line 2, column 'target': the target is missing or not finite"),
]


@pytest.mark.parametrize(("fault", "message"), SVMLIGHT_FAULTS)
def test_faults_of_svmlight_files(fault, message, tmp_path):
    path = tmp_path / "t.svm"
    path.write_text(f"5 1:1 3:2\n{fault}\n6 qid:3 2:1 # 9:9\n")
    with pytest.raises(ValueError, match=message):
        list(blocks.read(path, n_columns=3))
    read = blocks.read(path, n_columns=3, on_bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad row"):
        ((X, y),) = read
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 2], [0, 1, 0]])
    assert y.tolist() == [5, 6]


def test_compressed_texts_that_end_too_early_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    text = "".join(f"{v} 1:{v}\n" for v in rng.standard_normal(5000)).encode()
    for suffix, pack in ((".gz", gzip.compress), (".bz2", bz2.compress)):
        path = tmp_path / f"t.svm{suffix}"
        path.write_bytes(pack(text)[:-1000])
        with pytest.raises(
            ValueError, match=rf"{path}: the file is damaged or cut off somewhere after line"
        ):
            list(blocks.read(path, n_columns=1, on_bad_rows="skip"))
    flipped = bytearray(gzip.compress(text))
    flipped[len(flipped) // 2] ^= 255
    (tmp_path / "t.svm.gz").write_bytes(flipped)
    with pytest.raises(ValueError, match="is damaged or cut off"):
        list(blocks.read(tmp_path / "t.svm.gz", n_columns=1, on_bad_rows="skip"))


def test_binary_files_that_end_too_early_are_refused(tmp_path):
    whole = write_parquet(tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:-100])
    with pytest.raises(ValueError, match=r"t\.parquet: the file is damaged, or is not Parquet"):
        blocks.read(tmp_path / "t.parquet", target="label")
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.random(5000), "label": rng.random(5000)})
    for checked, lost in ((False, slice(4, 500)), (True, slice(5000, 5001))):
        pq.write_table(table, tmp_path / "u.pq", write_page_checksum=checked)
        holed = bytearray((tmp_path / "u.pq").read_bytes())
        holed[lost] = bytes(255 - byte for byte in holed[lost])
        (tmp_path / "u.pq").write_bytes(holed)
        with pytest.raises(ValueError, match=r"u\.pq: the file is damaged"):
            list(blocks.read(tmp_path / "u.pq", target="label"))
    np.save(tmp_path / "X.npy", np.ones((100, 3)))
    (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"X\.npy: the file is damaged, or is not an \.npy file"):
        blocks.read(tmp_path / "X.npy", target=0)
    np.savez(tmp_path / "a.npz", X=np.ones((1000, 3)), y=np.ones(1000))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:20_000])
    with pytest.raises(ValueError, match=r"a\.npz: the file is damaged"):
        blocks.read(tmp_path / "a.npz", target="y")
    altered = bytearray(whole)
    altered[5000] ^= 1
    (tmp_path / "a.npz").write_bytes(altered)
    with pytest.raises(
        ValueError, match=r"a\.npz: the file is damaged, or is not an \.npz file \(Bad CRC"
    ):
        list(blocks.read(tmp_path / "a.npz", target="y"))


class Trap:
    """Would leave a trace if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_no_pickle_is_ever_read(tmp_path):
    trace = tmp_path / "trace"
    trapped = np.array([[Trap(trace)]], dtype=object)
    np.save(tmp_path / "X.npy", trapped, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=np.ones((1, 1)), y=trapped)
    np.save(tmp_path / "good.npy", np.ones((1, 1)))
    with pytest.raises(ValueError, match=r"is not an \.npy file of numbers or text"):
        blocks.read(tmp_path / "X.npy", target=0)
    with pytest.raises(ValueError, match=r"is not an \.npy file of numbers or text"):
        list(blocks.read(tmp_path / "good.npy", target=tmp_path / "X.npy"))
    with pytest.raises(ValueError, match=r"array 'y' of .* holds pickled objects"):
        list(blocks.read(tmp_path / "a.npz", target="y"))
    assert not trace.exists()
    np.load(tmp_path / "X.npy", allow_pickle=True)  # the trap works
    assert trace.exists()


def test_wrong_calls_are_answered_in_one_sentence(tmp_path):
    csv = write_csv(tmp_path / "t.csv")
    parquet = write_parquet(tmp_path / "t.parquet")
    np.save(tmp_path / "X.npy", np.ones((4, 3)))
    np.save(tmp_path / "y.npy", np.ones(5))
    (tmp_path / "latin.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
    np.savez(tmp_path / "b.npz", X=np.ones((4, 3)), y=np.array(1.0))
    np.savez(tmp_path / "a.npz", X=np.asfortranarray(np.ones((4, 3))), y=np.ones(4))
    for call, message in [
        (lambda: blocks.read(tmp_path / "no.csv"), "there is no file"),
        (
            lambda: blocks.read(csv, target="labels"),
            "there is no column 'labels'; its 3 columns are a, b",
        ),
        (lambda: blocks.read(csv, target=3), "there is no column 3"),
        (lambda: blocks.read(csv, columns=[]), "columns must name at least one"),
        (lambda: blocks.read(tmp_path / "latin.csv"), "the first line is not text in utf-8"),
        (lambda: list(blocks.read(tmp_path / "b.npz", target="y")), r"targets of shape \(\)"),
        (
            lambda: blocks.read(parquet, target="z"),
            "there is no column 'z'; its 2 columns are a, label",
        ),
        (
            lambda: blocks.read(parquet, target="a", table=False),
            "column 'label': it holds string, not numbers",
        ),
        (lambda: blocks.read([csv, parquet], target="a"), "its format differs from that of"),
        (lambda: blocks.read(csv, block_rows=0), "block_rows must be"),
        (lambda: blocks.read(csv, on_bad_rows="ignore"), "on_bad_rows must be one of"),
        (lambda: blocks.read(csv, dtype=int), "dtype must be float32"),
        (lambda: blocks.read(csv, format="xml"), "format must be one of"),
        (lambda: blocks.read(tmp_path / "X.npy", target=3), "there is no column 3; its 3 columns"),
        (
            lambda: list(blocks.read(tmp_path / "X.npy", target=tmp_path / "y.npy")),
            r"has 4 rows, and .* has targets of shape \(5,\)",
        ),
        (lambda: blocks.read(tmp_path / "a.npz", target="z"), "there is no array 'z'; it has X, y"),
        (lambda: blocks.read(tmp_path / "a.npz", target="y"), "is stored by columns"),
        (lambda: blocks.read(tmp_path / "y.npy", target=0), "must hold a matrix"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            call()
    (tmp_path / "rows").write_text("1 1:2\n")
    with pytest.raises(
        ValueError, match=r"rows: its suffix does not tell the format; give format="
    ):
        blocks.read(tmp_path / "rows")
    assert next(iter(blocks.read(tmp_path / "rows", format="svmlight")))[0].shape == (1, 1)
    with pytest.raises(ValueError, match="begin with their target"):
        blocks.read(tmp_path / "rows", target=0, format="svmlight")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_is_refused(tmp_path):
    """It would be empty when it is opened a second time."""
    os.mkfifo(tmp_path / "rows.csv")
    for path in (tmp_path / "rows.csv", tmp_path / "*.csv"):
        with pytest.raises(ValueError, match=r"rows\.csv: it is not a regular file, .* first\."):
            blocks.read(path, target=0)


def test_columns_of_one_name_are_refused_where_they_are_wanted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,a,y\n1,2,3,0\n")
    for columns in (None, ["a"], ["b", "a"]):
        with pytest.raises(
            ValueError, match=r"column 'a': there are 2 columns of this name, so rename them"
        ):
            blocks.read(path, target="y", columns=columns)
    with pytest.raises(ValueError, match="column 'a': there are 2 columns of this name"):
        blocks.read(path, target="a", columns=["b"])
    ((X, y),) = blocks.read(path, target="y", columns=["b"])
    assert (X.tolist(), y.tolist()) == ([[2.0]], [0])


def test_the_target_is_not_learnt_from_itself(tmp_path):
    csv = write_csv(tmp_path / "t.csv")
    np.save(tmp_path / "X.npy", np.ones((4, 3)))
    np.savez(tmp_path / "a.npz", X=np.ones((4, 3)))
    for columns in (["a", "label"], [0, -1]):
        with pytest.raises(
            ValueError, match="column 'label': it is the target and cannot be a column of X"
        ):
            blocks.read(csv, target="label", columns=columns)
    for name in ("X.npy", "a.npz"):
        with pytest.raises(
            ValueError, match="column 2: it is the target and cannot be a column of X"
        ):
            blocks.read(tmp_path / name, target=-1, columns=[0, 2])


def test_targets_that_no_model_can_hold_are_refused_before_a_fit(tmp_path):
    rows = np.ones((3, 2))
    np.save(tmp_path / "X.npy", rows)
    for y in (np.array([b"a", b"b", b"c"]), np.arange(3).astype("M8[D]"), np.ones(3, complex)):
        np.savez(tmp_path / "a.npz", X=rows, y=y)
        with pytest.raises(ValueError, match=r"array 'y' of .* holds .*, and targets are numbers"):
            blocks.read(tmp_path / "a.npz", target="y")
        np.save(tmp_path / "y.npy", y)
        with pytest.raises(
            ValueError, match=r"y\.npy: it holds .*, and targets are numbers or text"
        ):
            list(blocks.read(tmp_path / "X.npy", target=tmp_path / "y.npy"))
    good = pa.table({"a": [1.0, 2.0], "y": [1, 2]})
    (tmp_path / "many").mkdir()
    pq.write_table(good, tmp_path / "many" / "1.parquet")
    for kind in (pa.binary(), pa.null(), pa.date32(), pa.list_(pa.int64())):
        column = pa.array([None, None], kind)
        bad = good.set_column(1, "y", column)
        for path in (tmp_path / "t.parquet", tmp_path / "many" / "2.parquet"):
            pq.write_table(bad, path)
            with pytest.raises(
                ValueError, match=r"column 'y': it holds .*, targets are numbers or"
            ):
                list(blocks.read(path, target="y"))
        with pytest.raises(ValueError, match=r"2\.parquet, column 'y': it holds"):
            list(blocks.read(tmp_path / "many", target="y"))


def test_later_files_must_have_the_columns_of_the_first(tmp_path):
    write_csv(tmp_path / "1.csv")
    (tmp_path / "2.csv").write_text("label,b,a\n7,1,2\n")  # in another order: by name
    pairs = list(blocks.read(tmp_path / "*.csv", target="label", columns=["a", "b"]))
    assert pairs[-1][0][-1].tolist() == [2, 1]
    assert pairs[-1][1][-1] == 7
    (tmp_path / "2.csv").write_text("label,b\n7,1\n")
    with pytest.raises(ValueError, match=r"2\.csv: there is no column 'a'"):
        list(blocks.read(tmp_path / "*.csv", target="label", columns=["a", "b"]))
    write_parquet(tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": [1.0], "label": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet: there is no column 'a'"):
        list(blocks.read(tmp_path / "*.parquet", target="label"))
    pq.write_table(pa.table({"a": ["one"], "label": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet, column 'a': it holds string"):
        list(blocks.read(tmp_path / "*.parquet", target="label"))
    np.save(tmp_path / "1.npy", np.ones((3, 2)))
    np.save(tmp_path / "2.npy", np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"2\.npy: it has rows of shape \(4,\)"):
        list(blocks.read(tmp_path / "*.npy", target=0))


@pytest.mark.parametrize("mark", ["", "NA", "?", " n/a "])
def test_only_rows_without_a_target_are_left_out(mark, tmp_path, monkeypatch):
    """A mark among 30 numbers is a missing target, and among 3 numbers it may be a label."""
    monkeypatch.setattr(text, "CHUNK_BYTES", 200)
    monkeypatch.setattr(csv, "_SAMPLE_BYTES", 200)
    lines = ["a,y", *(f"{i},{i % 30 if i != 150 else mark}" for i in range(N))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    read = blocks.read(tmp_path / "t.csv", target="y", on_bad_rows="unlabeled")
    with pytest.warns(UserWarning, match="^1 row without a target was left out"):
        a, y = good_rows(read)
    np.testing.assert_array_equal(a, np.delete(np.arange(N), 150))
    np.testing.assert_array_equal(y, np.delete(np.arange(N) % 30, 150))
    few = [
        f"{line.partition(',')[0]},{i % 3 if i != 151 else mark}" for i, line in enumerate(lines)
    ]
    (tmp_path / "few.csv").write_text("\n".join(["a,y", *few[1:]]))
    read = blocks.read(tmp_path / "few.csv", target="y", on_bad_rows="unlabeled")
    if mark != "?":
        with pytest.warns(UserWarning, match="^1 row without a target"):
            assert len(good_rows(read)[1]) == N - 1
    else:
        with pytest.raises(
            ValueError, match=r"line 152, column 'y': .* is not a number, and targets"
        ):
            list(read)
    (tmp_path / "bad.csv").write_text("\n".join([*lines[:90], "x", *lines[90:]]))
    with pytest.raises(ValueError, match="line 91: 1 values in 2 columns; on_bad_rows='skip'"):
        list(blocks.read(tmp_path / "bad.csv", target="y", on_bad_rows="unlabeled"))
