"""TableEncoder: kinds of columns, missing and unknown values, names, and complaints."""

import pickle
import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import craftmaps
import tables_of
from craftmaps import TableEncoder

TABLE = {
    "age": [31, 54, None, 46, 20],
    "city": ["Oslo", "Rome", "Oslo", None, "Rome"],
    "day": ["2021-03-01", "2023-07-09", None, "2022-11-20", "2023-01-01"],
}


@pytest.mark.slow
def test_scikit_learns_own_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they skip a check with a warning
        check_estimator(TableEncoder())


@pytest.mark.parametrize("form", [form for form in tables_of.FORMS if form != "dict"])
def test_every_library_gives_the_same_bits(form):
    data = tables_of.columns()
    expected = TableEncoder().fit(data)
    encoder = TableEncoder().fit(tables_of.FORMS[form](data))
    assert encoder.columns_ != []
    np.testing.assert_array_equal(
        encoder.transform(tables_of.FORMS[form](data)), expected.transform(data)
    )
    np.testing.assert_array_equal(
        expected.transform(tables_of.FORMS[form](data)), expected.transform(data)
    )


def test_kinds_of_columns_are_found():
    encoder = TableEncoder().fit(tables_of.columns())
    kinds = {column.name: column.kind for column in encoder.columns_}
    assert kinds == {
        "age": "number",
        "income": "number",
        "member": "number",
        "city": "category",
        "title": "text",
        "since": "date",
        "born": "date",
        "took": "number",
        "price": "number",
    }
    assert encoder.dropped_ == {"empty": "missing in all rows", "same": "the same in all rows"}


def test_kinds_can_be_given():
    table = {"zip": [98101, 10001, 98101, 60601], "id": [7, 8, 9, 10], "x": [0.0, 1.0, 2.0, 4.0]}
    encoder = TableEncoder({"zip": "category", "id": "drop"}).fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert names == ["zip=10001", "zip=60601", "zip=98101", "x"]
    assert encoder.dropped_ == {"id": "dropped on request"}
    as_text = {"zip": ["98101", "10001", "98101", "60601"], "x": table["x"]}
    np.testing.assert_array_equal(encoder.transform(as_text), encoder.transform(table))


def test_numbers_are_standardized_and_imputed_with_an_indicator():
    encoder = TableEncoder(dtype=np.float64).fit({"age": TABLE["age"]})
    Z = encoder.transform({"age": TABLE["age"]})
    present = np.array([31.0, 54.0, 46.0, 20.0])
    expected = np.array([31.0, 54.0, np.median(present), 46.0, 20.0]) - present.mean()
    np.testing.assert_allclose(Z[:, 0], expected / present.std(), rtol=1e-12)
    np.testing.assert_array_equal(Z[:, 1], [0, 0, 1, 0, 0])
    assert encoder.get_feature_names_out().tolist() == ["age", "age is missing"]


def test_numbers_that_are_missing_only_at_prediction_are_imputed_silently():
    encoder = TableEncoder().fit({"x": [1.0, 2.0, 4.0]})
    Z = encoder.transform({"x": [np.nan, 2.0]})
    assert Z.shape == (2, 1)
    assert Z[0, 0] == Z[1, 0]  # 2 is the median


def test_categories_have_a_level_for_missing_values_and_nothing_for_unknown_ones():
    encoder = TableEncoder().fit({"city": TABLE["city"]})
    assert encoder.get_feature_names_out().tolist() == ["city=", "city=Oslo", "city=Rome"]
    Z = encoder.transform({"city": ["Rome", None, "", "Paris"]})
    np.testing.assert_array_equal(Z, [[0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]])


def test_categories_that_are_missing_only_at_prediction_are_nothing():
    encoder = TableEncoder().fit({"city": ["Oslo", "Rome"]})
    np.testing.assert_array_equal(encoder.transform({"city": [None, "Oslo"]}), [[0, 0], [1, 0]])


def test_the_order_of_the_categories_of_a_library_does_not_matter():
    one = pd.DataFrame({"c": pd.Categorical(["a", "b", "a"], categories=["b", "a", "z"])})
    other = pd.DataFrame({"c": pd.Categorical(["a", "b", "a"], categories=["a", "b"])})
    encoder = TableEncoder().fit(one)
    np.testing.assert_array_equal(encoder.transform(one), encoder.transform(other))
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=b"]


def test_a_mixed_column_of_objects_is_text():
    column = np.array([1, "a", 1.0, None, True, 2.5, "a"], dtype=object)
    encoder = TableEncoder().fit({"mixed": column})
    names = encoder.get_feature_names_out().tolist()
    assert names == ["mixed=", "mixed=1", "mixed=2.5", "mixed=a"]


def test_columns_in_another_order_with_others_among_them_are_the_same():
    data = tables_of.columns()
    encoder = TableEncoder().fit(tables_of.as_pandas(data))
    frame = tables_of.as_pandas(data)
    shuffled = frame[frame.columns[::-1]].assign(more=1)
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(frame))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32"])
def test_another_width_of_integers_is_the_same(dtype):
    frame = pd.DataFrame({"n": np.array([3, 1, 4, 1, 5]), "x": 0.5 * np.arange(5)})
    encoder = TableEncoder().fit(frame)
    other = frame.astype({"n": dtype})
    np.testing.assert_array_equal(encoder.transform(other), encoder.transform(frame))


def test_one_row_is_encoded_as_among_others():
    data = tables_of.columns()
    encoder = TableEncoder().fit(data)
    whole = encoder.transform(data)
    for i in (0, 17, 59):
        row = {name: column[i : i + 1] for name, column in data.items()}
        np.testing.assert_array_equal(encoder.transform(row), whole[i : i + 1])


def test_one_row_is_too_little_to_fit():
    with pytest.raises(
        ValueError, match=r"no column of the table tells rows apart \(n_samples = 1"
    ):
        TableEncoder().fit({"a": [1.0], "b": ["x"]})


def test_constant_numbers_with_holes_leave_the_indicator():
    encoder = TableEncoder().fit({"x": [1.0, np.nan, 1.0]})
    assert encoder.get_feature_names_out().tolist() == ["x is missing"]
    np.testing.assert_array_equal(encoder.transform({"x": [np.nan, 7.0]}), [[1], [0]])


def test_many_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2000))
    X[::7, ::3] = np.nan
    encoder = TableEncoder().fit(X)
    assert encoder.transform(X).shape == (50, 2000 + 667)


def test_arrays_have_numbered_columns():
    X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 1.0]])
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x1 is missing"]
    assert encoder.get_feature_names_out(["a", "b"]).tolist() == ["a", "b", "b is missing"]
    assert not hasattr(encoder, "feature_names_in_")
    frame = pd.DataFrame(X, columns=["p", "q"])
    np.testing.assert_array_equal(encoder.transform(frame), encoder.transform(X))
    with pytest.raises(ValueError, match="X has 1 features, but TableEncoder is expecting 2"):
        encoder.transform(X[:, :1])


def test_sparse_rows_pass_as_they_are():
    X = sparse.random(20, 6, 0.4, format="csr", random_state=0)
    Z = TableEncoder(dtype=np.float64).fit_transform(X)
    assert sparse.issparse(Z)
    np.testing.assert_array_equal(Z.toarray(), X.toarray())


def test_output_can_be_a_data_frame():
    encoder = TableEncoder().fit(TABLE)
    frame = encoder.set_output(transform="pandas").transform(pd.DataFrame(TABLE))
    assert list(frame.columns) == encoder.get_feature_names_out().tolist()
    frame = encoder.set_output(transform="polars").transform(TABLE)
    assert isinstance(frame, pl.DataFrame)


def test_it_is_a_step_of_a_pipeline_and_can_be_cloned_and_pickled():
    encoder = TableEncoder({"city": "text"}, scaling="standard")
    assert clone(encoder).get_params() == encoder.get_params()
    Z = make_pipeline(clone(encoder), StandardScaler()).fit_transform(pd.DataFrame(TABLE))
    assert np.isfinite(Z).all()
    fitted = encoder.fit(TABLE)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(TABLE), fitted.transform(TABLE))


def test_it_can_be_saved(tmp_path):
    data = tables_of.columns()
    for encoder in (TableEncoder(), TableEncoder(scaling="quantile", dtype=np.float64)):
        encoder.fit(data).save(tmp_path / "encoder.craft")
        again = craftmaps.load(tmp_path / "encoder.craft")
        np.testing.assert_array_equal(again.transform(data), encoder.transform(data))
        assert again.summary() == encoder.summary()


def test_the_summary_has_a_line_for_each_column():
    lines = TableEncoder().fit(tables_of.columns()).summary().splitlines()
    assert len(lines) == 11
    assert lines[0] == (
        "age     number    2 columns: standardized, 51 if missing, indicator of missing"
    )
    assert lines[-2] == "empty   dropped   missing in all rows"


def test_keys_are_named_in_a_warning():
    n = 120
    rng = np.random.default_rng(0)
    table = {
        "row": np.arange(n) * 3,
        "shuffled": rng.permutation(n),
        "code": [f"A{i:05}" for i in range(n)],
        "measured": rng.integers(0, 10**6, n),
        "text": [f"Mr {chr(65 + i % 26)} of house {i}" for i in range(n)],
    }
    with pytest.warns(UserWarning, match="'row', 'shuffled', 'code', which looks like") as caught:
        TableEncoder().fit(table)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder({"row": "drop", "shuffled": "number", "code": "text"}).fit(table)


def test_plain_numbers_that_were_kept_as_text_are_named_in_a_warning():
    table = {
        "store": [str(100 + i) for i in range(60)],
        "zip": [f"0{i}{i}" for i in range(60)],
        "level": ["1", "2"] * 30,
    }
    with pytest.warns(UserWarning, match="look like numbers") as caught:
        encoder = TableEncoder().fit(table)
    assert [str(one.message).split("'")[1] for one in caught] == ["store"]
    assert "such as '100', but are encoded as text" in str(caught[0].message)
    assert [column.kind for column in encoder.columns_] == ["text", "text", "category"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder({"store": "category"}).fit(table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": ["old", "young"]}, "column 'age' should hold numbers, but holds the text 'old'"),
        ({"day": [1, 2]}, "column 'day' should hold dates, but holds numbers"),
        ({"day": ["soon", None]}, "column 'day' should hold dates such as .* the text 'soon'"),
        ({"age": [np.inf, 1.0]}, "column 'age' contains infinity"),
        ({"city": None}, "no column 'city', which was there in fit; its columns are age, day"),
    ],
)
def test_a_table_that_changed_is_one_sentence(change, message):
    encoder = TableEncoder().fit(TABLE)
    table = {name: column[:2] for name, column in TABLE.items()} | change
    table = {name: column for name, column in table.items() if column is not None}
    with pytest.raises(ValueError, match=message):
        encoder.transform(table)


def test_a_number_that_is_missing_in_all_rows_at_prediction_is_no_text():
    encoder = TableEncoder().fit(TABLE)
    Z = encoder.transform({"age": [None], "city": [None], "day": [None]})
    assert Z.shape == (1, len(encoder.get_feature_names_out()))
    assert np.isfinite(Z).all()


@pytest.mark.parametrize(
    "column",
    [[[1], [2], [3]], [b"1", b"2", b"3"], [{"a": 1}, {"a": 2}, None], [object(), object(), None]],
)
@pytest.mark.parametrize("form", [dict, pd.DataFrame, pl.DataFrame])
def test_what_cannot_be_encoded_is_named(form, column):
    table = form({"x": [1.0, 2.0, 3.0], "tags": column, "blob": column})
    with pytest.raises(TypeError, match=r"column 'tags' has values of type .*; column 'blob' has"):
        TableEncoder().fit(table)
    encoder = TableEncoder({"tags": "drop", "blob": "drop"}).fit(table)
    assert encoder.transform(table).shape == (3, 1)


def test_complex_numbers_are_no_text():
    with pytest.raises(TypeError, match="column 'z' has values of type complex"):
        TableEncoder().fit(pd.DataFrame({"z": [1j, 2j, 3j]}))


def test_the_line_of_a_column_is_one_line_whatever_its_name():
    lines = TableEncoder().fit({"a\nb": [1, 2], "\U0001f600 x": [1, 2]}).summary().splitlines()
    assert [line.split("  ")[0] for line in lines] == ["a\\nb", "\U0001f600 x"]


def test_the_line_of_a_column_is_one_line_whatever_its_levels():
    table = {"note": ["two\nlines", "long " * 30, "b"] * 2}
    assert TableEncoder().fit(table).summary() == (
        f"note  category  3 columns: 3 levels: b, {'long ' * 7}[...], two lines"
    )


def test_two_columns_of_one_name_are_refused():
    table = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"two columns of the table have one name \(.* 'a' 2"):
        TableEncoder().fit(table)


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"scaling": "log"}, TABLE, "scaling must be one of 'auto', 'standard'"),
        ({"max_levels": 0}, TABLE, "max_levels must be an integer of at least 1, got 0"),
        ({"dtype": int}, TABLE, "dtype must be np.float32 or np.float64"),
        ({"columns": {"age": "numeric"}}, TABLE, r"columns\['age'\] must be one of 'number'"),
        ({"columns": {"aeg": "number"}}, TABLE, "'aeg', which the table does not have; it has age"),
        ({"columns": {"city": "number"}}, TABLE, "column 'city' should hold numbers, but holds"),
        ({}, {"a": [1, 2], "b": [1]}, "column 'b' has 1 rows and column 'a' has 2"),
        ({}, {}, r"0 feature\(s\)"),
        ({}, {"a": []}, r"0 sample\(s\)"),
        ({}, {"a": [None, None]}, "no column of the table tells rows apart.*'a' is missing in all"),
    ],
)
def test_mistakes_are_one_sentence(options, table, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**options).fit(table)


def test_rows_that_are_dicts_are_refused_with_a_way_out():
    encoder = TableEncoder().fit(TABLE)
    with pytest.raises(
        TypeError, match=r"rows as dicts are no table: .* \{'age': \[...\]\}, or pan"
    ):
        encoder.transform([{"age": 3, "city": "Oslo"}])
    with pytest.raises(TypeError, match=r"column 'age' .* with a value for each row, got 3"):
        encoder.transform({"age": 3, "city": "Oslo"})


def test_whole_numbers_and_dates_beyond_exact_floats():
    """Identifiers and the date of "never" are often so large; libraries must agree on them."""
    numbers = [10**17 + 7919 * i for i in range(20)] + [None]
    dates = [datetime(9999, 12, 31), None] + [datetime(1500 + i, 1, 1) for i in range(19)]
    frames = (pa.table, pl.DataFrame, pd.DataFrame)
    columns = {"number": numbers, "date": dates}
    columns_of = {pd.DataFrame: columns | {"number": pd.array(numbers, "Int64")}}
    encoded = [
        TableEncoder(scaling="none").fit_transform(frame(columns_of.get(frame, columns)))
        for frame in frames
    ]
    np.testing.assert_allclose(encoded[0], encoded[1], atol=1e-9)
    np.testing.assert_allclose(encoded[0], encoded[2], atol=1e-9)
