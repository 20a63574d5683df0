"""Learners whose sums add: streams of rows, parts on a cluster, merging and forgetting."""

from copy import copy
from typing import Any, Self

import numpy as np

from craftmaps.learn.features import fill_features
from craftmaps.learn.fit_blocks import BlockLearner
from craftmaps.learn.progress import Progress
from craftmaps.learn.removal import probe_without
from craftmaps.learn.row_checks import checked_weights
from craftmaps.validation import is_number


class Mergeable(BlockLearner):
    """A learner that keeps sums of its rows, so that rows can be added and removed."""

    decay: float | None = None

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows. The system is solved when a result is first needed.

        If this raises an error or is interrupted, the learner is unchanged and the call can be
        repeated.

        Parameters
        ----------
        X, y, sample_weight
            Rows as for `fit`. The first call also fits the map, on a sample of `map_rows` rows.

        Returns
        -------
        self
        """
        return self._take(X, y, sample_weight)

    def merge(self, other: Self) -> Self:
        """Add what `other` has learned with the same map; `other` is not changed."""
        if type(other) is not type(self):
            raise ValueError(
                f"a {type(self).__name__} merges with another one, not with a "
                f"{type(other).__name__}."
            )
        mine, theirs = self._begun(), other._begun()
        mine.check_open()
        theirs.check_open()
        if not self._has_features_of(other):
            raise ValueError(
                "the two learners have different feature maps or folds, so their sums do not add; "
                "fit one map and give it to both as sklearn.frozen.FrozenEstimator(feature_map)."
            )
        self._check_mergeable(other)
        with self._draft() as draft:
            draft._merge(other)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be if it had never seen them.

        The sums of these rows are subtracted, and the rows are removed from the sample by which
        "auto" chooses alpha, so alpha may change. The feature map does not change.

        Parameters
        ----------
        X, y, sample_weight
            Rows as they were learned, in any order and any blocks.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If some rows were never learned, or if too little would be left. Nothing is changed
            then. With fewer rows than features, all rows are kept, and every row that was never
            learned is noticed. Later it is noticed only if the remaining sums are impossible.
        """
        self._begun().check_open()
        if self.decay is not None and self.decay != 1:
            raise ValueError(
                "a learner with decay does not know what weight its earlier rows have left; rows "
                "fade by themselves, or set decay=None to forget some of them."
            )
        X, y = self._more_rows(X, y)
        weights = checked_weights(sample_weight, X)
        targets = self._targets(y)
        row_weights = self._row_weights(weights, targets)
        self._check_rest(float(X.shape[0] if row_weights is None else row_weights.sum()))
        rows = self._encoded(X)
        with self._draft() as draft:
            draft._stream.remove(rows, targets, row_weights)
            draft._probe = probe_without(self._probe, rows)
        return self

    def emptied(self, first_row: int = 0) -> Self:
        """Return a copy with the same fitted map that has seen no rows.

        `first_row` is the place of the first row that the copy will see, if it learns from a part
        of all rows.
        """
        part = copy(self)
        part._stream = self._begun().emptied()
        part._stream.first_row = first_row
        return part

    def sums(self) -> bytes:
        """Return what was learned, without the map, for `with_sums` and `add_sums`."""
        return self._begun().to_bytes()

    def with_sums(self, sums: Any) -> Self:
        """Return a copy that has learned only the `sums` of an emptied copy of this learner."""
        part = copy(self)
        part._stream = self._begun().from_bytes(sums)
        return part

    def add_sums(self, sums: Any) -> Self:
        """Add the `sums` of an emptied copy of this learner."""
        self._stream.merge(self._begun().from_bytes(sums))
        return self

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Learn from a block, all of it or nothing."""
        with self._draft() as draft:
            draft._learn(X, y, sample_weight, Progress(None, shown=False), classes)
        return self

    def _check_mergeable(self, other: Any) -> None:
        """Raise ValueError if the targets of another learner do not fit the targets here."""

    def _check_rest(self, removed: float) -> None:
        """Raise ValueError if nothing could be solved after rows of this weight are removed."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        decay = self.decay
        if decay is not None and (not is_number(decay) or not 0 < decay <= 1):
            raise ValueError(f"decay must be None or a number above 0, at most 1, got {decay!r}.")

    def _merge(self, other: Self) -> None:
        self._stream.merge(other._stream)

    def _has_features_of(self, other: Self) -> bool:
        """Whether both maps give the same features for one row of each learner."""
        mine, theirs = self._stream, other._stream
        by_class = mine.by_class or theirs.by_class  # folds may differ, because classes may
        if mine.n_features != theirs.n_features:
            return False
        if len(mine.folds) != len(theirs.folds) and not by_class:
            return False
        Z = np.empty((2, 2, mine.n_features))
        for features, stream in zip(Z, (mine, theirs), strict=True):
            fill_features(stream.feature_map, self._probe, features[:1])
            fill_features(stream.feature_map, other._probe, features[1:])
        return bool(np.allclose(Z[0], Z[1], rtol=1e-4, atol=1e-4 * np.abs(Z).max()))
