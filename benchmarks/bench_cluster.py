"""The same fit on Dask and Spark of this machine against the local one, and the cost model."""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas
from sklearn.frozen import FrozenEstimator

from benchmarks.cost_model import Rates, Work, seconds
from benchmarks.harness import once, peak_bytes, table
from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
from craftmaps.scale.cluster import fold
from craftmaps.threads import at_most_threads

ROWS, COLUMNS, SIZE, CLASSES = 200_000, 256, 2048, 10
PARTITIONS, WORKERS, TURNS = 10, 2, 3

MEMORY = """
import numpy as np
from sklearn.frozen import FrozenEstimator
from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
from craftmaps.scale import fold

def task(size, merging):
    X = np.random.default_rng(0).standard_normal((8192, 64), dtype=np.float32)
    y = np.arange(8192) % 10
    feature_map = FrozenEstimator(RandomMaclaurin(Polynomial(2), size, random_state=0).fit(X))
    learner = fold.begin(OnePassClassifier(feature_map), X[:1], y[:1], np.arange(10))
    if not merging:
        return fold.sums_of(learner, [(X, y, None)], 0, 0)
    learner._stream.folds[0].update(np.eye(1, size, dtype=np.float32), np.eye(1, 10))
    part = learner.sums()
    parts = [bytes(bytearray(part)) for _ in range(4)]
    del part
    return fold.merged(learner, parts)

task(256, {merging})
before = resident("VmRSS")
task({size}, {merging})
print(resident("VmHWM") - before)
"""


def report() -> str:
    """Ratios, the bytes that travel, and the model beside the measurements."""
    X, y = data()
    feature_map = RandomMaclaurin(Polynomial(3), SIZE, random_state=0).fit(X[:1000])
    learner = OnePassClassifier(FrozenEstimator(feature_map))
    local = lambda: learner.fit(X, y)  # noqa: E731
    with on_dask(learner, X, y) as (distributed, network):
        dask_times = turns({"local": local, "cluster": distributed})
    with on_spark(learner, X, y) as distributed:
        spark_times = turns({"local": local, "cluster": distributed})
    rates = measured_rates(learner, X, y, network)
    works = {
        "local, two threads": (Work(ROWS, COLUMNS, SIZE, CLASSES, 1, WORKERS), dask_times["local"]),
        "Dask": (Work(ROWS, COLUMNS, SIZE, CLASSES, PARTITIONS, WORKERS), dask_times["cluster"]),
        "Spark": (Work(ROWS, COLUMNS, SIZE, CLASSES, PARTITIONS, WORKERS), spark_times["cluster"]),
    }
    return "\n".join(
        [
            f"## Clusters: {ROWS:,} x {COLUMNS} float32, E = {SIZE:,}, {CLASSES} classes\n",
            f"Rows are in the memory of the workers (Dask) or of the JVM (Spark) in {PARTITIONS} "
            f"partitions, as they are in memory for the local fit. Labels are found, alpha is "
            f"searched. Ratios are medians of {TURNS} turns.\n",
            ratios(dask_times, spark_times),
            against_model(works, rates),
            memory(),
            prediction(rates),
        ]
    )


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, :CLASSES] * X[:, 1 : CLASSES + 1]).argmax(axis=1)


def turns(works: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(TURNS):
        for name, work in works.items():
            times[name].append(once(work))
    return times


@contextmanager
def on_dask(learner: Any, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[Any, float]]:
    """The fit on two workers of one thread, and bytes per second from one to the other."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from craftmaps.scale.dask import fit

    rows = ROWS // PARTITIONS
    with (
        LocalCluster(WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        arrays = (da.from_array(a, chunks=(rows, *a.shape[1:])) for a in (X, y))
        parts = client.persist(list(arrays))
        wait(parts)
        yield (lambda: fit(learner, *parts)), bandwidth(client)


def bandwidth(client: Any, size: int = 1 << 26) -> float:
    """Bytes per second when a worker asks another for a value: pickled, sent, unpickled."""
    here, there = list(client.scheduler_info()["workers"])
    times = []
    for _ in range(5):
        value = client.submit(np.random.bytes, size, workers=[here], pure=False)
        value.result(), time.sleep(0.1)
        arrived = client.submit(len, value, workers=[there], pure=False)
        times.append(once(arrived.result))
    return size / statistics.median(times)


@contextmanager
def on_spark(learner: Any, X: np.ndarray, y: np.ndarray) -> Iterator[Any]:
    """The fit on local[2], rows cached as arrays of float."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from craftmaps.scale.spark import fit

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{WORKERS}]")
    for name, value in {
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.files.minPartitionNum": str(PARTITIONS),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        rows = ROWS // PARTITIONS
        for start in range(0, ROWS, rows):
            some = slice(start, start + rows)
            lists = pa.FixedSizeListArray.from_arrays(X[some].ravel(), COLUMNS)
            lists = lists.cast(pa.list_(pa.float32()))
            pq.write_table(
                pa.table({"features": lists, "label": y[some]}),
                Path(folder) / f"{start:07}.parquet",
            )
        frame = spark.read.parquet(folder).cache()
        frame.count()
        print("Spark's partitions:", frame.rdd.getNumPartitions(), flush=True)
        try:
            yield lambda: fit(learner, frame, features="features", target="label")
        finally:
            spark.stop()


def measured_rates(learner: Any, X: np.ndarray, y: np.ndarray, network: float) -> Rates:
    """Each rate from a small work of its kind, on two threads side by side."""
    rows = 4096
    Z = np.random.default_rng(0).standard_normal((rows, SIZE), dtype=np.float32)
    H = [np.zeros((SIZE, SIZE), np.float32, order="F") for _ in range(WORKERS)]
    update = side_by_side(lambda i: blas.ssyrk(1.0, Z.T, 0.0, H[i], lower=1, overwrite_c=1))
    begun = fold.begin(learner, X[:1], y[:1], np.arange(CLASSES))
    features = side_by_side(lambda _: learner.feature_map.transform(X[:rows]))
    part = fold.sums_of(begun, [(X[:rows], y[:rows], None)], 0, 0)
    one = side_by_side(lambda _: fold.merged(begun, [part]))
    three = side_by_side(lambda _: fold.merged(begun, [part, part, part]))
    model = fold.finish(begun, lambda one: part)

    def solve() -> None:
        model._stream.solution = None
        model.solve()

    merge = (three - one) / 2
    return Rates(
        flops=rows * SIZE**2 / update,
        map_row=features / rows,
        pack=max(one - merge, 0.0) / len(part),
        merge=merge / len(part),
        network=network,
        solve=4 / 3 * SIZE**3 / statistics.median(once(solve) for _ in range(3)),
    )


def side_by_side(work: Callable[[int], Any], repeats: int = 5) -> float:
    """Median seconds of a work while as many threads as there are workers do the same."""

    def task(number: int) -> float:
        with at_most_threads(1):
            work(number)
            return statistics.median(once(lambda: work(number)) for _ in range(repeats))

    with ThreadPoolExecutor(WORKERS) as pool:
        return statistics.mean(pool.map(task, range(WORKERS)))


def ratios(dask: dict[str, list[float]], spark: dict[str, list[float]]) -> str:
    rows = []
    engines = (
        ("Dask, two workers of one thread", dask, "1.25 x", "1.1 x"),
        ("Spark local[2]", spark, "1.6 x", "1.25 x"),
    )
    for name, times, bar, aim in engines:
        pairs = zip(times["cluster"], times["local"], strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        found = [f"{statistics.median(times[which]):.2f} s" for which in ("cluster", "local")]
        rows.append([name, *found, f"{ratio:.2f} x", bar, aim])
    header = ["engine", "cluster", "local, two threads", "ratio", "bar", "aim"]
    return table(header, rows)


def against_model(works: dict[str, tuple[Work, list[float]]], rates: Rates) -> str:
    rows = []
    for name, (work, times) in works.items():
        parts = seconds(work, rates)
        if work.P == 1:  # nothing is packed, merged or moved
            parts = {k: v for k, v in parts.items() if k in ("rank-k updates", "features", "solve")}
        total, measured = sum(parts.values()), statistics.median(times)
        split = ", ".join(f"{k} {v:.2f}" for k, v in parts.items())
        rows.append([name, f"{total:.2f}", f"{measured:.2f}", f"{measured / total:.2f}", split])
    found = ", ".join(f"{k} {v:.3g}" for k, v in vars(rates).items())
    per_sum = 4 * rates.flops * (rates.pack + rates.merge + 1 / rates.network)
    title = (
        f"### The cost model beside the measurements, in seconds\n\nRates: {found}. A sum takes as "
        f"long as {per_sum:,.0f} rows.\n\n"
    )
    return title + table(["fit", "model", "measured", "measured / model", "of the model"], rows)


def memory(size: int = 4096) -> str:
    """Peak memory of the two kinds of task beside the formulas."""
    work = Work(ROWS, COLUMNS, size, CLASSES, PARTITIONS, WORKERS)
    rows = []
    for name, predicted, merging in (
        ("sums of a partition", work.task_bytes(), False),
        ("merging four", work.merge_bytes(), True),
    ):
        found = peak_bytes(MEMORY.format(size=size, merging=merging))
        cells = [f"{predicted / 1e6:.0f} MB", f"{found / 1e6:.0f} MB", f"{found / predicted:.2f}"]
        rows.append([name, *cells])
    header = ["task", "model", "measured", "measured / model"]
    return f"### Memory of a task, E = {size:,}\n\n" + table(header, rows)


def prediction(rates: Rates) -> str:
    """What the formulas say of a large fit, from these rates and a stated network."""
    work = Work(n=1e9, d=COLUMNS, E=16_384, k=CLASSES, P=10_000, W=100)
    ten_gigabit = Rates(**vars(rates) | {"network": 1.25e9, "map_row": rates.map_row * 8})
    rows = [[name, f"{value:,.0f} s"] for name, value in seconds(work, ten_gigabit).items()]
    rows += [
        ["solve, alpha given", f"{work.flops()['solve, alpha given'] / rates.solve:,.0f} s"],
        ["read", f"{work.bytes_read() / 1e12:.2f} TB"],
        ["one sum", f"{work.sum_bytes() / 1e9:.3f} GB"],
        ["moved at most", f"{work.bytes_moved() / 1e12:.1f} TB"],
        ["memory of a task that sums", f"{work.task_bytes() / 1e9:.1f} GB"],
        ["memory of a task that merges", f"{work.merge_bytes() / 1e9:.1f} GB"],
    ]
    title = (
        "### Predicted: 10^9 rows, 100 workers of one thread, E = 16,384, 10,000 partitions\n\n"
        "From the rates above, eight times the time of a row for eight times the features, and "
        "1.25 GB/s between workers.\n\n"
    )
    return title + table(["", "predicted"], rows)
