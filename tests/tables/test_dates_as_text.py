"""Dates in text that are not in ISO format: which are found, and in what order they are read."""

import csv
import warnings
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import craftmaps
from craftmaps import FourierFeatures, Gaussian, KernelRegressor, TableEncoder, scale
from craftmaps.tables.date_texts import UNDECIDED, found_form, parsed

N = 150
MOMENTS = [datetime(2023, 1, 1, 7, 30) + timedelta(hours=53 * i) for i in range(N)]
FORMATS = {  # how a column may write them, and the form that must be found
    "%Y-%m-%d %H:%M": "iso",
    "%Y/%m/%d %H:%M": "written",
    "%d.%m.%Y %H:%M": "written",
    "%d.%m.%Y, %H:%M:%S": "written",
    "%d %b %Y %H:%M": "written",
    "%d-%b-%Y %H:%M": "written",
    "%d %B %Y %I:%M %p": "written",
    "%b %d, %Y %H:%M": "written",
    "%B %d, %Y %I:%M%p": "written",
    "%d/%m/%Y %H:%M": "dayfirst",
    "%m/%d/%Y %H:%M": "monthfirst",
    "%m-%d-%Y %I:%M:%S %p": "monthfirst",
    "%m/%d/%y %H:%M": "monthfirst",
    "%d-%b-%y %H:%M": "written",
}


@pytest.mark.parametrize(
    ("text", "form", "moment"),
    [
        ("2026/11/18", "written", datetime(2026, 11, 18)),
        ("2026.1.8", "written", datetime(2026, 1, 8)),
        ("2026-1-8", "written", datetime(2026, 1, 8)),
        ("18.11.2026", "written", datetime(2026, 11, 18)),
        (" 1.2.2026 ", "written", datetime(2026, 2, 1)),
        ("18 Nov 2026", "written", datetime(2026, 11, 18)),
        ("1-SEPT-2026", "written", datetime(2026, 9, 1)),
        ("18 november 2026 9:05", "written", datetime(2026, 11, 18, 9, 5)),
        ("Nov 18, 2026", "written", datetime(2026, 11, 18)),
        ("May 5 2026 12:00 am", "written", datetime(2026, 5, 5)),
        ("Dec. 31, 2026 12:30 PM", "written", datetime(2026, 12, 31, 12, 30)),
        ("05/06/2026 23:59:58.25", "dayfirst", datetime(2026, 6, 5, 23, 59, 58, 250_000)),
        ("05/06/2026", "monthfirst", datetime(2026, 5, 6)),
        ("31/7/20 18:57", "dayfirst", datetime(2020, 7, 31, 18, 57)),
        ("7/31/68", "monthfirst", datetime(2068, 7, 31)),
        ("7/31/69", "monthfirst", datetime(1969, 7, 31)),
        ("6-Aug-09", "written", datetime(2009, 8, 6)),
        ("2026-11", "written", datetime(2026, 11, 1)),
        ("Nov-2026", "written", datetime(2026, 11, 1)),
        ("May, 2026", "written", datetime(2026, 5, 1)),
        ("2026 november", "written", datetime(2026, 11, 1)),
        ("2026-Q4", "written", datetime(2026, 10, 1)),
        ("Q1 2026", "written", datetime(2026, 1, 1)),
        ("2026-11-18T10:00:00.1234567", "monthfirst", datetime(2026, 11, 18, 10, 0, 0, 123456)),
    ],
)
def test_a_text_is_read(text, form, moment):
    assert parsed(text, form) == moment


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["2026-11-18", " 2026-01-02T10:00 "], "iso"),
        (["2026-11-18", "18.11.2026", "Nov 3, 2026"], "written"),
        (["05/06/2026", "18/06/2026"], "dayfirst"),
        (["05/06/2026", "06/18/2026"], "monthfirst"),
        (["05/06/2026", "2026-06-18"], UNDECIDED),
        (["05/06/2026", "11/12/2026"], UNDECIDED),
        (["18/06/2026", "06/18/2026"], None),  # each order is wrong for one of them
        (["30/02/2026", "01/02/2026"], None),
        (["2026-11-18", "2026-02-30"], None),
        (["29.02.2026"], None),
        (["18.11.26"], None),  # the year may come first
        (["8/6/20", "7/31/20"], "monthfirst"),
        (["25/11/63", "05/11/63"], "dayfirst"),
        (["25/11/12", "26/11/12"], UNDECIDED),  # the year may come first
        (["25/11/12", "5/11/12"], "dayfirst"),  # it may not, because it has two digits
        (["99/12/31"], None),
        (["3/4/12", "05/06/2012"], UNDECIDED),
        (["2026-11", "2026-12-31"], "written"),
        (["2008-09", "2009-10", "1999-00"], None),
        (["2008-09", "2009-10"], None),  # two years, as of a school
        (["2008-09", "2009-11"], "written"),
        (["2008-13"], None),
        (["2026-1"], None),
        (["2026 Q5"], None),
        (["Oct-26"], None),  # a day or a year
        (["2026-11-18", "?", " ", "n/a"], "iso"),
        (["18/06/2026", "."], "dayfirst"),
        (["?", "-"], None),
        (["11.18.2026"], None),  # a point stands behind a day
        (["18/11-2026"], None),
        (["20261118"], None),  # a code, unless it is said to be a date
        (["18 Brumaire 2026"], None),
        (["Nov 18, 2026 13:00 pm"], None),
        (["18.11.2026 24:00"], None),
        (["18 Nov 2026", "soon"], None),
        (["1\u0668.11.2026"], None),  # digits of another script
    ],
)
def test_the_form_of_a_column_is_found(texts, form):
    assert found_form(texts) == form


@pytest.mark.parametrize("written", FORMATS)
def test_every_way_of_writing_gives_the_same_columns(written):
    moments = [moment.replace(microsecond=0) for moment in MOMENTS]
    expected = TableEncoder(dtype=np.float64).fit({"at": moments})
    texts = {"at": [moment.strftime(written) for moment in moments]}
    encoder = TableEncoder(dtype=np.float64).fit(texts)
    assert encoder.columns_[0].form == FORMATS[written]
    np.testing.assert_array_equal(encoder.transform(texts), expected.transform({"at": moments}))
    one = {"at": [moments[4].strftime(written)]}  # 2023-01-09, which alone tells no order
    np.testing.assert_array_equal(encoder.transform(one), encoder.transform(texts)[4:5])


def tables_with(texts):
    yield {"at": texts}
    yield pd.DataFrame({"at": texts})
    yield pd.DataFrame({"at": pd.Categorical(texts)})
    yield pl.DataFrame({"at": texts})
    yield pa.table({"at": texts})


def test_every_library_and_file_gives_the_same_bits(tmp_path):
    texts = [None if i % 9 == 4 else m.strftime("%d/%m/%Y %H:%M") for i, m in enumerate(MOMENTS)]
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["at", "x"], *([text, "u"] for text in texts)])
    pq.write_table(pa.table({"at": texts}), tmp_path / "t.parquet")
    files = [
        pa.concat_tables([X for X, _ in scale.read(tmp_path / name, columns=["at"], block_rows=64)])
        for name in ("t.csv", "t.parquet")
    ]
    expected = TableEncoder().fit_transform({"at": texts})
    assert expected.shape == (N, 8)  # a number, three cycles, an indicator
    for table in [*tables_with(texts), *files]:
        np.testing.assert_array_equal(TableEncoder().fit_transform(table), expected)


@pytest.mark.parametrize("ends", [["Z"], ["+02:00", "-05:30"], ["", "Z", "+0100"]])
def test_time_zones_are_left_out_in_files_as_in_memory(ends, tmp_path):
    at = [
        f"2024-{1 + i % 12:02}-{1 + i % 28:02}T{i % 24:02}:30:00{ends[i % len(ends)]}"
        for i in range(90)
    ]
    expected = TableEncoder().fit_transform({"at": [text[:19] for text in at]})
    pd.DataFrame({"at": at, "y": range(90)}).to_csv(tmp_path / "t.csv", index=False)
    ((rows, _),) = scale.read(tmp_path / "t.csv", target="y", types={"at": "date"})
    ((found, _),) = scale.read(tmp_path / "t.csv", target="y")
    for form in (rows, found, {"at": at}):
        np.testing.assert_array_equal(TableEncoder().fit_transform(form), expected)


def test_an_undecided_column_is_text_with_a_warning_and_a_way_out():
    texts = [f"{1 + i % 12:02}/{1 + i % 7:02}/2024" for i in range(80)]
    with pytest.warns(UserWarning, match=r"the dates of 'at' do not show .* 'dayfirst'") as caught:
        encoder = TableEncoder().fit({"at": texts})
    assert (len(caught), encoder.columns_[0].kind) == (1, "text")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_day = TableEncoder({"at": "dayfirst"}, dtype=np.float64).fit({"at": texts})
        by_month = TableEncoder({"at": "date"}, dtype=np.float64).fit({"at": texts})
    for encoder, order in ((by_day, "%d/%m/%Y"), (by_month, "%m/%d/%Y")):
        moments = {"at": [datetime.strptime(text, order) for text in texts]}
        np.testing.assert_array_equal(
            encoder.transform({"at": texts}),
            TableEncoder(dtype=np.float64).fit_transform(moments),
        )
    assert "read as 31/12/2024" in by_day.summary()
    assert "read as 12/31/2024" in by_month.summary()
    assert not by_day.is_like(by_month)


def test_a_later_date_in_another_order_is_one_sentence():
    encoder = TableEncoder().fit({"at": ["05/06/2024", "18/06/2024"]})
    with pytest.raises(ValueError, match="dates such as 31/12/2024, but holds the text '06/18/202"):
        encoder.transform({"at": ["06/18/2024"]})
    with pytest.raises(ValueError, match="dates such as 31/12/2024, but holds the text '06/18/202"):
        TableEncoder({"at": "dayfirst"}).fit({"at": ["05/06/2024", "06/18/2024"]})
    with pytest.raises(ValueError, match="dates such as 2024-12-31, but holds the text '18/06/202"):
        TableEncoder({"at": "date"}).fit({"at": ["18/06/2024", "06/18/2024"]})
    iso = TableEncoder().fit({"at": ["2024-06-05", "2024-06-18"]})
    with pytest.raises(ValueError, match=r"such as 2024-12-31, but holds the text '18\.6\.2024"):
        iso.transform({"at": ["18.6.2024"]})


def test_dates_are_no_keys():
    for written in ("%Y-%m-%d", "%d/%m/%Y"):
        days = [datetime(2023, 1, 1) + timedelta(days=i) for i in range(N)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TableEncoder().fit({"at": [day.strftime(written) for day in days]})


@pytest.fixture(scope="module")
def model_and_table():
    texts = [moment.strftime("%m/%d/%Y %I:%M %p") for moment in MOMENTS]
    y = np.array([np.sin(moment.hour / 24 * 2 * np.pi) for moment in MOMENTS])
    model = KernelRegressor(FourierFeatures(Gaussian(0.5), 64, random_state=0), alpha=1e-3)
    return model.fit({"at": texts}, y), {"at": texts}


def test_a_model_file_keeps_the_order(model_and_table, tmp_path):
    model, table = model_and_table
    model.save(tmp_path / "m.craft")
    again = craftmaps.load(tmp_path / "m.craft")
    assert again.encoder_.columns_[0].form == "monthfirst"
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_onnx_takes_the_seconds_of_such_dates(model_and_table, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, table = model_and_table
    craftmaps.export_onnx(model, tmp_path / "m.onnx")
    inputs = model.encoder_.onnx_inputs(table)
    assert inputs["at"][0, 0] == (MOMENTS[0] - datetime(1970, 1, 1)).total_seconds()
    (predicted,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, inputs)
    np.testing.assert_allclose(predicted[:, 0], model.predict(table), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%Y/%m/%d", "%Y-%m", "%b %Y"])
def test_marks_among_dates_are_missing(written, tmp_path):
    """In `fit`, in new rows, and in files."""
    months = [datetime(2020 + i // 12, 1 + i % 12, 1) for i in range(60)]
    moments = [None if i % 9 == 4 else month for i, month in enumerate(months)]
    texts = ["?" if month is None else month.strftime(written) for month in moments]
    encoder = TableEncoder().fit({"at": texts})
    expected = TableEncoder().fit({"at": moments})
    assert encoder.columns_[0].cycles == ["year"]  # months have no time of week
    np.testing.assert_array_equal(
        encoder.transform({"at": texts}), expected.transform({"at": moments})
    )
    no_mark = [text for text in texts if text != "?"]
    np.testing.assert_array_equal(
        TableEncoder().fit({"at": no_mark}).transform({"at": ["n/a"]})[0, 0],
        TableEncoder().fit({"at": no_mark}).transform({"at": [None]})[0, 0],
    )
    (tmp_path / "t.csv").write_text("at,c\n" + "".join(f"{text},a\n" for text in texts))
    for types in ({}, {"at": "date"}) if written == "%Y-%m-%d" else ({},):
        rows = [
            X for X, _ in scale.read(tmp_path / "t.csv", columns=["at"], types=types, table=True)
        ]
        np.testing.assert_array_equal(
            encoder.transform(rows[0]), expected.transform({"at": moments})
        )


@pytest.mark.parametrize("place", [0, 1999])
@pytest.mark.parametrize("form", ["31.12.{}", "{}-05-07", "${}.50", "{} kg"])
def test_a_value_that_keeps_a_column_from_being_dates_or_numbers_is_named(form, place):
    texts = [form.format(1000 + i) for i in range(2000)]
    TableEncoder({"c": "text"}).fit({"c": [*texts, "Total"]})  # was asked for
    texts[place] = "Total"
    with pytest.warns(UserWarning, match="nearly all values of 'c' are .*, but not 'Total'"):
        encoder = TableEncoder().fit({"c": texts})
    assert encoder.columns_[0].kind == "text"


def test_text_of_which_many_values_are_numbers_is_no_reason_to_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = [f"{100 + i}" if i % 5 else f"A/{i} 21" for i in range(60)]
        TableEncoder().fit({"c": texts * 2, "x": list(range(60)) * 2})
