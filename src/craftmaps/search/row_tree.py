"""A tree that splits rows into leaves of similar size."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.maps.parts.base import check_facts, is_within
from craftmaps.storage.packing import storable

_SAMPLE_ROWS = 20_000  # rows that decide a split
_BALANCED = 0.25  # least share of rows on each side of a split, if any column has such a split


@storable
@dataclass(frozen=True)
class RowTree:
    """Splits of rows, each at the median of the column with the largest variance.

    A row x moves from split s to `children[s, 0]` if x[columns[s]] <= thresholds[s], and to
    `children[s, 1]` otherwise. The first split is 0, and children come after their parents. A child
    below 0 is the leaf -1 - child.

    Attributes
    ----------
    columns : ndarray of shape (n_splits,)
    thresholds : ndarray of shape (n_splits,)
    children : ndarray of shape (n_splits, 2)
    """

    columns: np.ndarray
    thresholds: np.ndarray
    children: np.ndarray

    @property
    def n_leaves(self) -> int:
        return len(self.columns) + 1

    @classmethod
    def of(cls, X: np.ndarray, leaf_rows: int) -> tuple["RowTree", list[np.ndarray]]:
        """Split rows until a leaf has at most `leaf_rows` of them, and return the rows of leaves.

        Equal rows are never separated, so a leaf of equal rows may be larger.
        """
        columns: list[int] = []
        thresholds: list[float] = []
        children: list[list[int]] = []
        leaves: list[np.ndarray] = []
        waiting = [(np.arange(len(X)), -1, 0)]  # rows, and the place of their node in `children`
        while waiting:
            rows, parent, side = waiting.pop()
            split = _split(X, rows) if len(rows) > leaf_rows else None
            if split is None:
                node = -1 - len(leaves)
                leaves.append(rows)
            else:
                node, (column, threshold) = len(columns), split
                columns.append(column)
                thresholds.append(threshold)
                children.append([0, 0])
                is_left = X[rows, column] <= threshold
                waiting += [(rows[is_left], node, 0), (rows[~is_left], node, 1)]
            if parent >= 0:
                children[parent][side] = node
        shaped = np.array(children, np.int64).reshape(-1, 2)
        return cls(np.array(columns, np.int64), np.array(thresholds, np.float64), shaped), leaves

    def leaf_of(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf of each row."""
        node = np.zeros(len(X), np.int64)
        if not len(self.columns):
            return node
        moving = np.arange(len(X))
        while len(moving):
            split = node[moving]
            is_right = X[moving, self.columns[split]] > self.thresholds[split]
            node[moving] = self.children[split, is_right.astype(np.int64)]
            moving = moving[node[moving] >= 0]
        return -1 - node

    def check(self, n_columns: int) -> None:
        """Raise ValueError unless rows of so many columns reach exactly one leaf each."""
        n, children = len(self.columns), self.children
        check_facts(
            self,
            columns=self.columns.shape == (n,) and is_within(self.columns, 0, n_columns - 1),
            thresholds=self.thresholds.shape == (n,) and self.thresholds.dtype.kind == "f",
            children=children.shape == (n, 2)
            and is_within(children, -n - 1, n - 1)
            and bool(((children < 0) | (children > np.arange(n)[:, None])).all())
            and np.array_equal(np.sort(children, axis=None), _all_but_first(n)),
        )

    def onnx(self, g: Any, x: str) -> str:
        """Add the leaf of each row of x, which is float64, to an ONNX graph."""
        if not len(self.columns):
            return str(g.add("Cast", g.total(g.add("Mul", x, np.float64(0)), 1), to=_INT64))
        values = g.gather(x, self.columns, axis=1)
        is_left = g.single(g.add("LessOrEqual", values, self.thresholds))
        paths = np.zeros((len(self.columns), self.n_leaves), np.float32)  # 1 left, -1 right
        for split in reversed(range(len(paths))):
            for sign, child in zip((1, -1), self.children[split], strict=True):
                below = paths[child] != 0 if child >= 0 else np.zeros(self.n_leaves, bool)
                if child < 0:
                    below[-1 - child] = True
                paths[split, below] = sign
        # The score of a leaf is 0 if the row takes all turns on the path to it, otherwise negative.
        reached = g.add("MatMul", is_left, g.floats(paths))
        scores = g.add("Sub", reached, g.floats((paths > 0).sum(axis=0).astype(np.float32)))
        return str(g.add("ArgMax", scores, axis=1, keepdims=0))


_INT64 = 7  # onnx.TensorProto.INT64, which is not imported because ONNX is optional


def _all_but_first(n_splits: int) -> np.ndarray:
    """Return what the children of a tree are, sorted: all leaves, and all splits but the first."""
    return np.concatenate([np.arange(-n_splits - 1, 0), np.arange(1, n_splits)])


def _split(X: np.ndarray, rows: np.ndarray) -> tuple[int, float] | None:
    """Return the column and the threshold of a split, or None if the rows are equal.

    If the column with the largest variance has no balanced split, the next one is tried.
    """
    some = X[rows[:: -(-len(rows) // _SAMPLE_ROWS)]].astype(np.float64)
    variances = some.var(axis=0)
    best: tuple[float, int, float] | None = None
    for column in np.argsort(-variances, kind="stable"):
        values = some[:, column]
        if values.min() == values.max():
            continue
        threshold = _near_median(values)
        share = float(np.mean(values <= threshold))
        balance = min(share, 1 - share)
        if best is None or balance > best[0]:
            best = balance, int(column), threshold
        if balance >= _BALANCED:
            return int(column), threshold
    return None if best is None else best[1:]


def _near_median(values: np.ndarray) -> float:
    """Return a number between two neighboring values, so that rounding moves no row across it."""
    median = np.median(values)
    above = values[values > median]
    low = values[values <= median].max() if len(above) else values[values < median].max()
    high = above.min() if len(above) else median
    middle = float(low + (high - low) / 2)
    return middle if middle < high else float(low)
