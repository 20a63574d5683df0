"""Arrange features as columns of an ONNX model; several features may share a column."""

from typing import Any

import numpy as np

NO_COLUMN = -1  # the column of a feature that is left out


def onnx_columns(
    g: Any, x: str, made: list[tuple[str, np.ndarray, np.ndarray]], first: int, n_out: int
) -> str:
    """Write features to the columns from `first` on.

    `made` contains triples of a tensor of shape (features, rows), the column of each feature, and
    its scale. In this shape, gathering features copies whole rows. Features of the same column are
    added; a column without features is 0.
    """
    if not made:
        return str(g.repeated(np.zeros(n_out), x))
    values, columns, scales = zip(*made, strict=True)
    column = np.concatenate(columns)
    column = np.where(column == NO_COLUMN, NO_COLUMN, column - first)
    where, scale = _layers(column, np.concatenate(scales), n_out)
    placed = g.gather(g.concat(list(values), axis=0), where, axis=0)
    placed = g.add("Mul", placed, g.floats(scale[:, None]))
    if len(where) > n_out:
        placed = g.total(g.reshape(placed, len(where) // n_out, n_out, -1), axis=0)
    return str(g.transpose(placed))


def _layers(column: np.ndarray, scale: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return layers with at most one feature per column, and the scales of these features.

    A feature whose column is taken goes to the next layer. A column without a feature has scale 0.
    """
    order = np.argsort(column, kind="stable")
    order = order[column[order] >= 0]
    taken = column[order]
    layer = np.arange(len(order)) - np.searchsorted(taken, taken)
    place = layer * width + taken
    where = np.zeros((int(layer.max()) + 1) * width, dtype=np.int64)
    scales = np.zeros(len(where))
    where[place], scales[place] = order, scale[order]
    return where, scales
