"""What a new kind of learner defines; `Learner` does the rest."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from craftmaps.learn.codes import Encode
from craftmaps.learn.intervals import Conformal
from craftmaps.learn.map_rows import needs_rows
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.stream import FeatureStream
from craftmaps.learn.uncertainty import Posterior
from craftmaps.validation import valid_rows


class LearnerHooks(BaseEstimator, ABC):
    """The methods that tell one learner from another: its targets, its rows and its loss.

    A subclass defines the abstract methods, and overrides the others where it differs. The y of
    these methods are targets that `_validated` has returned.
    """

    feature_map: Any
    block_rows: int
    map_rows: int | None

    @abstractmethod
    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """Check the rows and targets from a caller; `reset` says that they are the first rows."""

    @abstractmethod
    def _set_targets(self, y: np.ndarray, classes: Any = None) -> None:
        """Store what is known from the first targets or from `classes`, such as all labels."""

    @abstractmethod
    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Return the targets in the form that the stream keeps."""

    @property
    @abstractmethod
    def _encode(self) -> Encode:
        """Function from the result of `_targets` to the columns to predict."""

    @property
    @abstractmethod
    def _n_columns(self) -> int:
        """Number of columns to predict."""

    @abstractmethod
    def _new_stream(
        self, feature_map: Any, n_features: int, n_rows: int | None, dtype: np.dtype
    ) -> FeatureStream:
        """Return an empty stream; `n_rows` is the number of rows to come, None if unknown."""

    @abstractmethod
    def _solve(self) -> Solution:
        """Return the solution for all rows so far."""

    def _check_targets(self, y: np.ndarray, *, whole: bool = False) -> None:
        """Raise ValueError for bad targets; `whole` says that no more targets will follow."""

    def _valid_targets(self, y: Any) -> np.ndarray:
        """Check the targets alone, if the rows are a table."""
        return np.asarray(y)

    def _more_targets(self, classes: Any) -> None:
        """Add classes that are announced with a later block."""

    def _map_targets(self, y: np.ndarray) -> Any:
        """Return the targets that the feature map is fitted on."""
        return y

    def _row_weights(self, weights: np.ndarray | None, targets: np.ndarray) -> np.ndarray | None:
        """Return the weights of rows, multiplied by the weights of their classes if any."""
        return weights

    def _calibrate(self) -> None:
        """Compute what predictions need besides the solution."""

    def _uncertainty(self, *, single: bool = False) -> tuple[Posterior | None, Conformal]:
        """Return the posterior and the conformal scores; with `single`, in float32."""
        raise ValueError(f"a {type(self).__name__} has no standard deviations.")

    def fits_encoder(self) -> bool:
        """Whether an encoder of tables is fitted on the rows of `map_rows`."""
        return False

    def _needs_rows(self, X: Any) -> bool:
        """Whether a map or an encoder is fitted on rows like X."""
        return needs_rows(self.feature_map)

    def _needs_rows_of(self, blocks: Any) -> bool:
        """Whether a map or an encoder is fitted on rows of these blocks."""
        return needs_rows(self.feature_map)

    def _valid_rows(self, X: Any) -> Any:
        """Check rows to predict."""
        return valid_rows(self, X)

    def _encoded(self, X: Any) -> Any:
        """Return validated rows as numbers for the map."""
        return X
