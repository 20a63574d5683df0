"""What every feature map does the same way: validate, draw, fill."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from craftmaps.kernels import Kernel
from craftmaps.storage import model_file
from craftmaps.validation import generator, is_integer

_FLOATS = (np.float64, np.float32)
MOST_COLUMNS_OF_A_FILE = 1 << 24  # a small file must not ask for all memory


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer whose inner products of outputs approximate a kernel.

    A map defines `_draw(X, rng)`, which draws what it needs for rows like X, and `_fill(X, out)`,
    which writes the features of valid rows into a C-ordered buffer. `_draw` may set
    `_n_features_out` where the number of columns is not `n_components`. A map that can learn from
    targets defines `_learn(X, y, rng)`, which comes before.
    """

    n_components: int
    random_state: Any
    _n_features_out: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map for rows like those of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets, for a kernel that is learnt (kernel="auto"); ignored otherwise.

        Returns
        -------
        self
        """
        before = dict(vars(self))
        try:
            self._fit(X, y)
        except BaseException:
            # loops trust that what was drawn belongs together: all of it is new, or nothing
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Any, y: Any) -> None:
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS)
        if not is_integer(self.n_components) or self.n_components < 1:
            raise ValueError(
                f"n_components must be an integer of at least 1, got {self.n_components!r}."
            )
        self._n_features_out = int(self.n_components)
        rng = generator(self.random_state)
        self._learn(X, y, rng)
        self._draw(X, rng)

    def transform(self, X: Any) -> np.ndarray:
        """The features of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32 if X is float32, otherwise float64
        """
        check_is_fitted(self, "_n_features_out")
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)
        out = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        self._fill(X, out)
        return out

    def transform_into(self, X: Any, out: np.ndarray) -> np.ndarray:
        """As `transform`, into a C-ordered floating-point buffer with at least as many rows.

        Returns the part of `out` that was written. The features have the precision of `out`.
        """
        check_is_fitted(self, "_n_features_out")
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)
        fits = out.ndim == 2 and out.shape[0] >= X.shape[0] and out.shape[1] == self._n_features_out
        if not (fits and out.flags.c_contiguous and out.flags.writeable and out.dtype in _FLOATS):
            raise ValueError(
                f"out must be a writable C-ordered float32 or float64 array of at least "
                f"{X.shape[0]} rows and exactly {self._n_features_out} columns, got {out.dtype} of "
                f"shape {out.shape}."
            )
        filled = out[: X.shape[0]]
        self._fill(X, filled)
        return filled

    def save(self, path: Any) -> None:
        """Write the fitted map to one file, from which `craftmaps.load` gives it back.

        What was drawn is stored, not only the seed: the file makes the same features with every
        later version of this library and of NumPy. A `random_state` that is a generator comes back
        as None.
        """
        check_is_fitted(self, "_n_features_out")
        model_file.save(self, path)

    def _check_stored(self) -> None:
        """Raise ValueError unless what came from a file fits together."""
        kernel = vars(self).get("kernel_")
        if isinstance(kernel, Kernel):
            kernel.check_resolved()
        if not 1 <= self._n_features_out <= MOST_COLUMNS_OF_A_FILE or not self.is_sound():
            raise ValueError(f"the arrays of {type(self).__name__} do not fit together")

    def is_sound(self) -> bool:
        """Whether all that was drawn stays within its arrays, as compiled loops take for granted.

        A map that was drawn is; one that comes from a file may be anything.
        """
        return True

    def _learn(self, X: Any, y: Any, rng: np.random.Generator) -> None:
        """Learn from targets; most maps do not."""

    @abstractmethod
    def _draw(self, X: Any, rng: np.random.Generator) -> None:
        """Draw the map, with all checks of parameters."""

    @abstractmethod
    def _fill(self, X: Any, out: np.ndarray) -> None:
        """Write the features of X's rows into `out`."""

    def _smaller(self, n_components: int) -> Self:
        """An unfitted map with fewer components that does otherwise what this one would do."""
        smaller: Self = clone(self).set_params(n_components=n_components)
        return smaller

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
