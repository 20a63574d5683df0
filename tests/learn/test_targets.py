"""Targets of every type: what a classifier makes of them, and what is refused."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import craftmaps
from craftmaps import KernelClassifier, KernelRegressor, OnePassClassifier

X = np.random.default_rng(0).standard_normal((60, 2))
FIRST = X[:, 0] > 0
TEXTS = np.where(FIRST, "yes", "no")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (pd.Series(FIRST.astype(int), dtype="Int64"), [0, 1]),
        (pd.Series(FIRST, dtype="boolean"), [False, True]),
        (pd.Series(FIRST.astype(int), dtype="int64[pyarrow]"), [0, 1]),
        (pd.Series(TEXTS, dtype="string"), ["no", "yes"]),
        (pd.Series(TEXTS, dtype="category"), ["no", "yes"]),
        (pl.Series(TEXTS.tolist(), dtype=pl.Categorical), ["no", "yes"]),
        (TEXTS.astype(np.dtypes.StringDType()), ["no", "yes"]),
        (FIRST.astype(np.float16), [0.0, 1.0]),
        (FIRST.astype(np.longdouble), [0.0, 1.0]),
        (FIRST.astype(">i4"), [0, 1]),
    ],
)
@pytest.mark.parametrize("rows", [X, pd.DataFrame(X, columns=["a", "b"])], ids=["array", "table"])
def test_labels_keep_their_kind_and_are_saved(labels, classes, rows, tmp_path):
    model = KernelClassifier(None, loss="squared").fit(rows, labels)
    assert model.classes_.tolist() == classes
    assert [type(label) for label in model.classes_.tolist()] == list(map(type, classes))
    model.save(tmp_path / "model.craft")
    loaded = craftmaps.load(tmp_path / "model.craft")
    assert np.array_equal(loaded.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([Decimal(int(one)) for one in FIRST], "Decimal"),
        (pd.Series(pd.PeriodIndex(np.where(FIRST, "2024-01", "2024-02"), freq="M")), "Period"),
        (np.array([1 if one else "no" for one in FIRST], dtype=object), "int, str"),
    ],
)
def test_labels_of_other_types_are_named(labels, kind):
    with pytest.raises(ValueError, match=f"labels are objects of type {kind}; convert"):
        OnePassClassifier().fit(X, labels)


@pytest.mark.parametrize("rows", [X, pd.DataFrame(X, columns=["a", "b"])], ids=["array", "table"])
@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (KernelRegressor(None), np.where(np.arange(60) == 7, np.nan, 1.0)),
        (KernelRegressor(None), pd.Series([1.0] * 7 + [None] + [2.0] * 52, dtype="Float64")),
        (KernelClassifier(None), pd.Series([0] * 7 + [None] + [1] * 52, dtype="Int64")),
        (KernelClassifier(None), pl.Series(["a"] * 7 + [None] + ["b"] * 52)),
    ],
)
def test_missing_targets_are_named(rows, model, targets):
    with pytest.raises(ValueError, match="Input y contains NaN: the target of row 7 is missing"):
        model.fit(rows, targets)


@pytest.mark.parametrize(
    ("rows", "way_out"),
    [
        ("rows.csv", r"path 'rows.csv' .* fit_blocks\(craftmaps.scale.read\('rows.csv', target"),
        (Path("rows.csv"), "path 'rows.csv' instead of rows"),
        ([{"a": 1.0, "b": 2.0}] * 60, "list of dicts; make a data frame"),
        (pd.DataFrame(X, columns=["a", "b"]).to_records(), "structured array; make a data frame"),
    ],
)
@pytest.mark.parametrize("model", [KernelClassifier(None), OnePassClassifier()])
def test_what_is_not_rows_is_named(model, rows, way_out):
    with pytest.raises(TypeError, match=way_out):
        model.fit(rows, TEXTS)


def test_the_name_of_a_column_is_no_target():
    with pytest.raises(ValueError, match=r"y is the text 'b'; .*table\['b'\]"):
        KernelRegressor(None).fit(pd.DataFrame(X, columns=["a", "b"]), "b")


def test_targets_whose_squares_vanish_are_refused():
    with pytest.raises(ValueError, match=r"squares are too small.*multiply them"):
        KernelRegressor(None).fit(X, 1e-300 * X[:, 0])
    predicted = KernelRegressor(None).fit(X, 1e-100 * X[:, 0]).predict(X)
    np.testing.assert_allclose(1e100 * predicted, X[:, 0], atol=0.05)
    KernelRegressor(None).fit(X, np.zeros(60))
