"""Sessions of a real Spark for tests, or the reason why there is none."""

import os
import shutil
import sys
import warnings
from contextlib import contextmanager

import pytest

QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # short programs do not repay compilation
# For `pytestmark`: one process runs all of them, because a JVM takes seconds to start.
SPARK = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def skip_without_spark():
    """Called by modules that need Spark before they import it."""
    pytest.importorskip("pyspark", reason="Spark is missing: pip install 'craftmaps[spark]'")
    pytest.importorskip("pyarrow", reason="pyarrow is missing: pip install 'craftmaps[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java: no java on the PATH, no JAVA_HOME", allow_module_level=True)


@contextmanager
def session(master):
    """A session of its own JVM, whose Python is this one."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        "spark.sql.shuffle.partitions": "2",
        "spark.shuffle.io.retryWait": "100ms",  # an executor that was killed does not answer
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
