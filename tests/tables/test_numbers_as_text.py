"""Numbers that are text: currencies, units, grouped digits, marks of missing values, times."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import craftmaps
from craftmaps import KernelRegressor, TableEncoder, scale
from craftmaps.tables.number_texts import found_form

NAN = float("nan")
X = np.random.default_rng(0).integers(-4000, 4000, 80) / 4


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["$1,234.50", "$5", "-$5.00", "($6.00)", "$.5"], [1234.5, 5, -5, -6, 0.5]),
        (["1.234,50 €", "5,2 €", "0 €"], [1234.5, 5.2, 0]),
        (["USD 1,000", "USD 5"], [1000, 5]),
        (["5%", "10.5 %", "-3%"], [5, 10.5, -3]),
        (["12 kg", "5.5kg", "?"], [12, 5.5, NAN]),
        (["5 °C", "\u22123 °C"], [5, -3]),
        (["30 km/h", "n/a", "-"], [30, NAN, NAN]),
        (["1,234", "5", "1,234,567"], [1234, 5, 1234567]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["1 234,5", "12\u00a0345"], [1234.5, 12345]),
        (["1'234.5", "12\u2019345"], [1234.5, 12345]),
        (["1.5E3", "#DIV/0!", "2e-1"], [1500, NAN, 0.2]),
        (["10:30", "0:05", "9:15 PM", "12:00 am"], [37800, 300, 76500, 0]),
        (["10:30:01.5", "00:00:00"], [37801.5, 0]),
        (["0 days 00:00:01", "-1 days +23:59:59"], [1, -1]),
        (["1 day, 2:03:04", "2:03:04"], [93784, 7384]),
        (["1h 30m", "2h", "45min"], [5400, 7200, 2700]),
        (["2 hours 3 minutes", "1d 5 s", "n/a"], [7380, 86405, NAN]),
        (["29.85", " ", "7"], [29.85, NAN, 7]),
    ],
)
def test_a_text_is_read(texts, numbers):
    form = found_form(texts)
    np.testing.assert_array_equal([form.parsed(text) for text in texts], numbers)


@pytest.mark.parametrize(
    "texts",
    [
        ["007", "5"],
        ["00 kg", "5 kg"],
        ["ID12", "ID13"],
        ["12 kg", "5 lb"],
        ["5%", "5"],
        ["1,2,3"],
        ["1,5", "1.5"],
        ["12,34,567.8"],
        ["12:60", "1:00"],
        ["10:30", "10:30:00"],
        ["13:00 PM"],
        ["2024-01-01"],
        ["1.2.3"],
        ["18-25"],
        ["--5"],
        ["5m", "3s"],  # units, unless another text has two of them
        ["h", "1h 5m"],
        ["5m 3h"],
        ["(5"],
        ["inf", "1"],
        ["?", "-"],
        ["", " "],
        [],
    ],
)
def test_other_texts_are_no_numbers(texts):
    assert found_form(texts) is None


WAYS = {
    "dollars": lambda x: f"${x:,.2f}".replace("$-", "-$"),
    "accounts": lambda x: f"({-x:,.2f})" if x < 0 else f"{x:,.2f}",
    "euros": lambda x: f"{x:,.2f} €".translate(str.maketrans(",.", ".,")),
    "percent": lambda x: f"{x}%",
    "weights": lambda x: f"{x} kg",
    "marks": lambda x: "?" if x > 900 else str(x),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_gives_the_same_columns(way, tmp_path):
    """In every library and file, and where the numbers of new rows are plain."""
    texts = [WAYS[way](x) for x in X]
    numbers = np.where(X > 900, NAN, X) if way == "marks" else X
    table = {"x": texts, "c": ["a", "b"] * 40}
    expected = TableEncoder().fit_transform(table | {"x": numbers})
    pd.DataFrame(table).assign(y=X).to_csv(tmp_path / "t.csv", index=False)
    ((rows, _),) = scale.read(tmp_path / "t.csv", target="y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for form in (table, pd.DataFrame(table), pl.DataFrame(table), pl.LazyFrame(table), rows):
            encoder = TableEncoder().fit(form)
            assert encoder.columns_[0].kind == "number"
            np.testing.assert_array_equal(encoder.transform(form), expected)
        plain = encoder.transform(table | {"x": numbers})
    np.testing.assert_array_equal(plain, expected)


def test_marks_may_come_after_fit_and_other_texts_are_one_sentence():
    encoder = TableEncoder().fit({"pay": [f"${x}" for x in range(9)], "age": list(range(9))})
    marked = encoder.transform({"pay": ["?", "$4"], "age": ["N/A", "4"]})
    np.testing.assert_array_equal(marked[0], marked[1])
    said = r"column 'pay' should hold numbers as \$1,234.5, but holds the text '5 €'"
    with pytest.raises(ValueError, match=said):
        encoder.transform({"pay": ["$4", "5 €"], "age": [1, 2]})
    with pytest.raises(ValueError, match="column 'age' should hold numbers, but holds the text 'x"):
        encoder.transform({"pay": ["$4"], "age": ["x"]})


def test_few_and_unique_texts_are_numbers_and_no_keys():
    table = {"rate": ["5%", "10%"] * 100, "pay": [f"{x / 4} €" for x in range(200)]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = TableEncoder().fit(table)
    assert encoder.summary() == (
        "rate  number  1 column: standardized, 7.5 if missing, read as 1,234.5%\n"
        "pay   number  1 column: standardized, 24.875 if missing, read as 1,234.5 €"
    ).replace("number ", "number   ")


def test_given_kinds_decide():
    table = {"a": [f"{x}%" for x in range(9)], "b": ["007", "8"] * 4 + ["9"]}
    kinds = {column.name: column.kind for column in TableEncoder({"a": "text"}).fit(table).columns_}
    assert kinds == {"a": "text", "b": "category"}
    encoder = TableEncoder({"b": "number"}).fit(table)
    assert encoder.columns_[1].median == 8
    with pytest.raises(ValueError, match="column 'a' should hold numbers, but holds marks"):
        TableEncoder({"a": "number"}).fit({"a": ["?", "-"]})


def test_a_model_file_and_onnx_read_the_form(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    table = pd.DataFrame(
        {"x": [WAYS["euros"](x) for x in X], "t": [f"{i % 24}:30" for i in range(80)]}
    )
    model = KernelRegressor(None, alpha=1e-3).fit(table, X)
    assert model.score(table, X) > 0.999
    model.save(tmp_path / "m.craft")
    model = craftmaps.load(tmp_path / "m.craft")
    new = pd.DataFrame({"x": ["5,25 €", "n/a"], "t": ["9:30", "11:30 pm"]})
    craftmaps.export_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (predicted,) = session.run(None, model.encoder_.onnx_inputs(new))
    np.testing.assert_allclose(predicted[:, 0], model.predict(new), rtol=1e-4)
