"""One-pass learners on Spark: Arrow batches in, sums in a tree, one estimator out."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from craftmaps.scale.cluster import fold
from craftmaps.scale.cluster.arrow import rows_of
from craftmaps.threads import at_most_threads

try:
    import pyarrow as pa
    from py4j.protocol import Py4JJavaError
    from pyspark import TaskContext
    from pyspark.errors import PySparkException
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_type
except ImportError as error:
    raise ImportError("Spark is missing: pip install 'craftmaps[spark]'.") from error

_SUMS = "part long, sums binary"


def fit(
    estimator: Any,
    frame: Any,
    *,
    features: str | Sequence[str],
    label: str | Sequence[str],
    classes: Any = None,
    weight: str | None = None,
    map_rows: int = fold.MAP_ROWS,
) -> Any:
    """Learn from the partitions of a frame, and merge their sums in a tree on the executors.

    Parameters
    ----------
    estimator : OnePassClassifier or OnePassRegressor
        Stays as it is.
    frame : pyspark.sql.DataFrame
        Of a session with a Spark context. Executors need this package. It is read up to three
        times (labels, first rows, sums): cache it if it is costly to make.
    features : str or sequence of str
        A column of vectors (pyspark.ml, dense or sparse) or of arrays, or columns of numbers.
        Arrays of float are learnt in float32, at half the time of the doubles of vectors.
    label : str or sequence of str
        The column of labels or targets, or several columns of targets.
    classes : array-like, default=None
        All labels. Without it a classifier finds them in a first pass, over that column alone.
    weight : str, default=None
        A column of sample weights.
    map_rows : int, default=10000
        The feature map is fitted on so many rows, the first of the frame, by the driver. Where
        these are not like the others, give a fitted map in `sklearn.frozen.FrozenEstimator`.

    Returns
    -------
    estimator : fitted clone of `estimator`
        Its sums are those of a local fit with the same map, up to rounding, and the same bit for
        bit whenever the partitions hold the same rows in the same order, whatever executors there
        are or lose. Folds and the sample for probabilities follow the numbers of partitions.

    Notes
    -----
    A Python worker needs the larger of 20 E^2 bytes and 40 E^2 while four sums are merged, for E
    features in float32, and `block_rows` rows of features; this is outside of the memory of the
    JVM (spark.executor.memoryOverhead). The driver sees one sum, of 4 E^2 bytes, for which
    spark.driver.maxResultSize must be large enough. A task uses spark.task.cpus threads.

    Examples
    --------
    >>> from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
    >>> from craftmaps.scale.spark import fit, predict
    >>> feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=256, random_state=0)
    >>> frame = spark.read.parquet("rows")  # doctest: +SKIP
    >>> model = fit(
    ...     OnePassClassifier(feature_map), frame, features="features", label="label"
    ... )  # doctest: +SKIP
    >>> predict(model, frame, features="features").write.parquet("said")  # doctest: +SKIP
    """
    fold.check_estimator(estimator)
    features, labels = _names(features), _names(label)
    columns = [*features, *labels, *([] if weight is None else [weight])]
    _check_columns(frame, columns)
    narrow = frame.select(*columns)
    read = partial(rows_of, features=features, labels=labels, weight=weight)
    if is_classifier(estimator) and classes is None:
        classes = _labels(frame, labels)
    first = fold.rows_for_map(estimator, map_rows)
    learner = fold.begin(estimator, *_first(narrow, read, first), classes)
    n_parts = narrow.rdd.getNumPartitions()
    shared = narrow.sparkSession.sparkContext.broadcast(learner)
    try:
        parts = narrow.mapInArrow(partial(_sums, shared, read), _SUMS)
        return fold.finish(learner, _run(partial(_tree, shared, parts, n_parts)))
    finally:
        shared.destroy()


def predict(
    estimator: Any,
    frame: Any,
    *,
    features: str | Sequence[str],
    method: str = "predict",
    output: str = "prediction",
) -> Any:
    """The frame with a column of what a fitted estimator says of every row, lazily.

    Parameters
    ----------
    estimator : fitted OnePassClassifier or OnePassRegressor
        Its map and coefficients are broadcast; its sums stay here.
    frame : pyspark.sql.DataFrame
    features : str or sequence of str
        As in `fit`.
    method : {"predict", "predict_proba", "decision_function"}, default="predict"
        Probabilities, and whatever else has several values for a row, become arrays of double.
    output : str, default="prediction"
        Name of the column, which the frame must not have yet.
    """
    features = _names(features)
    _check_columns(frame, features)
    if output in frame.columns:
        raise ValueError(f"the frame has a column {output!r} already; give another output.")
    like = fold.no_predictions(estimator, method, np.dtype(np.float64))
    kind = {"i": "long", "u": "long", "f": "double", "b": "boolean"}.get(like.dtype.kind, "string")
    kind = kind if like.ndim == 1 else f"array<{kind}>"
    schema = frame.withColumn(output, F.lit(None).cast(kind)).schema
    shared = frame.sparkSession.sparkContext.broadcast(fold.for_prediction(estimator))
    return frame.mapInArrow(partial(_predicted, shared, features, method, output), schema)


def _names(columns: str | Sequence[str]) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _check_columns(frame: Any, columns: list[str]) -> None:
    for name in columns:
        if name not in frame.columns:
            known = ", ".join(frame.columns)
            raise ValueError(f"the frame has no column {name!r}; it has {known}.")
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ValueError(f"the columns {twice} are asked for twice.")


def _labels(frame: Any, names: list[str]) -> np.ndarray:
    if len(names) != 1:
        raise ValueError(f"a classifier learns one column of labels, got {names}.")
    found = [row[0] for row in frame.select(*names).distinct().collect()]
    if any(value is None or value != value for value in found):
        raise ValueError(f"column {names[0]!r} has missing labels; drop those rows first.")
    return np.unique(found) if found else np.empty(0)


def _first(frame: Any, read: Callable[..., Any], n_rows: int) -> tuple[Any, np.ndarray]:
    """The first rows, from as many partitions as it takes."""
    rows = frame.take(n_rows)
    if not rows:
        raise ValueError("all partitions are empty: there is nothing to learn from.")
    columns = {}
    for field in frame.schema:
        values, kind = [row[field.name] for row in rows], field.dataType
        if isinstance(kind, VectorUDT):
            values = [kind.serialize(value) for value in values]
            kind = kind.sqlType()
            values = [value and dict(zip(kind.names, value, strict=True)) for value in values]
        columns[field.name] = pa.array(values, to_arrow_type(kind))
    X, y, _ = read(pa.RecordBatch.from_pydict(columns))
    return X, y


def _sums(
    shared: Any, read: Callable[..., Any], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    with at_most_threads(context.cpus()):
        blocks = (read(batch) for batch in batches)
        number = context.partitionId()
        sums = fold.sums_of(shared.value, blocks, number, None)
    yield pa.RecordBatch.from_pydict({"part": [number], "sums": [sums]})


def _tree(shared: Any, parts: Any, n_parts: int) -> bytes:
    """Merge sums, a few of consecutive partitions in each group, until one is left."""
    while n_parts > 1:
        n_parts = -(-n_parts // fold.FAN_IN)
        group = F.floor(F.col("part") / fold.FAN_IN) if n_parts > 1 else F.lit(0)
        level = parts.select(group.alias("group"), "part", "sums").repartition(n_parts, "group")
        parts = level.mapInArrow(partial(_merge, shared), _SUMS)
    return bytes(parts.collect()[0]["sums"])


def _merge(shared: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the groups of a Spark partition, of which there may be none; they come in any order."""
    members: list[tuple[tuple[int, int], Any]] = []
    for batch in batches:
        keys = zip(*(batch.column(name).to_pylist() for name in ("group", "part")), strict=True)
        sums = (value.as_buffer() for value in batch.column("sums"))
        members += zip(keys, sums, strict=True)
    members.sort(key=itemgetter(0))
    with at_most_threads(TaskContext.get().cpus()):
        for group, some in groupby(members, key=lambda member: member[0][0]):
            merged = fold.merged(shared.value, (sums for _, sums in some))
            yield pa.RecordBatch.from_pydict({"part": [group], "sums": [merged]})


def _predicted(
    shared: Any,
    features: list[str],
    method: str,
    output: str,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    with at_most_threads(TaskContext.get().cpus()):
        for batch in batches:
            if not len(batch):
                continue
            values = getattr(shared.value, method)(rows_of(batch, features)[0])
            if values.dtype.kind == "f":
                values = values.astype(np.float64)
            yield batch.append_column(output, pa.array(values.tolist()))


def _run(job: Callable[[], Any]) -> Any:
    """The result of a job, or what its task complained of in one sentence."""
    try:
        return job()
    except (Py4JJavaError, PySparkException) as error:
        found = re.search(r"ValueError: (.*)", str(error))
        if found is None:
            raise
        raise ValueError(found.group(1)) from error
