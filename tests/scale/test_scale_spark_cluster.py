"""Learners on Spark with two executors, one of which is killed in the middle of a fit."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
from spark_sessions import SPARK, session, skip_without_spark

skip_without_spark()
from craftmaps.scale.spark import fit  # noqa: E402

pytestmark = SPARK


@pytest.fixture(scope="module")
def spark():
    with session("local-cluster[2,1,1024]") as running:
        yield running


def executor():
    """The JVM above this Python worker, which its daemon forked."""
    daemon = os.getppid()
    return int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find processes")
def test_an_executor_that_is_killed_changes_nothing(spark, tmp_path):
    X = np.random.default_rng(0).standard_normal((1200, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    feature_map = FrozenEstimator(RandomMaclaurin(Polynomial(2), 40, random_state=0).fit(X))
    rows = [(i // 200, x, int(y[i])) for i, x in enumerate(X.tolist())]
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, 6), "part int, features array<double>, label int"
    )
    deaths = tmp_path / "deaths"

    def fatal(batches):
        """Kills the executor of the first task that sees rows of part 4, once."""
        for batch in batches:
            if 4 in batch.column("part").to_pylist() and not deaths.exists():
                deaths.write_text(f"{executor()}")
                os.kill(executor(), signal.SIGKILL)
            yield batch

    def fitted(rows):
        model = OnePassClassifier(feature_map)
        return fit(model, rows, features="features", target="label", classes=[0, 1])

    undisturbed = fitted(frame)
    found = fitted(frame.mapInArrow(fatal, frame.schema))
    assert Path(f"/proc/{deaths.read_text()}").exists() is False
    np.testing.assert_array_equal(found.coef_, undisturbed.coef_)
    local = OnePassClassifier(feature_map).fit(X, y)
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    assert found.n_samples_seen_ == 1200
