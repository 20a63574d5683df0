"""Learners whose sums add: streams, blocks and files, merging, and forgetting."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from craftmaps.learn.base import Learner, checked_weights
from craftmaps.learn.progress import Progress
from craftmaps.learn.removal import probe_without
from craftmaps.learn.stream import fill_features
from craftmaps.validation import is_number, warn

CHECKPOINT_SECONDS = 60.0  # between two checkpoints


class Mergeable(Learner):
    """A learner that keeps sums of its rows, which other rows can be added to or taken from."""

    decay: float | None = None

    def _check_mergeable(self, other: Any) -> None:
        """Complain if the targets of another learner of this kind do not fit these."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from further rows. The system is solved when a result is first asked for.

        If this raises, or is interrupted, the learner is what it was before, so that the call can
        be repeated.

        Parameters
        ----------
        X, y, sample_weight
            Rows as for `fit`. The first call fits the map, on a sample of `map_rows` of its rows.
        """
        self._take(X, y, sample_weight, Progress(None, shown=False))
        return self

    def fit_blocks(
        self,
        blocks: Iterable[Any],
        *,
        checkpoint: Any = None,
        checkpoint_every: float = CHECKPOINT_SECONDS,
        progress: bool | None = None,
        every: Any = None,
    ) -> Self:
        """Learn from an iterable of (X, y) or (X, y, sample_weight), whatever its length.

        Parameters
        ----------
        blocks : iterable
            What `craftmaps.scale.blocks.read` returns, for example. If it can be iterated again, a
            first pass collects the rows that the map is fitted on, a uniform sample of all rows. An
            iterator can be read only once, so the map is fitted on its first `map_rows` rows.
        checkpoint : path of a folder, default=None
            Where to write what was learned, so that the same call goes on from there after the
            process was killed; the model is the same, to the last bit on the same machine. After
            the end, the call returns the model without learning a row again. A folder of other
            rows or parameters is refused.
        checkpoint_every : float, default=60.0
            Seconds between two checkpoints.
        progress : bool or None, default=None
            None shows a line of progress if standard error is a terminal.
        every : float
            The former name of `checkpoint_every`.
        """
        seconds = renamed_every(every, checkpoint_every)
        return self._fit_blocks(blocks, checkpoint, seconds, progress)

    def merge(self, other: Self) -> Self:
        """Learn what `other` has learned from its rows with the same map; it stays as it is."""
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
        """Unlearn rows: the model becomes what it would be, had it never seen them.

        The sums of these rows are subtracted, and the rows leave the sample by which "auto" chooses
        alpha, which it does anew. The feature map stays as it is, whatever rows it was fitted on.

        Parameters
        ----------
        X, y, sample_weight
            Rows as they were learned, in any order and any blocks.

        Raises
        ------
        ValueError
            If what would be left cannot be sums of rows, because some of these were never learned,
            or if too little would be left. Nothing is changed then. As long as all rows are kept,
            which they are if there are fewer of them than features, every row that was never
            learned is noticed. Later only those are noticed that the sums show to be missing.
        """
        self._begun().check_open()
        if self.decay is not None and self.decay != 1:
            raise ValueError(
                "a learner with decay does not know what weight its earlier rows have left; rows "
                "fade by themselves, or set decay=None to forget some of them."
            )
        X, y = self._validated(X, y, reset=False)
        weights = checked_weights(sample_weight, X)
        self._check_targets(y)
        targets = self._targets(y)
        row_weights = self._row_weights(weights, y, targets)
        self._check_rest(float(X.shape[0] if row_weights is None else row_weights.sum()))
        rows = self._encoded(X)
        with self._draft() as draft:
            draft._stream.remove(rows, targets, row_weights)
            draft._probe = probe_without(self._probe, rows)
        return self

    def _check_rest(self, removed: float) -> None:
        """Complain if the learner could not be solved after a weight of `removed` is gone."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        decay = self.decay
        if decay is not None and (not is_number(decay) or not 0 < decay <= 1):
            raise ValueError(f"decay must be None or a number above 0, at most 1, got {decay!r}.")

    def _merge(self, other: Self) -> None:
        self._stream.merge(other._stream)

    def _has_features_of(self, other: Self) -> bool:
        """Whether both maps make the same features of a row of each, for as many folds."""
        mine, theirs = self._stream, other._stream
        if mine.n_features != theirs.n_features or len(mine.folds) != len(theirs.folds):
            return False
        Z = np.empty((2, 2, mine.n_features))
        for features, stream in zip(Z, (mine, theirs), strict=True):
            fill_features(stream.feature_map, self._probe, features[:1])
            fill_features(stream.feature_map, other._probe, features[1:])
        return bool(np.allclose(Z[0], Z[1], rtol=1e-4, atol=1e-4 * np.abs(Z).max()))


def renamed_every(every: Any, checkpoint_every: float) -> float:
    """The value of `checkpoint_every`, which used to be called `every`."""
    if every is None:
        return checkpoint_every
    warn("every= is called checkpoint_every= now, and the old name will be removed.", FutureWarning)
    return float(every)
