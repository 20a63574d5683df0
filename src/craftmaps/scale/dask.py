"""Learning on Dask, with a cluster, with threads, or in one thread."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from craftmaps.learn.checkpoint import unpacked
from craftmaps.scale.cluster import fold
from craftmaps.scale.cluster.sample import (
    in_order,
    names_of,
    needs_rows,
    no_rows,
    places_in_partitions,
    sample_size,
    stacked,
)
from craftmaps.tables.table import is_table, table_of
from craftmaps.threads import at_most_threads

try:
    import dask
    import dask.array as da
    from dask.delayed import Delayed, delayed
except ImportError as error:
    raise ImportError("Dask is missing: pip install 'craftmaps[dask]'.") from error


def fit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    classes: Any = None,
    sample_weight: Any = None,
    map_rows: int | None = None,
    threads: int = 1,
) -> Any:
    """Fit an estimator to Dask partitions on the workers, and merge their sums in a tree.

    The current client runs the tasks if there is one, otherwise Dask's default scheduler.

    Parameters
    ----------
    estimator : OnePassClassifier, OnePassRegressor, KernelClassifier, KernelRegressor or KernelPCA
        It is not changed. Losses that take several passes read the partitions in each of them, so
        persist partitions that are costly to compute.
    X : Dask array, Dask data frame, or list of delayed blocks
        Chunks may be sparse matrices. A block is (X, y) or (X, y, sample_weight). Columns of data
        frames are matched by name, in any order. KernelClassifier and
        KernelRegressor encode the columns of data frames and of blocks that are tables.
    y : Dask array, series or data frame
        It must have as many partitions as X; arrays with known chunk sizes are rechunked like X.
        None for blocks, and for KernelPCA.
    classes : array-like, default=None
        All labels. By default, a first pass over y finds them.
    sample_weight : Dask array or series, default=None
    map_rows : int, default=None
        Number of rows that the calling process fits the feature map on: a uniform sample of all
        rows. None takes the parameter `map_rows` of the estimator. A local fit takes the same rows,
        so partitions may be sorted. A map in `sklearn.frozen.FrozenEstimator` is not fitted again.
    threads : int, default=1
        Number of threads of each task. Dask runs one task for every thread of a worker, so use 1
        unless workers have one thread and several cores, which lowers the number of sums in memory.

    Returns
    -------
    estimator : fitted clone of `estimator`
        Its sums equal the sums of a local fit, up to rounding. They are the same bit for bit if the
        partitions are the same, even if workers are lost.

    Notes
    -----
    For E features in float32, each thread of a worker needs up to 20 E^2 bytes to add up rows, and
    40 E^2 bytes to merge four sums. It also needs `block_rows` rows of features, and 4 E^2 bytes
    for every sum that waits to be merged. The scheduler and the caller hold one sum of 4 E^2 bytes.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_digits
    >>> from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
    >>> from craftmaps.scale.dask import fit, predict
    >>> X, y = load_digits(return_X_y=True)
    >>> X = da.from_array(X / 64, chunks=(500, 64))
    >>> feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=256, random_state=0)
    >>> model = fit(OnePassClassifier(feature_map), X, da.from_array(y, chunks=500))
    >>> bool((predict(model, X) == y).mean().compute() > 0.95)
    True
    """
    fold.check_estimator(estimator)
    if y is None and not fold.needs_targets(estimator) and dask.is_dask_collection(X):
        y = _zeros(X)
    partitions, lengths = _partitions(X, y, sample_weight)
    if is_classifier(estimator) and classes is None:
        counted = dask.compute(
            *(_labels(i, p[1] if p[1:] else p[0][1]) for i, p in enumerate(partitions))
        )
        classes = np.unique(np.concatenate([labels for labels, _ in counted]))
        lengths = [length for _, length in counted]
    fitted = needs_rows(estimator)
    if (fitted or fold.takes_passes(estimator)) and lengths is None:
        lengths = list(dask.compute(*(_length(p[1] if p[1:] else p[0][1]) for p in partitions)))
    size = sample_size(estimator, map_rows)
    rows = _sample(partitions, lengths, size) if fitted else _first_row(partitions)
    learner = fold.begin(estimator, *rows, classes, lengths)
    starts = [None] * len(partitions) if lengths is None else fold.first_rows(lengths)
    shared = delayed(learner, pure=False, traverse=False)
    if fold.takes_passes(learner):
        shared = shared.persist()  # sent only once for all passes
    return fold.finish(learner, partial(_run, threads, shared, partitions, starts), lengths)


def _run(
    threads: int,
    learner: Any,
    partitions: list[list[Any]],
    starts: Sequence[int | None],
    one: fold.Pass | None,
) -> bytes:
    """Return the merged sums of all partitions, for the squared loss or for one pass."""
    level = [
        _sums(threads, learner, i, start, one, *p)
        for i, (start, p) in enumerate(zip(starts, partitions, strict=True))
    ]
    while len(level) > 1:
        groups = [level[i : i + fold.FAN_IN] for i in range(0, len(level), fold.FAN_IN)]
        level = [
            _merged(threads, learner, one, *group) if len(group) > 1 else group[0]
            for group in groups
        ]
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        return bytes(dask.compute(level[0])[0])  # the graph contains the map once


def predict(estimator: Any, X: Any, method: str = "predict") -> Any:
    """Predict every row with a fitted estimator, lazily and chunk by chunk.

    Parameters
    ----------
    estimator : fitted OnePassClassifier, OnePassRegressor or KernelPCA
        Its map and coefficients are sent to every worker once. Its sums are not sent.
    X : Dask array or Dask data frame
        Columns of a data frame are matched by name if the estimator knows their names.
    method : str, default="predict"
        "predict", "predict_proba", "decision_function", "predict_set", "predict_interval" or
        "transform".

    Returns
    -------
    Dask array, or for a data frame a series named after the method or a frame with a column for
    each class or target
    """
    light = fold.for_prediction(estimator, method)
    shared = delayed(light, pure=False, traverse=False)
    if isinstance(X, da.Array):
        X = _whole_rows(X, "X")
        like = fold.no_predictions(estimator, method, X.dtype)
        layout: dict[str, Any] = {"chunks": (X.chunks[0], like.shape[1:])}
        if like.ndim == 1:
            layout = {"chunks": (X.chunks[0],), "drop_axis": 1}
        return X.map_blocks(_predict_array, shared, method, like, meta=like, **layout)
    if not _is_frame(X):
        raise TypeError(f"X must be a Dask array or data frame, got {type(X).__name__}.")
    X = in_order(X, names_of(estimator))
    single = all(dtype == np.float32 for dtype in X.dtypes)
    like = fold.no_predictions(estimator, method, np.dtype(np.float32 if single else np.float64))
    meta = _predict_frame(X._meta.iloc[:0], light, method, like)
    return X.map_partitions(_predict_frame, shared, method, like, meta=meta)


def _partitions(X: Any, y: Any, weights: Any) -> tuple[list[list[Any]], list[int] | None]:
    """Return delayed [X, y], [X, y, weights] or [block] of each partition, and known lengths."""
    if isinstance(X, Sequence) and X and all(isinstance(block, Delayed) for block in X):
        if y is not None or weights is not None:
            raise ValueError("delayed blocks hold y and sample_weight themselves; give X alone.")
        return [[block] for block in X], None
    given = {"X": X, "y": y} | ({} if weights is None else {"sample_weight": weights})
    for name, part in given.items():
        if not (isinstance(part, da.Array) or _is_frame(part)):
            raise TypeError(
                f"{name} must be a Dask array or data frame, or X a list of delayed (X, y) blocks, "
                f"got {type(part).__name__}."
            )
    arrays = {n: _whole_rows(p, n) if isinstance(p, da.Array) else p for n, p in given.items()}
    lengths = None
    if all(isinstance(p, da.Array) and not np.isnan(p.shape[0]) for p in arrays.values()):
        lengths = list(arrays["X"].chunks[0])
        for name, part in arrays.items():
            if part.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows and {name} has {part.shape[0]}.")
            arrays[name] = part.rechunk({0: arrays["X"].chunks[0]})
    for name, part in arrays.items():
        if part.npartitions != arrays["X"].npartitions:
            raise ValueError(
                f"X has {arrays['X'].npartitions} partitions and {name} has {part.npartitions}, "
                f"whose lengths are not known; repartition one like the other, or call "
                f"compute_chunk_sizes() on arrays."
            )
    columns = (_delayed(part) for part in arrays.values())
    return [list(parts) for parts in zip(*columns, strict=True)], lengths


def _delayed(part: Any) -> Any:
    """Return the partitions, each as a delayed value.

    Dask's full optimization joins partitions of files if only a few of their columns are needed.
    The partitions of X and y would then no longer agree, so columns are chosen without it.
    """
    if isinstance(part, da.Array):
        return np.ravel(part.to_delayed())
    return part.simplify().to_delayed(optimize_graph=False)


def _zeros(X: Any) -> Any:
    """Return zeros as targets for rows that need none, in the partitions of X."""
    if isinstance(X, da.Array):
        rows = _whole_rows(X, "X")
        return rows.map_blocks(lambda block: np.zeros(block.shape[0]), drop_axis=1, dtype=float)
    return X.map_partitions(lambda part: part.iloc[:, 0] * 0.0)


def _whole_rows(array: Any, name: str) -> Any:
    """Return the array in chunks of whole rows."""
    if array.ndim != 2 and (name == "X" or array.ndim != 1):
        raise ValueError(f"{name} must be a matrix, got {array.ndim} dimensions.")
    return array if array.ndim == 1 or array.numblocks[1] == 1 else array.rechunk({1: -1})


def _is_frame(value: Any) -> bool:
    return dask.is_dask_collection(value) and hasattr(value, "map_partitions")


def _first_row(partitions: list[list[Any]]) -> tuple[Any, np.ndarray]:
    """Return the first row, from the first partition that is not empty."""
    for parts in partitions:
        X, y = dask.compute(_rows([0], *parts))[0]
        if len(y):
            return X, y
    raise no_rows()


def _sample(partitions: list[list[Any]], lengths: Any, size: int | None) -> tuple[Any, np.ndarray]:
    """Return the rows to fit the map on."""
    places = places_in_partitions(lengths, size)
    wanted = [
        _rows(some, *parts) for some, parts in zip(places, partitions, strict=True) if len(some)
    ]
    every_X, every_y = zip(*dask.compute(*wanted), strict=True)
    return stacked(every_X), np.concatenate(every_y)


def _block(parts: Sequence[Any], names: Sequence[Any] | None = None) -> tuple[Any, np.ndarray, Any]:
    """Return X, y and weights of a partition."""
    X, y, weights = unpacked(parts[0] if len(parts) == 1 else parts)
    X = table_of(X) if isinstance(X, Mapping) else in_order(X, names)
    return X, np.asarray(y), weights


@delayed(pure=False)
def _rows(places: Any, *parts: Any) -> tuple[Any, np.ndarray]:
    X, y, _ = _block(parts)
    places = np.asarray(places)[np.asarray(places) < len(y)]
    if is_table(X) and not hasattr(X, "iloc"):
        return table_of(X)[places].loaded(), y[places]
    return (X.iloc if hasattr(X, "iloc") else X)[places], y[places]


@delayed(pure=False)
def _length(y: Any) -> int:
    return len(y)


@delayed(pure=False)
def _labels(number: int, y: Any) -> tuple[np.ndarray, int]:
    return fold.labels_in(y, number)


@delayed(pure=False)
def _sums(
    threads: int, learner: Any, number: int, first_row: int | None, one: Any, *parts: Any
) -> bytes:
    with at_most_threads(threads):
        names = names_of(learner)
        blocks = (_block(parts, names) for _ in range(1))  # lazy, so errors name this partition
        return fold.sums_of(learner, blocks, number, first_row, one)


@delayed(pure=False)
def _merged(threads: int, learner: Any, one: Any, *sums: bytes) -> bytes:
    with at_most_threads(threads):
        return fold.merged(learner, sums, one)


def _predict_array(X: Any, estimator: Any, method: str, like: np.ndarray) -> np.ndarray:
    if not X.shape[0]:
        return like
    with at_most_threads(1):
        return np.asarray(getattr(estimator, method)(X))


def _predict_frame(X: Any, estimator: Any, method: str, like: np.ndarray) -> Any:
    import pandas as pd

    values = _predict_array(X, estimator, method, like)
    if like.ndim == 1:
        return pd.Series(values, X.index, name=method)
    numbers = ("lower", "upper") if method == "predict_interval" else range(like.shape[1])
    names = getattr(estimator, "classes_", numbers)
    return pd.DataFrame(values, X.index, columns=list(names))
