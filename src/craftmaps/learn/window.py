"""Learning from the last blocks of a stream only."""

from copy import copy
from typing import Any, Self

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from craftmaps.learn.mergeable import Mergeable
from craftmaps.learn.stream import FeatureStream
from craftmaps.storage import model_file
from craftmaps.storage.expect import expect
from craftmaps.storage.packing import storable
from craftmaps.validation import check_count


@storable
class Window:
    """Learn from the last `n_blocks` blocks of a stream.

    The sums of each block are kept, and `model` merges them. The model is the same as if it had
    never seen an older block.

    Parameters
    ----------
    estimator : OnePassRegressor, OnePassClassifier, KernelPCA, or another learner with partial_fit
        It is not changed. A clone of it fits its map on the first block.
    n_blocks : int, default=10

    Notes
    -----
    Memory: 8 E^2 bytes for each block of E features, and as many rows of features as `block_rows`.
    A model is merged in n_blocks E^2 operations and then solved.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import OnePassRegressor, Window
    >>> window = Window(OnePassRegressor(alpha=1.0), n_blocks=2)
    >>> rng = np.random.default_rng(0)
    >>> for slope in (1.0, 1.0, -1.0, -1.0):
    ...     X = rng.standard_normal((100, 1))
    ...     _ = window.partial_fit(X, slope * X[:, 0])
    >>> bool(window.model().coef_[0] < -0.9)
    True
    """

    estimator: Any
    n_blocks: int
    _begun: Any
    _parts: list[FeatureStream]
    _n_rows: int

    def __init__(self, estimator: Any, n_blocks: int = 10) -> None:
        if not isinstance(estimator, Mergeable) or not hasattr(estimator, "partial_fit"):
            raise ValueError(
                f"a window is for learners with partial_fit and merge, got {estimator!r}."
            )
        if estimator.decay not in (None, 1):
            raise ValueError("a window forgets whole blocks; give it a learner with decay=None.")
        check_count("n_blocks", n_blocks)
        self.estimator = estimator
        self.n_blocks = int(n_blocks)
        self._begun = None
        self._parts = []
        self._n_rows = 0

    def partial_fit(
        self, X: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from the next block, and forget the oldest if there are more than `n_blocks`.

        Parameters
        ----------
        X, y, sample_weight
            Rows as for the learner. The first block fits its map.
        classes : array-like, default=None
            All labels of the stream, in the first call of a classifier.
        """
        begun = self._begun
        if begun is None:
            begun = clone(self.estimator).begin(X, y, classes)
        part = begun.emptied(self._n_rows).add(X, y, sample_weight)._stream
        part.settle()
        self._begun, self._parts = begun, [*self._parts, part][-self.n_blocks :]
        self._n_rows += part.n_rows
        return self

    def model(self) -> Any:
        """Return a learner that has seen only the blocks in the window."""
        if self._begun is None:
            raise NotFittedError("This Window instance has seen no block; call partial_fit first.")
        whole = self._begun.emptied()
        for part in self._parts:
            whole._stream.merge(part)
        return whole

    def save(self, path: Any) -> None:
        """Save the window to a file, which `craftmaps.load` reads, to continue later."""
        model_file.save(self, path)

    def _check_stored(self) -> None:
        expect(self.n_blocks >= 1 and self._n_rows >= 0, "a number of blocks and of rows")
        expect(len(self._parts) <= self.n_blocks, "no more blocks than the window holds")
        expect(isinstance(self.estimator, Mergeable), "a learner of sums")
        expect(isinstance(self._begun, Mergeable) or not self._parts, "a learner that has begun")
        for part in self._parts:
            learner = copy(self._begun)
            learner._stream = part
            expect(not part._closed, "blocks with their sums")
            learner._check_stored()
