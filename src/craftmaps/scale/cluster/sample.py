"""The rows that a cluster fits the map on, the same rows as in a local fit."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from craftmaps.learn import map_rows as map_rows_of


def sample_size(estimator: Any, map_rows: int | None) -> int | None:
    """Return the number of rows that the map is fitted on; None means all rows.

    If `map_rows` is None, the parameter of the estimator is used.
    """
    given = estimator.map_rows if map_rows is None else map_rows
    return map_rows_of.sample_size(estimator._new_map(), given)


def needs_rows(estimator: Any) -> bool:
    """Whether a learner fits its map, or the encoder of its tables, on rows."""
    return map_rows_of.needs_rows(estimator.feature_map) or estimator.fits_encoder()


def names_of(estimator: Any) -> Sequence[Any] | None:
    """Return the names that give the order of columns; None if an encoder matches them itself."""
    return None if estimator.encoder_ is not None else getattr(estimator, "feature_names_in_", None)


def places_in_partitions(lengths: Sequence[int], size: int | None) -> list[np.ndarray]:
    """Return, for each partition, the places of its rows that belong to the sample."""
    n_rows = sum(lengths)
    if not n_rows:
        raise no_rows()
    ends = np.cumsum(lengths)
    places = map_rows_of.sample_places(n_rows, n_rows if size is None else size)
    parts = np.split(places, np.searchsorted(places, ends[:-1]))
    return [part - (end - length) for part, end, length in zip(parts, ends, lengths, strict=True)]


def no_rows() -> ValueError:
    """Return the error for data without rows."""
    return ValueError("all partitions are empty: there is nothing to learn from.")


def stacked(blocks: Sequence[Any]) -> Any:
    """Stack blocks of rows: frames, arrays or, if one of them is sparse, CSR matrices."""
    if len(blocks) == 1 or not hasattr(blocks[0], "iloc"):
        return map_rows_of.stacked(blocks)
    import pandas as pd

    return pd.concat([in_order(block, list(blocks[0].columns)) for block in blocks])


def in_order(X: Any, names: Sequence[Any] | None) -> Any:
    """Return X with its columns in the order of `names`, or unchanged if there are no names."""
    if names is None or not hasattr(X, "columns") or list(X.columns) == list(names):
        return X
    for name in names:
        if name not in X.columns:
            raise ValueError(f"X has no column {name!r}; it has {', '.join(map(str, X.columns))}.")
    for name in X.columns:
        if name not in names:
            raise ValueError(f"X has a column {name!r}, which was not learned from.")
    return X[list(names)]
