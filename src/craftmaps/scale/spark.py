"""Learning on Spark: executors turn Arrow batches into sums, which are merged in a tree."""

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from craftmaps.scale.cluster import fold
from craftmaps.scale.cluster.arrow import column_of, rows_of
from craftmaps.scale.cluster.sample import (
    needs_rows,
    no_rows,
    places_in_partitions,
    sample_size,
    stacked,
)
from craftmaps.threads import at_most_threads
from craftmaps.validation import warn_renamed

try:
    import pyarrow as pa
    from py4j.protocol import Py4JJavaError
    from pyspark import TaskContext
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F
except ImportError as error:
    raise ImportError("Spark is missing: pip install 'craftmaps[spark]'.") from error

_SUMS = "part long, sums binary"
_COUNTS = "part long, n_rows long, labels binary"
_ROWS = "part long, first long, rows binary"


def fit(
    estimator: Any,
    frame: Any,
    *,
    features: str | Sequence[str],
    target: str | Sequence[str] | None = None,
    classes: Any = None,
    weight: str | None = None,
    map_rows: int | None = None,
    label: str | Sequence[str] | None = None,
) -> Any:
    """Fit an estimator to a Spark frame on the executors, and merge their sums in a tree.

    Parameters
    ----------
    estimator : OnePassClassifier, OnePassRegressor, KernelClassifier, KernelRegressor or KernelPCA
        It is not changed. A loss that takes several passes reads the frame in each of them, so
        cache the frame.
    frame : pyspark.sql.DataFrame
        A frame of a session with a Spark context. This package must be installed on the executors.
        The frame is read up to three times (labels and lengths, rows for the map, sums), so cache
        it if it is costly to compute.
    features : str or sequence of str
        A column of vectors (pyspark.ml, dense or sparse) or of arrays, or columns of numbers. For
        KernelClassifier and KernelRegressor the columns may hold text, dates and missing values.
        Arrays of float are learned in float32, in half the time of the doubles of vectors.
    target : str or sequence of str
        The column of labels or targets, or several columns of targets; KernelPCA needs none.
    classes : array-like, default=None
        All labels. By default, a first pass finds them.
    weight : str, default=None
        A column of sample weights.
    map_rows : int, default=None
        Number of rows that the driver fits the feature map on: a uniform sample of all rows. None
        takes the parameter `map_rows` of the estimator. A local fit of the partitions in their
        order takes the same rows, so partitions may be sorted. A map in
        `sklearn.frozen.FrozenEstimator` is not fitted again.
    label : str or sequence of str, default=None
        Deprecated name of `target`, removed in 0.3.

    Returns
    -------
    estimator : fitted clone of `estimator`
        Its sums equal the sums of a local fit, up to rounding. They are the same bit for bit if the
        partitions hold the same rows in the same order, even if executors are lost. It has
        `feature_names_in_` if the features are several columns.

    Notes
    -----
    If a map is given in `FrozenEstimator`, the places of rows are not counted. With more than 1,024
    rows, alpha="auto" of the squared loss is then chosen by another uniform sample of rows than in
    a local fit.

    For E features in float32, a Python worker needs up to 20 E^2 bytes to add up rows, 40 E^2 bytes
    to merge four sums, and `block_rows` rows of features. This is outside of the memory of the JVM
    (spark.executor.memoryOverhead). The driver receives one sum of 4 E^2 bytes, for which
    spark.driver.maxResultSize must be large enough. A task uses spark.task.cpus threads.

    Examples
    --------
    >>> from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
    >>> from craftmaps.scale.spark import fit, predict
    >>> feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=256, random_state=0)
    >>> frame = spark.read.parquet("rows")  # doctest: +SKIP
    >>> model = fit(
    ...     OnePassClassifier(feature_map), frame, features="features", target="label"
    ... )  # doctest: +SKIP
    >>> predict(model, frame, features="features").write.parquet("said")  # doctest: +SKIP
    """
    fold.check_estimator(estimator)
    features, targets = _names(features), []
    if fold.needs_targets(estimator) or target is not None:
        targets = _names(_target(target, label))
    columns = [*features, *targets, *([] if weight is None else [weight])]
    _check_columns(frame, columns)
    narrow = frame.select(*columns)
    tables = getattr(estimator, "encoder", None) is not None
    read = partial(rows_of, features=features, labels=targets, weight=weight, tables=tables)
    n_parts = narrow.rdd.getNumPartitions()
    fitted = needs_rows(estimator)
    unknown = targets if is_classifier(estimator) and classes is None else []
    lengths = None
    by_place = fitted or fold.takes_passes(estimator)
    if unknown or by_place:
        # Spark may partition other columns differently, so that rows would have other places.
        counted = narrow if by_place else frame.select(*targets)
        labels, lengths = _counted(counted, unknown, n_parts)
        classes = labels if unknown else classes
        lengths = lengths if by_place else None
    places = None
    if fitted and lengths is not None:
        places = places_in_partitions(lengths, sample_size(estimator, map_rows))
    learner = fold.begin(estimator, *_sample(narrow, read, places), classes, lengths)
    starts = None if lengths is None else fold.first_rows(lengths)
    shared = narrow.sparkSession.sparkContext.broadcast(learner)
    run = partial(_merged_sums, narrow, shared, read, starts, n_parts)
    try:
        learner = fold.finish(learner, run, lengths)
    finally:
        shared.destroy()
    if len(features) > 1:
        learner.feature_names_in_ = np.array(features, dtype=object)
    return learner


def predict(
    estimator: Any,
    frame: Any,
    *,
    features: str | Sequence[str],
    method: str = "predict",
    output: str = "prediction",
) -> Any:
    """Add a column with the predictions of a fitted estimator to a Spark frame, lazily.

    Parameters
    ----------
    estimator : fitted OnePassClassifier, OnePassRegressor or KernelPCA
        Its map and coefficients are broadcast. Its sums are not sent.
    frame : pyspark.sql.DataFrame
    features : str or sequence of str
        As in `fit`. Several columns are matched by name, in any order.
    method : str, default="predict"
        "predict", "predict_proba", "decision_function", "predict_set", "predict_interval" or
        "transform".
        Results with several values per row, such as probabilities, become arrays of double.
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
    light = fold.for_prediction(estimator, method)
    names = vars(light).pop("feature_names_in_", None)  # columns come in this order
    if names is not None and len(features) > 1 and estimator.encoder_ is None:
        features = _in_order_of(names.tolist(), features)
    shared = frame.sparkSession.sparkContext.broadcast(light)
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
        raise ValueError(f"the columns {twice} are given twice.")


def _target(target: Any, label: Any) -> Any:
    """Return the name of the target, which may have been passed as `label`."""
    if label is not None:
        warn_renamed("label", "target")
    if target is None and label is None:
        raise TypeError("fit needs the name of the column to predict: target=...")
    return label if target is None else target


def _in_order_of(names: list[str], features: list[str]) -> list[str]:
    for name in {*names} ^ {*features}:
        known = "is not among the features" if name in names else "was not learned from"
        raise ValueError(f"column {name!r} {known}; the estimator learned from {names}.")
    return names


def _counted(frame: Any, targets: list[str], n_parts: int) -> tuple[np.ndarray, list[int]]:
    """Return all labels of the column of targets, if given, and the lengths of the partitions."""
    if len(targets) > 1:
        raise ValueError(f"a classifier learns one column of labels, got {targets}.")
    rows = _run(frame.mapInArrow(partial(_count, targets), _COUNTS).collect)
    lengths = {row["part"]: row["n_rows"] for row in rows}
    labels = [pickle.loads(row["labels"]) for row in rows if row["n_rows"] and targets]
    every = np.unique(np.concatenate(labels)) if labels else np.empty(0)
    return every, [lengths.get(part, 0) for part in range(n_parts)]


def _count(targets: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    number, n_rows, labels = TaskContext.get().partitionId(), 0, []
    for batch in batches:
        if len(batch) and targets:
            labels.append(fold.labels_in(column_of(batch, targets[0]), number)[0])
        n_rows += len(batch)
    every = pickle.dumps(np.unique(np.concatenate(labels)) if labels else None)
    yield pa.RecordBatch.from_pydict({"part": [number], "n_rows": [n_rows], "labels": [every]})


def _sample(
    frame: Any, read: Callable[..., Any], places: list[np.ndarray] | None
) -> tuple[Any, np.ndarray | None]:
    """Return the rows at some places of each partition; without places, the first row."""
    if places is None:
        frame, places = frame.limit(1), [np.zeros(1, int)]
    parts = _run(frame.mapInArrow(partial(_chosen, read, places), _ROWS).collect)
    if not parts:
        raise no_rows()
    parts = sorted(parts, key=itemgetter("part", "first"))
    every_X, every_y = zip(*(pickle.loads(part["rows"]) for part in parts), strict=True)
    return stacked(every_X), None if every_y[0] is None else np.concatenate(every_y)


def _chosen(
    read: Callable[..., Any], places: list[np.ndarray], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition at some places."""
    number, first = TaskContext.get().partitionId(), 0
    wanted = places[number]
    for batch in batches:
        some = wanted[(wanted >= first) & (wanted < first + len(batch))] - first
        if len(some):
            rows = pickle.dumps(read(batch.take(pa.array(some)))[:2])
            yield pa.RecordBatch.from_pydict({"part": [number], "first": [first], "rows": [rows]})
        first += len(batch)


def _merged_sums(
    frame: Any,
    shared: Any,
    read: Callable[..., Any],
    starts: list[int] | None,
    n_parts: int,
    one: fold.Pass | None,
) -> bytes:
    """Return the merged sums of all partitions, for the squared loss or for one pass."""
    task = frame.sparkSession.sparkContext.broadcast(one)  # includes the coefficients
    try:
        parts = frame.mapInArrow(partial(_sums, shared, task, read, starts), _SUMS)
        return bytes(_run(partial(_tree, shared, task, parts, n_parts)))
    finally:
        task.destroy()


def _sums(
    shared: Any,
    task: Any,
    read: Callable[..., Any],
    starts: list[int] | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    with at_most_threads(context.cpus()):
        blocks = (read(batch) for batch in batches)
        number = context.partitionId()
        first_row = None if starts is None else starts[number]
        sums = fold.sums_of(shared.value, blocks, number, first_row, task.value)
    yield pa.RecordBatch.from_pydict({"part": [number], "sums": [sums]})


def _tree(shared: Any, task: Any, parts: Any, n_parts: int) -> bytes:
    """Merge the sums of groups of consecutive partitions, until one sum is left."""
    while n_parts > 1:
        n_parts = -(-n_parts // fold.FAN_IN)
        group = F.floor(F.col("part") / fold.FAN_IN) if n_parts > 1 else F.lit(0)
        level = parts.select(group.alias("group"), "part", "sums").repartition(n_parts, "group")
        parts = level.mapInArrow(partial(_merge, shared, task), _SUMS)
    return bytes(parts.collect()[0]["sums"])


def _merge(shared: Any, task: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the groups in a Spark partition, which may be empty, in any order of groups."""
    members: list[tuple[tuple[int, int], Any]] = []
    for batch in batches:
        keys = zip(*(batch.column(name).to_pylist() for name in ("group", "part")), strict=True)
        sums = (value.as_buffer() for value in batch.column("sums"))
        members += zip(keys, sums, strict=True)
    members.sort(key=itemgetter(0))
    with at_most_threads(TaskContext.get().cpus()):
        for group, some in groupby(members, key=lambda member: member[0][0]):
            merged = fold.merged(shared.value, (sums for _, sums in some), task.value)
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
            tables = shared.value.encoder_ is not None
            values = getattr(shared.value, method)(rows_of(batch, features, tables=tables)[0])
            if values.dtype.kind == "f":
                values = values.astype(np.float64)
            yield batch.append_column(output, pa.array(values.tolist()))


def _run(job: Callable[[], Any]) -> Any:
    """Return the result of a job, or raise the error of its Python task as one sentence.

    Spark passes the error of a Python task only as the text of its traceback.
    """
    try:
        return job()
    except (Py4JJavaError, PySparkException) as error:
        complaint = re.search(r"ValueError: (.*)", str(error))
        if complaint is None:
            raise
        raise ValueError(complaint.group(1)) from error
