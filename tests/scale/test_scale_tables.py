"""Tables as they are: text, dates, booleans and missing values, the same from CSV and Parquet."""

import bz2
import gzip
import lzma
import threading
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from craftmaps import FourierFeatures, Gaussian, KernelClassifier, TableEncoder
from craftmaps.scale import read
from craftmaps.scale.files import csv_rows, text
from craftmaps.scale.files.errors import BadRowError, FileError

N = 240


@pytest.fixture(scope="module")
def table():
    """A column of each type, most of them with holes."""
    rng = np.random.default_rng(0)

    def holed(values, every):
        return [None if i % every == 1 else value for i, value in enumerate(values)]

    days = np.datetime64("2023-01-01") + rng.integers(0, 700, N)
    seconds = np.datetime64("2024-02-28T23:59:58.5") + rng.integers(0, 10**6, N)
    words = ["Ann", 'say "hi"', "two\nlines", "a, b", "größer", " blank", "true"]
    return pa.table(
        {
            "whole": pa.array(holed(rng.integers(-9, 10, N).tolist(), 7), pa.int64()),
            "real": pa.array(holed(rng.standard_normal(N).tolist(), 5), pa.float64()),
            "flag": pa.array(holed((rng.random(N) < 0.5).tolist(), 9), pa.bool_()),
            "word": pa.array(holed(rng.choice(words, N).tolist(), 11), pa.string()),
            "zip": pa.array([f"{i % 13:05}" for i in range(N)], pa.string()),
            "day": pa.array(holed(days.astype("datetime64[D]").tolist(), 13), pa.date32()),
            "time": pa.array(holed(seconds.tolist(), 17), pa.timestamp("us")),
            "nothing": pa.nulls(N),
            "y": pa.array(rng.choice(["no", "yes"], N).tolist()),
        }
    )


def written(value):
    """A value as it stands in a CSV file."""
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return repr(value) if isinstance(value, float) else str(value)


def csv_text(table, end="\n", delimiter=",", write=written):
    lines = [delimiter.join(table.column_names)]
    lines += [delimiter.join(map(write, row.values())) for row in table.to_pylist()]
    return end.join(lines) + end


def joined(rows):
    """All rows as one table and one array of targets; all blocks must have one schema."""
    Xs, ys = zip(*rows, strict=True)
    assert all(X.schema == rows.schema for X in Xs)
    return pa.concat_tables(Xs), np.concatenate(ys)


def test_csv_and_parquet_are_the_same_table(table, tmp_path):
    (tmp_path / "t.csv").write_text(csv_text(table))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    from_csv, y = joined(read(tmp_path / "t.csv", target="y", block_rows=70))
    from_parquet, y_too = joined(read(tmp_path / "t.parquet", target="y", block_rows=70))
    assert from_csv.equals(from_parquet)
    assert from_csv.equals(table.drop_columns("y"))
    assert y.tolist() == y_too.tolist() == table["y"].to_pylist()
    encoder = TableEncoder(columns={"whole": "category"}).fit(from_csv)
    np.testing.assert_array_equal(encoder.transform(from_csv), encoder.transform(from_parquet))
    assert {column.kind for column in encoder.columns_} == {"number", "category", "date"}


PACKED = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_marks_and_compression_change_nothing(suffix, end, table, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 1000)  # rows and quoted values are cut anywhere
    path = tmp_path / f"t.csv{suffix}"
    path.write_bytes(PACKED[suffix](b"\xef\xbb\xbf" + csv_text(table, end).encode()))
    assert joined(read(path, target="y", block_rows=33))[0].equals(table.drop_columns("y"))


def test_reading_goes_on_within_a_file_of_quoted_newlines(table, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 700)
    (tmp_path / "t.csv").write_text(csv_text(table))
    rows = read(tmp_path / "t.csv", target="y", block_rows=37)
    every = table.drop_columns("y")
    for number, (position, _) in enumerate(list(rows.from_position())[:-1], 1):
        rest = pa.concat_tables([X for _, (X, _) in rows.from_position(position)])
        assert rest.equals(every.slice(37 * number))


def test_decimal_commas(table, tmp_path):
    def comma(value):
        return written(value).replace(".", ",") if isinstance(value, float) else written(value)

    (tmp_path / "t.csv").write_text(csv_text(table, delimiter=";", write=comma))
    found, _ = joined(read(tmp_path / "t.csv", target="y", decimal=","))
    assert found.equals(table.drop_columns("y"))
    (tmp_path / "numbers.csv").write_text("a;b;y\n1,5;2;0,25\n-3;1e3;1,0\n")
    ((X, y),) = read(tmp_path / "numbers.csv", target="y", decimal=",")
    np.testing.assert_array_equal(X, [[1.5, 2], [-3, 1000]])
    assert y.tolist() == [0.25, 1]
    (tmp_path / "points.csv").write_text("a;y\n1.234;1\n")  # perhaps a thousand
    ((X, y),) = read(tmp_path / "points.csv", target="y", decimal=",")
    assert X["a"].to_pylist() == ["1.234"]
    with pytest.raises(ValueError, match=r"decimal must be '\.' or ',', got ';'"):
        read(tmp_path / "t.csv", decimal=";")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_encodings_in_chunks_of_any_size(encoding, tmp_path, monkeypatch):
    """A character may begin in one chunk and end in the next."""
    names = ["Ärzte", "naïve", 'a\n"ü', "é"]
    lines = ['"' + name.replace('"', '""') + f'",{i}' for i, name in enumerate(names * 20)]
    (tmp_path / "t.csv").write_bytes("\r\n".join(["größe,y", *lines]).encode(encoding))
    for size in (7, 64, 1 << 20):
        monkeypatch.setattr(text, "CHUNK_BYTES", size)
        rows = read(tmp_path / "t.csv", target="y", encoding=encoding, block_rows=9)
        assert joined_column(rows, "größe") == names * 20
        assert rows.fingerprint()["encoding"] == encoding.replace("latin-1", "iso8859-1")
    with pytest.raises(ValueError, match="give the encoding of the file, such as encoding='latin-"):
        read(tmp_path / "t.csv", target="y", encoding="ascii")
    with pytest.raises(ValueError, match="name of an encoding, such as 'latin-1', got 'none'"):
        read(tmp_path / "t.csv", target="y", encoding="none")


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_told_by_the_header(delimiter, tmp_path):
    header = delimiter.join(["a", '"b,;|\t"', "y"])
    row = delimiter.join(["1", "2", "3"])
    (tmp_path / "t.csv").write_text(f"{header}\n{row}\n")
    rows = read(tmp_path / "t.csv", target="y")
    assert rows.names == ["a", "b,;|\t"]
    ((X, y),) = rows
    assert (X.tolist(), y.tolist()) == ([[1, 2]], [3])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["1", "-2", ""], [1, -2, None]),
        (["1", "2.5", "NA"], [1.0, 2.5, None]),
        ([" 1", "2 ", " null "], [1, 2, None]),
        (["1e3", ".5", "NaN"], [1000.0, 0.5, None]),
        (["true", "FALSE", "N/A"], [True, False, None]),
        (["2024-01-31", "nan", "2023-12-01"], [date(2024, 1, 31), None, date(2023, 12, 1)]),
        (
            ["2024-01-31", "2024-01-31 10:30"],
            [datetime(2024, 1, 31), datetime(2024, 1, 31, 10, 30)],
        ),
        (["2024-02-30", "2024-01-31"], ["2024-02-30", "2024-01-31"]),
        (["007", "12"], ["007", "12"]),
        (["0x1F", "12"], ["0x1F", "12"]),
        (["123456789012345678901", "1"], ["123456789012345678901", "1"]),
        (["1_000", "1"], ["1_000", "1"]),
        (["1", "one", "None"], ["1", "one", None]),
        (["1", "true"], ["1", "true"]),
    ],
)
def test_types_are_found_and_identity_is_kept(values, found, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{value},x\n" for value in values))
    rows = read(tmp_path / "t.csv")
    assert joined_column(rows, "a") == found
    monkeypatch.setattr(text, "CHUNK_BYTES", 12)  # each value comes with another chunk
    assert joined_column(read(tmp_path / "t.csv", table=True, block_rows=1), "a") == found


def joined_column(rows, name):
    return pa.concat_tables([X for X, _ in rows])[name].to_pylist()


def test_a_later_block_may_disagree_with_the_first_rows(tmp_path, monkeypatch):
    """Types are found from all rows of all files, so no block has another type than the first."""
    monkeypatch.setattr(text, "CHUNK_BYTES", 100)
    (tmp_path / "1.csv").write_text("a,b,y\n" + "1,u,0\n" * 500)
    (tmp_path / "2.csv").write_text("b,y,a\n" + "u,0,2\n" * 500 + "v,1,late\n")
    found, y = joined(read(tmp_path / "*.csv", target="y", block_rows=100))
    assert found.schema.field("a").type == pa.string()
    assert found["a"].to_pylist()[-2:] == ["2", "late"]
    assert y.tolist() == [0] * 1000 + [1]


def test_numbers_stay_arrays_and_later_text_is_an_error_with_a_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 100)
    (tmp_path / "t.csv").write_text("a,y\n" + "1,0\n" * 500 + "late,1\n")
    with pytest.raises(
        BadRowError, match=r"line 502, column 'a': 'late' is not a number; .* table=True reads"
    ):
        list(read(tmp_path / "t.csv", target="y"))
    assert joined_column(read(tmp_path / "t.csv", target="y", table=True), "a")[-1] == "late"
    skipping = read(tmp_path / "t.csv", target="y", on_bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad row"):
        assert sum(len(X) for X, _ in skipping) == 500


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_which_form_rows_take(suffix, tmp_path):
    """Arrays where all values are finite numbers, otherwise tables; a given dtype means arrays."""
    columns = {"a": [1.0, 2.0, 3.0], "b": [1, None, 3], "c": ["u", "v", "w"]}
    table = pa.table(columns)
    path = tmp_path / f"t.{suffix}"
    path.write_text(csv_text(table)) if suffix == "csv" else pq.write_table(table, path)

    def is_table(**options):
        return read(path, **options).schema is not None

    assert is_table()
    assert is_table(columns=["a", "b"])
    assert not is_table(columns=["a"])
    assert is_table(columns=["a"], table=True)
    assert not is_table(columns=["a", "b"], table=False)
    assert not is_table(columns=["a", "b"], dtype=np.float32)
    assert not is_table(columns=["a", "b"], on_bad_rows="skip")  # most of b are numbers
    assert is_table(on_bad_rows="skip")
    assert is_table(columns=["a"], types={"a": "text"})
    with pytest.raises(ValueError, match="table must be True, False or 'auto', got 'yes'"):
        read(path, table="yes")
    with pytest.raises(ValueError, match="leave out types or table=False"):
        read(path, table=False, types={"a": "text"})
    with pytest.raises(ValueError, match=r"types\['a'\] must be one of 'number', 'text', 'date'"):
        read(path, types={"a": "integer"})
    np.save(tmp_path / "X.npy", np.ones((2, 2)))
    with pytest.raises(
        ValueError, match="npy files contain arrays; only CSV and Parquet files are tables"
    ):
        read(tmp_path / "X.npy", table=True)


def test_codes_with_leading_zeros_make_a_table_of_numbers(tmp_path):
    lines = [f"{i % 7:05},{i / 4},{i % 2}" for i in range(50)]
    (tmp_path / "t.csv").write_text("\n".join(["zip,x,y", *lines]))
    rows = read(tmp_path / "t.csv", target="y")
    assert [field.type for field in rows.schema] == [pa.string(), pa.float64()]
    assert read(tmp_path / "t.csv", target="y", columns=["x"]).schema is None
    ((X, _),) = read(tmp_path / "t.csv", target="y", table=False)
    assert X[:3, 0].tolist() == [0, 1, 2]


def test_given_types(tmp_path):
    """New rows are read as what the rows of fit held, although they look otherwise."""
    lines = ["code,size,when", "7,true,2024-01-31T12:00:00+02:00", "8,false,", "9,NA,NA"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    types = {"code": "text", "size": "number", "when": "date"}
    ((X, _),) = read(tmp_path / "t.csv", types=types)
    assert X["code"].to_pylist() == ["7", "8", "9"]
    assert X["size"].to_pylist() == [1.0, 0.0, None]
    assert X["when"].to_pylist() == [
        datetime(2024, 1, 31, 12),
        None,
        None,
    ]  # by the clock on the wall
    texts = {name: pc.cast(X[name], pa.string()) for name in X.column_names}
    pq.write_table(pa.table(texts), tmp_path / "t.parquet")
    assert next(iter(read(tmp_path / "t.parquet", types=types)))[0].equals(X)
    for name, wrong in (("size", "number"), ("when", "date")):
        (tmp_path / "bad.csv").write_text(f"{name}\n\nNA\noops\n")
        with pytest.raises(BadRowError, match=f"line 4, column '{name}': 'oops' is not a {wrong};"):
            list(read(tmp_path / "bad.csv", types=types))
        rows = read(tmp_path / "bad.csv", types=types, on_bad_rows="skip")
        with pytest.warns(UserWarning, match="1 bad row"):
            assert joined_column(rows, name) == [None]
        pq.write_table(pa.table({name: ["oops"]}), tmp_path / "bad.parquet")
        with pytest.raises(BadRowError, match=f"row 0, column '{name}': 'oops' is not a {wrong};"):
            list(read(tmp_path / "bad.parquet", types=types))


def test_rows_of_tables_without_a_target(tmp_path):
    (tmp_path / "t.csv").write_text('a,y,w\nu,1,1\n"v\nv",,2\nw,2,-1\n,3,3\n')
    with pytest.raises(BadRowError, match="line 4, column 'y': the target is missing"):
        list(read(tmp_path / "t.csv", target="y", columns=["a"]))
    rows = read(tmp_path / "t.csv", target="y", weight="w", on_bad_rows="skip")
    with pytest.warns(UserWarning, match="2 bad rows"):
        ((X, y, weight),) = rows
    assert X["a"].to_pylist() == ["u", None]
    assert (y.tolist(), weight.tolist()) == ([1, 3], [1.0, 3.0])


def test_parquet_files_of_different_types(tmp_path):
    first = {"a": pa.array([1, 2], pa.int16()), "b": pa.nulls(2), "c": ["u", "v"]}
    pq.write_table(pa.table(first), tmp_path / "1.parquet")
    second = {"c": pa.array(["w", "u"]).dictionary_encode(), "a": [0.5, None], "b": [True, False]}
    pq.write_table(pa.table(second), tmp_path / "2.parquet")
    found = pa.concat_tables([X for X, _ in read(tmp_path, block_rows=3)])
    assert found.to_pydict() == {
        "a": [1.0, 2.0, 0.5, None],
        "b": [None, None, True, False],
        "c": ["u", "v", "w", "u"],
    }
    pq.write_table(pa.table(second | {"a": ["x", "y"]}), tmp_path / "2.parquet")
    with pytest.raises(FileError, match=r"2\.parquet, column 'a': it holds string, and the files"):
        list(read(tmp_path))


def test_partitions_are_columns_of_tables(tmp_path):
    for city in ("Oslo", "Rome"):
        (tmp_path / f"city={city}").mkdir()
        pq.write_table(pa.table({"a": [1, None]}), tmp_path / f"city={city}" / "t.parquet")
    found = pa.concat_tables([X for X, _ in read(tmp_path)])
    assert found.to_pydict() == {"a": [1, None] * 2, "city": ["Oslo"] * 2 + ["Rome"] * 2}


def test_a_quote_that_stays_open_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 1000)
    (tmp_path / "t.csv").write_text('a,b\n1,u\n2,"v\n' + "3,w\n" * 50)
    complaint = "line 3: the row has a quote that opens a value and no quote that closes it"
    with pytest.raises(FileError, match=complaint):
        list(read(tmp_path / "t.csv", on_bad_rows="skip"))  # or all other rows would be left out
    monkeypatch.setattr(csv_rows, "MAX_QUOTED_BYTES", 5000)
    (tmp_path / "t.csv").write_text('a,b\n1,u\n2,"v\n' + "3,w\n" * 5000 + '"')
    with pytest.raises(FileError, match=complaint):
        list(read(tmp_path / "t.csv", table=True))


def test_quotes_within_values_are_no_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n5" pipe,1\n6" pipe,\n7,"a ""b"" c"\n')
    ((X, _),) = read(tmp_path / "t.csv")
    assert X.to_pydict() == {"a": ['5" pipe', '6" pipe', "7"], "b": ["1", None, 'a "b" c']}


def test_memory_of_tables_does_not_grow_with_files(tmp_path):
    """At most three blocks are held, and no thread is left behind."""
    (tmp_path / "t.csv").write_text("a,b\n" + "1,u\n,v\n" * 20_000)
    largest = 0
    for X, _ in read(tmp_path / "t.csv", block_rows=1000):
        largest = max(largest, X.get_total_buffer_size())
        assert X.num_rows == 1000
    assert largest < 1_000_000
    assert not [one for one in threading.enumerate() if one.name == "craftmaps reader"]


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_a_table_is_learned_from_files_as_from_memory(loss, table, tmp_path):
    (tmp_path / "t.csv").write_text(csv_text(table))
    pq.write_table(table, tmp_path / "t.parquet")
    X, y = table.drop_columns("y"), np.array(table["y"].to_pylist())
    feature_map = FourierFeatures(Gaussian(0.1), 32, random_state=0)
    learner = KernelClassifier(feature_map, alpha=1.0, loss=loss)
    expected = learner.fit(X, y).predict_proba(X)
    for name in ("t.csv", "t.parquet"):
        rows = read(tmp_path / name, target="y", block_rows=64)
        found = learner.fit_blocks(rows).predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_fit_of_a_table_goes_on_from_a_checkpoint(table, tmp_path):
    """Reading stops in the middle, and the same call ends in the same model."""
    (tmp_path / "t.csv").write_text(csv_text(table))
    rows = read(tmp_path / "t.csv", target="y", block_rows=40)
    feature_map = FourierFeatures(Gaussian(0.1), 32, random_state=0)
    learner = KernelClassifier(feature_map, alpha=1.0, loss="squared")
    expected = learner.fit_blocks(rows).coef_

    class Interrupted(type(rows)):
        """Rows that end with an error after three blocks of the pass that learns."""

        def from_position(self, position=(0, 0, 0)):
            for number, item in enumerate(super().from_position(position)):
                if number == 3 and self.passes:
                    raise OSError("gone")
                yield item
            self.passes += 1

    keeping = {"classes": ["no", "yes"], "checkpoint": tmp_path / "kept", "checkpoint_every": 0}
    rows.__class__, rows.passes = Interrupted, 0
    with pytest.raises(OSError, match="gone"):
        learner.fit_blocks(rows, **keeping)
    rows = read(tmp_path / "t.csv", target="y", block_rows=40)
    np.testing.assert_array_equal(learner.fit_blocks(rows, **keeping).coef_, expected)
    rows = read(tmp_path / "t.csv", target="y", block_rows=40, types={"whole": "text"})
    with pytest.raises(ValueError, match="belongs to rows read with other table"):
        learner.fit_blocks(rows, **keeping)
