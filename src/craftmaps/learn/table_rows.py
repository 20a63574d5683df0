"""Tables in front of a learner: columns of any type are encoded before the map sees them."""

from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_consistent_length, validate_data

from craftmaps.learn.base import Learner
from craftmaps.learn.checkpoint import unpacked
from craftmaps.tables import TableEncoder
from craftmaps.tables.table import Table, has_gaps, is_table, set_names, table_of
from craftmaps.validation import FLOATS


class TableLearner(Learner):
    """A learner with a parameter `encoder`, which turns tables into rows of numbers.

    `encoder_` is None if rows are not encoded. Otherwise validated rows are a `Table`, or a sparse
    matrix, and the learner encodes them before it fits the map, learns or predicts.
    """

    encoder: Any

    def _encodes(self, X: Any) -> bool:
        if isinstance(self.encoder, str):
            return is_table(X) or has_gaps(X)
        return self.encoder is not None

    def _needs_rows(self, X: Any) -> bool:
        return super()._needs_rows(X) or (self.fits_encoder() and self._encodes(X))

    def _needs_rows_of(self, blocks: Any) -> bool:
        if super()._needs_rows_of(blocks) or not self.fits_encoder():
            return super()._needs_rows_of(blocks)
        return any(self._encodes(unpacked(block)[0]) for block in islice(blocks, 1))

    def fits_encoder(self) -> bool:
        """Whether an encoder of tables would be fitted on the rows of `map_rows`."""
        return not (self.encoder is None or isinstance(self.encoder, FrozenEstimator))

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        if reset:
            self._check_encoder()
            self.encoder_ = self._new_encoder() if self._encodes(X) else None
        if self.encoder_ is None:
            return super()._validated(X, y, reset=reset)  # type: ignore[safe-super]
        X = self._opened(X)
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        y = self._valid_targets(y)
        check_consistent_length(X, y)
        if reset:
            set_names(self, X)
        return X, y

    def _valid_rows(self, X: Any) -> Any:
        if self.encoder_ is None:
            return super()._valid_rows(X)
        rows = self._opened(X)
        if isinstance(rows, Table):
            rows.check_size()
        return rows

    def _encoded(self, X: Any) -> Any:
        return X if self.encoder_ is None else self.encoder_.encode(X)

    def _fit_map(
        self, X: Any, y: np.ndarray, n_rows: int | None = None, *, whole: bool = False
    ) -> None:
        self._check_parameters()
        self.fit_encoder(X)
        super()._fit_map(self._encoded(X), y, n_rows, whole=whole)

    def fit_encoder(self, X: Any) -> None:
        """Fit the encoder to a sample of rows, if there is one that is not fitted yet."""
        encoder = self.encoder_
        if encoder is not None and self.fits_encoder() and not hasattr(encoder, "columns_"):
            encoder.fit(X)

    def _has_features_of(self, other: Any) -> bool:
        """Whether both learners also encode tables in the same way."""
        mine, theirs = self.encoder_, other.encoder_
        if mine is None or theirs is None:
            return mine is theirs and super()._has_features_of(other)
        return bool(mine.is_like(theirs) and super()._has_features_of(other))

    def _opened(self, X: Any) -> Any:
        """Return X as a table, whose columns are read later, or as a sparse matrix."""
        if not (sparse.issparse(X) or getattr(self.encoder_, "is_sparse_", False)):
            return table_of(X)
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _new_encoder(self) -> TableEncoder:
        if isinstance(self.encoder, FrozenEstimator):
            encoder: TableEncoder = self.encoder.estimator
            return encoder
        return TableEncoder() if isinstance(self.encoder, str) else clone(self.encoder)

    def _check_encoder(self) -> None:
        given = self.encoder
        if isinstance(given, FrozenEstimator):
            given = given.estimator
        is_auto = isinstance(given, str) and given == "auto"
        if not (given is None or is_auto or isinstance(given, TableEncoder)):
            raise ValueError(f"encoder must be 'auto', None or a TableEncoder, got {given!r}.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_encoder()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        encodes = self.encoder is not None
        tags.input_tags.allow_nan = tags.input_tags.string = encodes
        tags.input_tags.categorical = encodes
        return tags
