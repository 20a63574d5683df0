"""Tables in onnxruntime: the same numbers from the same columns, with text and missing values."""

import numpy as np
import pytest

import tables_of
from craftmaps import (
    CraftMap,
    FourierFeatures,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Polynomial,
    TableEncoder,
    export_onnx,
)

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def new_rows(n=200):
    """Other rows than those of fit, with unknown levels, new text and odd characters."""
    data = tables_of.columns(n, seed=1)
    data["city"][:6] = ["Atlantis", "ATLANTIS", "Istanbul İ", "ΣΊΣΥΦΟΣ", "a\nb", "\x00"]
    data["title"][:6] = [
        "SENIOR Nurse 7",
        "İstanbul ς Σ",
        "x",
        "a\nsenior\nnurse",
        "1.*[]()",
        "\u017fk",
    ]
    data["income"][:3] = [-1e12, 1e12, 0.0]
    return data


def exported(model, path):
    export_onnx(model, path)
    session = onnxruntime.InferenceSession(path)
    domains = {node.domain for node in onnx.load(path).graph.node}
    assert domains <= {"", "ai.onnx.ml"}  # standard operators
    return session


@pytest.mark.parametrize("scaling", ["auto", "standard", "quantile", "none"])
def test_encoded_columns_are_the_same(scaling, tmp_path):
    encoder = TableEncoder(scaling=scaling).fit(tables_of.columns(300))
    session = exported(encoder, tmp_path / "encoder.onnx")
    data = new_rows()
    (Z,) = session.run(None, encoder.onnx_inputs(data))
    np.testing.assert_allclose(Z, encoder.transform(data), rtol=1e-5, atol=1e-5)
    assert [given.name for given in session.get_inputs()] == [
        column.name for column in encoder.columns_
    ]


@pytest.mark.parametrize(
    "feature_map",
    [FourierFeatures(Gaussian(0.02), 200, random_state=0), CraftMap(Polynomial(2), 200)],
    ids=["fourier", "craft"],
)
def test_a_classifier_of_a_table_gives_the_same_labels_and_probabilities(feature_map, tmp_path):
    data = tables_of.columns(400)
    y = np.array(["old" if (age or 0) > 45 else "young" for age in data["age"]])
    y[[title is not None and "nurse" in title for title in data["title"]]] = "nurse"
    model = KernelClassifier(feature_map, alpha=1.0).fit(data, y)
    session = exported(model, tmp_path / "model.onnx")
    rows = tables_of.columns(300, seed=2)
    label, probabilities = session.run(None, model.encoder_.onnx_inputs(rows))
    expected = model.predict_proba(rows)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-4)
    first, second = np.sort(expected, axis=1)[:, :-3:-1].T
    clear = first - second > 1e-4
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(label[clear], model.predict(rows)[clear])


def test_a_regressor_of_a_table_gives_the_same_numbers(tmp_path):
    data = tables_of.columns(300)
    y = np.array([float(age or 40) for age in data["age"]])
    model = KernelRegressor(FourierFeatures(Gaussian(0.02), 100, random_state=0), alpha=1.0)
    session = exported(model.fit(tables_of.as_polars(data), y), tmp_path / "model.onnx")
    rows = tables_of.as_polars(tables_of.columns(50, seed=3))
    (predicted,) = session.run(None, model.encoder_.onnx_inputs(rows))
    np.testing.assert_allclose(predicted[:, 0], model.predict(rows), rtol=1e-4)


def test_columns_of_an_array_are_numbered_inputs(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[::5, 1] = np.nan
    model = KernelClassifier(None, alpha=1.0).fit(X, X[:, 0] > 0)
    session = exported(model, tmp_path / "model.onnx")
    label, _ = session.run(None, {f"x{j}": X[:, j : j + 1] for j in range(3)})
    np.testing.assert_array_equal(label.astype(bool), model.predict(X))


def test_a_column_with_the_name_of_an_output_is_refused(tmp_path):
    table = {"label": [1.0, 2.0, 3.0, 5.0], "x": [0.0, 1.0, 1.0, 4.0]}
    model = KernelClassifier(None, alpha=1.0).fit(table, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="column 'label' has the name of an output"):
        export_onnx(model, tmp_path / "model.onnx")


def test_skl2onnx_points_to_the_export(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    from craftmaps.models.onnx import register_converters

    register_converters()
    X = np.array([[1.0, np.nan], [2.0, 1.0], [3.0, 0.0], [0.0, 2.0]])
    model = KernelClassifier(None, alpha=1.0).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"export it alone, with craftmaps\.export_onnx"):
        skl2onnx.to_onnx(model, X[:1].astype(np.float32))
