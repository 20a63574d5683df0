"""Labels of texts keep their identity."""

import bz2
import pickle

import numpy as np
import pytest

from craftmaps.scale import read
from craftmaps.scale.files import text
from craftmaps.scale.files.errors import BadRowError, FileError


def targets(path, labels, bad=(), **options):
    lines = ["x,label", *(f"1,{label}" for label in labels)]
    for line in bad:
        lines.insert(line, "?,0")
    path.write_text("\n".join(lines) + "\n")
    found = [y for _, y in read(path, target="label", **options)]
    return np.concatenate(found)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["1", "2.5", "-1e3"], [1.0, 2.5, -1000.0]),
        (["9007199254740993", "9007199254740992"], [2**53 + 1, 2**53]),
        (["-9223372036854775808", "7"], [-(2**63), 7]),
        (["9223372036854775808", "7"], ["9223372036854775808", "7"]),
        (["007", "7", "10"], ["007", "7", "10"]),
        (["007.5", "7.5"], ["007.5", "7.5"]),
        (["0x1F", "31"], ["0x1F", "31"]),
        (["+1", "-1"], ["+1", "-1"]),
        (["NA", "a"], ["NA", "a"]),
        (["1_000", "1000"], ["1_000", "1000"]),
    ],
)
@pytest.mark.filterwarnings("ignore:2 bad rows")
def test_the_same_value_is_the_same_class_whether_rows_are_skipped_or_not(
    labels, expected, tmp_path
):
    y = targets(tmp_path / "t.csv", labels)
    assert y.tolist() == expected
    skipping = targets(tmp_path / "t.csv", labels, bad=(1, 2), on_bad_rows="skip")
    assert skipping.tolist() == expected
    assert skipping.dtype == y.dtype


@pytest.mark.parametrize("later", ["007", "0x1F", "9223372036854775808", "9007199254740993.5x"])
def test_a_code_among_numbers_is_named(later, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 100)
    labels = [*(str(i % 3) for i in range(100)), later]
    with pytest.raises(BadRowError, match=f"column 'label': '{later}' is not a number, and") as bad:
        targets(tmp_path / "t.csv", labels)
    assert (bad.value.place, bad.value.column) == ("line 102", "label")


def test_whole_numbers_are_not_rounded_beside_fractions(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 300)  # the last labels are parsed together
    labels = [*("1" for _ in range(100)), "9007199254740993", "1.5"]
    with pytest.raises(BadRowError, match="'9007199254740993' is not a number"):
        targets(tmp_path / "t.csv", labels)
    assert targets(tmp_path / "t.csv", labels[:-1])[-1] == 2**53 + 1


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_every_kind_of_line_end(end, tmp_path):
    lines = ["a,b,label", *(f"{i},{i / 2},{i % 3}" for i in range(50))]
    for last in ("", end):
        (tmp_path / "t.csv").write_bytes((end.join(lines) + last).encode())
        ((X, y),) = read(tmp_path / "t.csv", target="label")
        np.testing.assert_array_equal(X[:, 0], np.arange(50))
        np.testing.assert_array_equal(y, np.arange(50) % 3)
    lines[20] = "x,1,1"
    (tmp_path / "t.csv").write_bytes(end.join(lines).encode())
    with pytest.raises(ValueError, match="line 21, column 'a': 'x' is not a number"):
        list(read(tmp_path / "t.csv", target="label", table=False))


@pytest.mark.parametrize("first", ["e5 4:0.2", "- 1:2", ". 1:2", "e 1:2", "+ 1:2"])
def test_svmlight_targets_without_digits_are_errors_in_the_first_line(first, tmp_path):
    (tmp_path / "t.svm").write_text(f"{first}\n1 1:2\n")
    with pytest.raises(ValueError, match="line 1, column 'target': the target is missing or not"):
        list(read(tmp_path / "t.svm"))


@pytest.mark.parametrize("change", [lambda old: old + "9,9\n", lambda old: old[:-4]])
def test_a_file_that_changes_while_it_is_read_is_noticed(change, tmp_path):
    path = tmp_path / "t.csv"
    lines = "".join(f"{i % 10},{i % 2}\n" for i in range(5000))
    path.write_text("a,y\n" + lines)
    rows = read(path, target="y", block_rows=1000)
    blocks = iter(rows)
    next(blocks)
    path.write_text(change("a,y\n" + lines))
    with pytest.raises(FileError, match="the file was changed since `read` was called"):
        list(blocks)
    with pytest.raises(FileError, match="the file was changed since `read` was called"):
        list(rows)


def test_a_line_that_does_not_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 1 << 12)
    monkeypatch.setattr(text, "MAX_LINE_BYTES", 1 << 16)
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(b"a,y\n1,2\n" + b"0" * (1 << 20)))
    with pytest.raises(FileError, match="line 3: the line has more than 0 MB, so it is no row"):
        list(read(tmp_path / "t.csv.bz2", target="y"))


def test_errors_carry_their_parts_also_to_another_process():
    error = BadRowError("t.csv", "no number", "on_bad_rows", "line 3", "a")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is BadRowError
    assert (again.path, again.reason, again.option) == ("t.csv", "no number", "on_bad_rows")
    assert str(again) == str(error)
    assert str(error) == (
        "t.csv, line 3, column 'a': no number; on_bad_rows='skip' leaves such rows out."
    )
    assert again.worded({}) == "t.csv, line 3, column 'a': no number."
