"""Learning from an iterable of blocks of rows, with checkpoints on disk."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, nullcontext
from copy import deepcopy
from itertools import chain
from typing import Any, Self

import numpy as np

from craftmaps.learn import map_rows
from craftmaps.learn.base import Learner
from craftmaps.learn.checkpoint import Checkpoint, positioned, unpacked
from craftmaps.learn.progress import Progress
from craftmaps.validation import warn_renamed

_CHECKPOINT_SECONDS = 60.0
Blocks = Iterable[Any]


class BlockLearner(Learner):
    """A learner that takes any number of rows from files and generators."""

    def fit_blocks(
        self,
        blocks: Blocks,
        classes: Any = None,
        *,
        checkpoint: Any = None,
        checkpoint_every: float = _CHECKPOINT_SECONDS,
        progress: bool | None = None,
        every: Any = None,
    ) -> Self:
        """Learn from an iterable of blocks (X, y) or (X, y, sample_weight).

        Parameters
        ----------
        blocks : iterable
            For example what `craftmaps.scale.blocks.read` returns. If it can be iterated again, a
            first pass draws a uniform sample of all rows to fit the map on. An iterator can be read
            only once, so the map is fitted on its first `map_rows` rows. The blocks of KernelPCA
            may also be X alone.
        classes : array-like, default=None
            All labels that a classifier will see; None takes the labels of the first block.
        checkpoint : path of a folder, default=None
            Where to write what was learned. If the process is killed, the same call continues from
            the last checkpoint, and the model is the same, to the last bit on the same machine. A
            call after the end returns the model without learning again. A folder that belongs to
            other rows or parameters is refused.
        checkpoint_every : float, default=60.0
            Seconds between two checkpoints.
        progress : bool or None, default=None
            Whether to show a line of progress. None shows it if standard error is a terminal.
        every : float
            Deprecated name of `checkpoint_every`.

        Returns
        -------
        self
        """
        if every is not None:
            warn_renamed("every=", "checkpoint_every=")
            checkpoint_every = float(every)
        return self._fit_blocks(blocks, checkpoint, checkpoint_every, progress, classes)

    def for_checkpoint(self) -> Self:
        """Return what a checkpoint stores of an unfinished fit."""
        return self

    def _fit_blocks(
        self,
        blocks: Blocks,
        checkpoint: Any,
        checkpoint_every: float,
        progress: bool | None,
        classes: Any = None,
    ) -> Self:
        """Learn from blocks, starting after the last checkpoint if there is one."""
        self._forget()
        options = {"classes": classes}
        try:
            kept: Checkpoint | None = None
            if checkpoint is not None:
                kept = Checkpoint(checkpoint, checkpoint_every, self, blocks, options)
            with kept or nullcontext():
                self._learn_blocks(blocks, kept, progress, classes)
                self._stream.solution = self._solve()  # in place: there is no older state to keep
        except BaseException:
            self._forget()  # a model of some of the rows must not pass for a model of all
            raise
        return self.solve()

    def _learn_blocks(
        self, blocks: Blocks, kept: Checkpoint | None, progress: bool | None, classes: Any
    ) -> None:
        position = None if kept is None else kept.restore()
        total = getattr(blocks, "n_rows", None)
        if position is None:
            self._begin_from_all(blocks, total, progress, classes)
        elif total is not None:
            total -= self.n_samples_seen_
        following = positioned(blocks, position, kept=kept is not None)
        with Progress(total, progress) as line, closing(following):
            for position, (X, y, weights) in self._begin_from_first(following, classes):
                self._learn(X, y, weights, line, classes)
                if kept is not None:
                    kept.save_if_due(position)
        if not hasattr(self, "_stream"):
            raise ValueError("blocks is empty: there is nothing to learn from.")
        if kept is not None and position is not None:
            kept.save(position, finished=True)

    def _begin_from_all(
        self, blocks: Blocks, total: int | None, progress: bool | None, classes: Any
    ) -> None:
        """Fit the map on a sample of all rows, in a pass of its own, if that is possible."""
        if iter(blocks) is blocks or not self._needs_rows_of(blocks):
            return
        sample, begun, n_rows = map_rows.StreamSample(self._sample_size()), False, 0
        with Progress(total, progress, "sample for the map: ") as line:
            for block in blocks:
                X, y, _ = unpacked(block)
                X, y = self._more_rows(X, y) if begun else self._first_rows(X, y, classes)
                begun = True
                sample.add(X, y)
                n_rows += X.shape[0]
                line.advance(X.shape[0])
        if begun:
            self._fit_map(*sample.rows(), n_rows)

    def _begin_from_first(
        self, remaining: Generator[tuple[Any, Any], None, None], classes: Any
    ) -> Iterator[tuple[Any, Any]]:
        """Fit the map on the first rows, if it is not fitted, and return all remaining blocks."""
        if hasattr(self, "_stream"):
            return remaining
        held: list[Any] = []
        rows: list[tuple[Any, np.ndarray]] = []
        n_rows, wanted = 0, self._sample_size()
        for item in remaining:
            item = deepcopy(item)  # an iterator may reuse its arrays for the next block
            held.append(item)
            X, y = item[1][:2]
            X, y = self._more_rows(X, y) if rows else self._first_rows(X, y, classes)
            if not rows and not self._needs_rows(X):
                wanted = 1
            rows.append((X, y))
            n_rows += X.shape[0]
            if wanted is not None and n_rows >= wanted:
                break
        if rows:
            every_X, every_y = zip(*rows, strict=True)
            first = slice(None if len(rows) == 1 and wanted == 1 else wanted)
            self._fit_map(map_rows.stacked(every_X)[first], np.concatenate(every_y)[first])
        return chain(held, remaining)
