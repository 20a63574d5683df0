"""The sums of a stream of rows, and a buffer in front of them."""

from copy import copy
from typing import Self

import numpy as np

from craftmaps.learn import class_sums
from craftmaps.learn.codes import Encode
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.row_buffer import RowBuffer
from craftmaps.learn.solvers import choose
from craftmaps.learn.solvers.precision import loses_directions
from craftmaps.learn.solvers.span import Problem, RowSpace


class RowSums:
    """The sums of rows of features, and a buffer of rows that are not in the sums yet.

    A full buffer becomes one rank-k update of the sums, so the result does not depend on how the
    rows are cut into blocks. As long as all rows fit into the buffer and there are fewer of them
    than features, no sums are made: the problem is solved in the span of the rows, or by iteration
    if there are many.

    Parameters
    ----------
    n_features : int
    capacity : int
        Number of rows in the buffer.
    dtype : dtype
        Type of the features in the buffer.
    encode : callable
        Turns targets as rows have them into a matrix.
    n_folds : int, default=1
        Row i of the stream belongs to fold i mod n_folds.
    by_class : bool, default=False
        Whether the rows of each class have a fold of their own instead. There are as many folds
        as classes then, and the targets of rows are places of classes.
    """

    by_class = False  # the default for model files that do not have this field
    _doubles: bool | None = None  # whether to sum products in float64; None before the first sums
    _shares_sums = False  # True in a draft until it changes the sums, which then are copied

    def __init__(
        self,
        n_features: int,
        capacity: int,
        dtype: np.dtype,
        encode: Encode,
        n_folds: int = 1,
        by_class: bool = False,
    ) -> None:
        self.n_features = n_features
        self.encode = encode
        self.folds = _empty_folds(n_folds)
        self.by_class = by_class
        self.buffer = RowBuffer(capacity, n_features, dtype)

    def draft(self) -> Self:
        """Return a copy that can be changed without changing this object.

        Sums and rows are shared until the draft changes them, so adding a few rows costs little.
        """
        draft = object.__new__(type(self))
        draft.__dict__.update(self.__dict__)
        draft.buffer = self.buffer.draft()
        draft._shares_sums = True
        return draft

    @property
    def dtype(self) -> np.dtype:
        """Type of the features."""
        return np.dtype(self.buffer.Z.dtype)

    @property
    def weight(self) -> float:
        """Total weight of all rows."""
        _, _, weights, _ = self.buffer.used()
        return sum(fold.weight for fold in self.folds) + float(weights.sum())

    @property
    def n_kept(self) -> int | None:
        """Number of rows, if all of them are in the buffer and fewer than features; else None."""
        filled = self.buffer.filled
        return filled if 0 < filled < self.n_features and not self._has_sums else None

    def problem(self, fit_intercept: bool, spanned: bool) -> Problem:
        """Return the sums to solve, in the span of the kept rows if `spanned`."""
        if spanned:
            return self._row_space(fit_intercept)
        self._flush()
        return Problem(self.folds)

    def total(self) -> NormalEquations:
        """Return the sums of all rows so far, without emptying the buffer."""
        return self.draft().problem(fit_intercept=True, spanned=False).total()

    def class_counts(self) -> np.ndarray:
        """Return the number of rows of each class, if each class has its own sums."""
        counts = np.array([fold.n_rows for fold in self.folds])
        _, y, _, _ = self.buffer.used()
        return counts + np.bincount(y.astype(np.int64), minlength=len(counts))

    def kept(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features, targets before encoding, and weights of the rows in the buffer."""
        return self.buffer.used()[:3]

    def flush_if_full(self) -> None:
        """Add a full buffer to the sums now, because the next row would do so anyway."""
        if self.buffer.is_full:
            self.settle()

    def settle(self) -> None:
        """Add the rows of the buffer to the sums, unless the rows take less memory than sums."""
        if self.buffer.filled >= self.n_features or self._has_sums:
            self._flush()

    @property
    def _has_sums(self) -> bool:
        return any(fold.n_rows for fold in self.folds)

    def _claim(self, n_rows: int, y: np.ndarray) -> slice:
        """Return free rows of the buffer, at most `n_rows`; a full buffer is emptied first."""
        if self.buffer.is_full:
            self._flush()
        return self.buffer.claim(n_rows, y)

    def _weigh_classes(self, factors: np.ndarray) -> None:
        """Multiply the weights of rows by a factor per class, and put all rows into one fold."""
        self.buffer.weigh(factors)
        self.folds = [class_sums.weighted_total(self.folds, factors)]
        self.by_class = self._shares_sums = False

    def _merge_sums(self, other: "RowSums") -> None:
        """Add the rows of another object of this kind, which is not changed."""
        self._own_sums()
        for mine, theirs in zip(self.folds, other.folds, strict=True):
            mine.merge(theirs)
        done = 0
        while done < other.buffer.filled:
            if self.buffer.is_full:
                self._flush()
            done = self.buffer.append(other.buffer, done)

    def _fade(self, factor: float) -> None:
        """Multiply the weight of every row by a factor."""
        self._own_sums()
        for fold in self.folds:
            fold.scale(factor)
        self.buffer.fade(factor)

    def _relabel_sums(self, new_labels: np.ndarray, positions: np.ndarray) -> None:
        """Renumber the classes after new ones, at `positions`, were announced."""
        self._own_sums()
        for fold in self.folds:
            if fold.n_features:
                fold.add_constant_targets(positions, -1.0)
        if self.by_class:
            more = _empty_folds(len(self.folds) + len(positions))
            for place, fold in zip(new_labels, self.folds, strict=True):
                more[place] = fold.share_work(more[positions[0]])
            self.folds = more
        self.buffer.relabel(new_labels)

    def _remove_rows(self, Z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """Remove rows from the sums, or from the buffer if all rows are there."""
        if not self._has_sums:
            self.buffer.remove(Z, y, weights)
            return
        if len(self.folds) > 1 and not self.by_class:
            raise ValueError(
                "rows of folds cannot be removed, because it is not known which fold they are in; "
                "give one alpha, or 'auto', instead of a sequence."
            )
        self._flush()
        self._own_sums()
        removed = _empty_folds(len(self.folds))
        Z = Z.astype(self._precision)
        _add_to_folds(removed, Z, self.encode(y), weights, y, overwrite=True)
        for fold, part in zip(self.folds, removed, strict=True):
            fold.subtract(part)

    def _flush(self) -> None:
        Z, y, weights, index = self.buffer.used()
        if not len(Z):
            return
        self._own_sums()
        Z = Z.astype(self._precision, copy=False)
        overwrite = not self.buffer.shared
        numbers = self._fold_numbers(y, index)
        _add_to_folds(self.folds, Z, self.encode(y), weights, numbers, overwrite=overwrite)
        self.buffer.clear()

    def _fold_numbers(self, y: np.ndarray, index: np.ndarray) -> np.ndarray:
        return y if self.by_class else index % len(self.folds)

    def _own_sums(self) -> None:
        """Copy shared sums before they are changed."""
        if self._shares_sums:
            self.folds = [copy(fold) for fold in self.folds]
            self._shares_sums = False

    @property
    def _precision(self) -> np.dtype:
        """Type in which products of features are summed, which the first rows decide."""
        if self._doubles is None:
            few = self.n_features <= choose.DOUBLE_PRECISION_FEATURES
            known = few or self.dtype == np.float64
            self._doubles = known or loses_directions(self.buffer.used()[0])
        return np.dtype(np.float64) if self._doubles else self.dtype

    def _row_space(self, fit_intercept: bool) -> Problem:
        """Return sums in the span of the kept rows, which contains the ridge solution."""
        Z, y, weights, index = self.buffer.used()
        centre = Z.mean(axis=0, dtype=np.float64) if fit_intercept else np.zeros(self.n_features)
        space = RowSpace(Z, centre)
        folds = _empty_folds(len(self.folds))
        numbers = self._fold_numbers(y, index)
        _add_to_folds(folds, space.coordinates, self.encode(y), weights, numbers)
        return Problem(folds, space)


def _empty_folds(n_folds: int) -> list[NormalEquations]:
    """Return sums without rows that share one work matrix."""
    first = NormalEquations()
    return [first, *(NormalEquations().share_work(first) for _ in range(n_folds - 1))]


def _add_to_folds(
    folds: list[NormalEquations],
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray,
    numbers: np.ndarray,
    *,
    overwrite: bool = False,
) -> None:
    """Add each row to the fold with its entry in `numbers`; with `overwrite`, Z is work space."""
    if not len(Z):
        return
    some_weights = None if (weights == 1).all() else weights
    if len(folds) == 1:
        folds[0].update(Z, Y, some_weights, overwrite=overwrite)
        return
    for number, fold in enumerate(folds):
        rows = numbers == number
        if rows.any():
            some = None if some_weights is None else some_weights[rows]
            fold.update(Z[rows], Y[rows], some, overwrite=True)
