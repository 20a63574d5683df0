"""Tables on Spark: encoded as a local table is, to the last bit."""

import numpy as np

import tables_of
from craftmaps import FourierFeatures, Gaussian, KernelClassifier
from spark_sessions import SPARK, session, skip_without_spark

skip_without_spark()
from craftmaps.scale.spark import fit, predict  # noqa: E402

pytestmark = SPARK
N = 200
SCHEMA = (
    "age long, income double, member boolean, city string, title string, since timestamp, "
    "born date, took interval day to second, price decimal(10, 2), empty string, same string"
)


def test_a_frame_is_encoded_as_a_local_table():
    data = tables_of.columns(N)
    labels = np.array(["old" if (age or 0) > 45 else "young" for age in data["age"]])
    feature_map = FourierFeatures(Gaussian(gamma=0.05), 40, random_state=0)
    learner = KernelClassifier(feature_map, loss="squared", alpha=1.0, map_rows=100)
    expected = learner.fit(data, labels)
    with session("local[2]") as spark:
        rows = list(zip(*data.values(), labels.tolist(), strict=True))
        whole = spark.sparkContext.parallelize(rows, 3)
        frame = spark.createDataFrame(whole, SCHEMA + ", label string")
        model = fit(learner, frame, features=list(data), target="label")
        answers = predict(model, frame, features=list(data)[::-1]).select("prediction").collect()
    assert model.encoder_.is_like(expected.encoder_)
    probabilities = expected.predict_proba(data)
    np.testing.assert_allclose(model.predict_proba(data), probabilities, rtol=0, atol=1e-5)
    assert [row[0] for row in answers] == expected.predict(data).tolist()
