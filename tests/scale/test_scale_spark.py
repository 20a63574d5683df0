"""Learners on Spark in local mode: every kind of column, the same result as a local fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from craftmaps import (
    Gaussian,
    KernelClassifier,
    KernelPCA,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
)
from craftmaps.learn.map_rows import sample_places
from rounding import assert_equal_to_rounding
from spark_sessions import SPARK, session, skip_without_spark

skip_without_spark()
from pyspark.ml.linalg import Vectors  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

from craftmaps.scale.spark import fit, predict  # noqa: E402

pytestmark = SPARK
PLAIN = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def data():
    """So few rows that all of them choose alpha, wherever they are."""
    X = np.random.default_rng(0).standard_normal((1000, 4))
    X[np.random.default_rng(1).random(X.shape) < 0.3] = 0
    return X, np.array(["no", "yes", "maybe"])[(X[:, 0] * X[:, 1] > 0) + 1 * (X[:, 2] > 1)]


@pytest.fixture(scope="module")
def feature_map(data):
    return FrozenEstimator(RandomMaclaurin(Polynomial(2), 40, random_state=0).fit(data[0]))


@pytest.fixture(scope="module")
def local(data, feature_map):
    return OnePassClassifier(feature_map).fit(*data)


@pytest.fixture(scope="module")
def spark():
    with session("local[2]") as running:
        yield running


@pytest.fixture(scope="module")
def frame(spark, data):
    """Six partitions, of which one is empty; vectors are dense and sparse in turns."""
    rows = []
    for i, (x, label) in enumerate(zip(data[0].tolist(), data[1].tolist(), strict=True)):
        used = [j for j, value in enumerate(x) if value]
        vector = Vectors.dense(x) if i % 3 else Vectors.sparse(4, used, [x[j] for j in used])
        rows.append((x, vector, label, 1.0 + i % 2, *x))
    names = ["array", "vector", "label", "weight", *PLAIN]
    whole = spark.createDataFrame(rows, names).coalesce(1)
    cut = whole.rdd.zipWithIndex().map(lambda pair: (int(pair[1] // 200), tuple(pair[0])))
    parts = spark.createDataFrame(cut.partitionBy(6, int).values(), whole.schema)
    return parts.persist()


def assert_same(found, local, X):
    named = hasattr(found, "feature_names_in_")
    np.testing.assert_array_equal(found.classes_, local.classes_)
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    rows = pd.DataFrame(X, columns=PLAIN) if named else X
    np.testing.assert_array_equal(found.predict(rows), local.predict(X))
    assert found.n_samples_seen_ == len(X)


@pytest.mark.parametrize("features", ["array", "vector", PLAIN])
def test_equals_the_local_fit(frame, data, feature_map, local, features):
    found = fit(OnePassClassifier(feature_map), frame, features=features, target="label")
    assert_same(found, local, data[0])
    said = predict(found, frame, features=features)
    assert said.columns == [*frame.columns, "prediction"]
    said = said.select("array", "prediction").collect()
    X = np.array([row[0] for row in said])
    assert [row[1] for row in said] == local.predict(X).tolist()


def test_the_log_loss_equals_the_local_fit(frame, data, feature_map):
    """One of the partitions is empty; weights of rows and of classes multiply.

    Dask and `test_fold` search for alpha, with the same passes.
    """
    estimator = KernelClassifier(feature_map, class_weight="balanced", alpha=100.0)
    columns = {"features": "array", "target": "label", "weight": "weight"}
    found = fit(estimator, frame, **columns)
    local = clone(estimator).fit(*data, 1.0 + np.arange(len(data[0])) % 2)
    scores = local.decision_function(data[0])
    np.testing.assert_allclose(found.decision_function(data[0]), scores, atol=1e-5)


def test_columns_go_by_name_also_when_predicting(frame, data, feature_map, local):
    found = fit(OnePassClassifier(feature_map), frame, features=PLAIN, target="label")
    assert found.feature_names_in_.tolist() == PLAIN
    rows = predict(found, frame, features=PLAIN[::-1]).select("array", "prediction").collect()
    X = np.array([row[0] for row in rows])
    assert [row[1] for row in rows] == local.predict(X).tolist()
    with pytest.raises(ValueError, match="column 'd' is not among the features; the estimator"):
        predict(found, frame, features=PLAIN[:3])
    with pytest.raises(ValueError, match="column 'weight' was not learned from"):
        predict(found, frame, features=[*PLAIN, "weight"])


def test_a_map_is_fitted_on_the_rows_of_a_local_fit(frame, data):
    """Of vectors, some of which are sparse, in partitions one of which is empty."""
    places = sample_places(len(data[0]), 100)
    landmarks = Nystroem(Gaussian(0.1), 30, landmarks="kmeans", random_state=0)
    fixed = FrozenEstimator(clone(landmarks).fit(data[0][places], data[1][places]))
    local = OnePassClassifier(fixed).fit(*data)
    for features, classes in (("array", None), ("vector", np.unique(data[1]))):
        columns = {"features": features, "target": "label", "classes": classes}
        found = fit(OnePassClassifier(landmarks), frame, map_rows=100, **columns)
        np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-6, atol=1e-9)


def test_the_old_name_of_the_target(frame, feature_map, local):
    with pytest.warns(FutureWarning, match="label is now called target"):
        found = fit(OnePassClassifier(feature_map), frame, features="array", label="label")
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    with pytest.raises(TypeError, match=r"needs the name of the column to predict: target="):
        fit(OnePassClassifier(feature_map), frame, features="array")


def test_bit_for_bit_the_same_again_with_a_map_fitted_on_some_rows(frame, data):
    drawn = RandomMaclaurin(Polynomial(2), 40, random_state=0)
    options = {"features": "array", "target": "label", "classes": np.unique(data[1])}
    found, again = (fit(OnePassClassifier(drawn), frame, map_rows=300, **options) for _ in "ab")
    np.testing.assert_array_equal(found.coef_, again.coef_)
    assert found.temperature_ == again.temperature_
    fixed = FrozenEstimator(found.feature_map_)
    assert_same(found, OnePassClassifier(fixed).fit(*data), data[0])
    said = predict(found, frame, features="array", method="predict_proba", output="p").collect()
    X = np.array([row["array"] for row in said])
    assert_equal_to_rounding([row["p"] for row in said], found.predict_proba(X))


def test_several_targets_and_weights(frame, data, feature_map):
    X, weights = data[0], 1.0 + np.arange(len(data[0])) % 2
    columns = {"features": PLAIN, "target": ["a", "b"], "weight": "weight"}
    with pytest.raises(ValueError, match=r"the columns \['a', 'b'\] are given twice"):
        fit(OnePassRegressor(feature_map), frame, **columns)
    columns["features"] = "array"
    found = fit(OnePassRegressor(feature_map, alpha=1.0), frame, **columns)
    local = OnePassRegressor(feature_map, alpha=1.0).fit(X, X[:, :2], weights)
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    said = predict(found, frame, features="array").collect()
    X = np.array([row["array"] for row in said])
    assert_equal_to_rounding([row["prediction"] for row in said], found.predict(X))


def test_arrays_of_float_are_learnt_in_single_precision(frame, data, feature_map):
    single = frame.withColumn("array", F.col("array").cast("array<float>"))
    model = OnePassRegressor(feature_map, alpha=1.0)
    found = fit(model, single, features="array", target="c")
    assert found._stream.sample.Z.dtype == np.float32
    local = OnePassRegressor(feature_map, alpha=1.0).fit(data[0].astype(np.float32), data[0][:, 2])
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-4)


def test_components_and_intervals(frame, data, feature_map):
    X, _ = data
    found = fit(KernelPCA(feature_map, 3), frame, features="array")
    local = KernelPCA(feature_map, 3).fit(X)
    np.testing.assert_allclose(found.components_, local.components_, atol=1e-8)
    drawn = fit(
        KernelPCA(RandomMaclaurin(Polynomial(2), 40, random_state=0), 3), frame, features=PLAIN
    )
    assert drawn.n_samples_seen_ == len(X)
    rows = predict(found, frame, features="array", method="transform").collect()
    values = np.array([row["prediction"] for row in rows])
    np.testing.assert_allclose(values, local.transform([row["array"] for row in rows]), atol=1e-8)
    model = fit(OnePassRegressor(feature_map), frame, features="array", target="weight")
    rows = predict(model, frame, features="array", method="predict_interval").collect()
    ends = np.array([row["prediction"] for row in rows])
    assert ends.shape == (len(X), 2)
    np.testing.assert_allclose(
        ends, model.predict_interval([row["array"] for row in rows]), rtol=1e-4, atol=1e-4
    )


def test_complaints(frame, feature_map):
    model, array = OnePassClassifier(feature_map), {"features": "array", "target": "label"}
    missing = F.when(F.col("a") > 1, None)
    with pytest.raises(ValueError, match=r"^the frame has no column 'x'; it has array, vector,"):
        fit(model, frame, features="x", target="label")
    with pytest.raises(ValueError, match=r"^partition \d: column 'a' has \d+ missing values; drop"):
        fit(
            model,
            frame.withColumn("a", missing.otherwise(F.col("a"))),
            **array | {"features": PLAIN},
        )
    with pytest.raises(ValueError, match=r"^column 'label' has \d+ missing values; drop"):
        fit(model, frame.withColumn("label", missing.otherwise(F.col("label"))), **array)
    with pytest.raises(ValueError, match=r"column 'label' holds object, not numbers\.$"):
        fit(OnePassRegressor(feature_map), frame, features=["a", "label"], target="b")
    ragged = F.when(F.col("a") > 1, F.slice("array", 1, 2)).otherwise(F.col("array"))
    with pytest.raises(ValueError, match=r"column 'array' holds arrays of 2 to 4 values; they"):
        fit(model, frame.withColumn("array", ragged), **array)
    with pytest.raises(ValueError, match="all partitions are empty"):
        fit(model, frame.where("a > 100"), **array, classes=["no", "yes"])
    with pytest.raises(ValueError, match="has a column 'label' already; give another output"):
        predict(model, frame, features="array", output="label")
