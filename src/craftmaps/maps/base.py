"""What every feature map does the same way: validate rows, draw, fill, save."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from craftmaps.kernels import Kernel
from craftmaps.storage import model_file
from craftmaps.validation import check_squares, generator, is_integer

_FLOATS = (np.float64, np.float32)
MAX_STORED_COLUMNS = 1 << 24  # a small file must not ask for all memory


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base class of transformers whose outputs have inner products that approximate a kernel.

    A subclass has the parameters `n_components` and `random_state` and defines

    - `_draw(X, y, rng)`, which checks the parameters and returns the fitted attributes as a
      dictionary. It sets nothing on `self`. The entry `_n_features_out` is needed where the number
      of output columns is not `n_components`;
    - `_fill(X, out)`, which writes the features of valid rows into a C-ordered buffer.

    It may define `_onnx(g, x)`, for `export_onnx`. The decorator `@storable` allows the class in
    model files; the fitted attributes are then annotated in the body of the class. If compiled
    loops depend on what was drawn, `_check_stored()` checks it after loading.
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
            Targets, for maps that learn from them; other maps ignore them.

        Returns
        -------
        self
        """
        rows = check_array(X, accept_sparse="csr", dtype=_FLOATS, estimator=self, input_name="X")
        check_squares("X", rows)
        if not is_integer(self.n_components) or self.n_components < 1:
            raise ValueError(
                f"n_components must be an integer of at least 1, got {self.n_components!r}."
            )
        fitted = {"_n_features_out": int(self.n_components)}
        fitted |= self._draw(_canonical(rows), y, generator(self.random_state))
        # Loops trust that all parts belong together, so that a fit that fails must change nothing.
        validate_data(self, X, skip_check_array=True)
        self.__dict__.update(fitted)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Compute the features of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32 if X is float32, otherwise float64
        """
        check_is_fitted(self, "_n_features_out")
        X = self._valid(X)
        out = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        self._fill(X, out)
        return out

    def transform_into(self, X: Any, out: np.ndarray) -> np.ndarray:
        """Compute the features of the rows of X in a buffer that has at least as many rows.

        `out` is C-ordered and of floating point; the features have its precision. The part of
        `out` that was written is returned.
        """
        check_is_fitted(self, "_n_features_out")
        X = self._valid(X)
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

    def _valid(self, X: Any) -> Any:
        """Rows like those of `fit`, as floating-point numbers."""
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)
        return _canonical(X)

    def save(self, path: Any) -> None:
        """Write the fitted map to one file, from which `craftmaps.load` restores it.

        The file contains what was drawn, not only the seed: it gives the same features with every
        later version of this library and of NumPy. A `random_state` that is a generator comes back
        as None.
        """
        check_is_fitted(self, "_n_features_out")
        model_file.save(self, path)

    @abstractmethod
    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Check the parameters, draw the map, and return its fitted attributes."""

    @abstractmethod
    def _fill(self, X: Any, out: np.ndarray) -> None:
        """Write the features of the rows of X into `out`."""

    def _onnx(self, g: Any, x: str) -> str:
        """Add the features of the rows x to the ONNX graph `g`; return the name of the result."""
        raise ValueError(
            f"{type(self).__name__} has no ONNX form: its class does not define _onnx(g, x)."
        )

    def _check_stored(self) -> None:
        """Raise ValueError unless all that was drawn stays within its arrays.

        Called by `load`: compiled loops trust what was drawn, and a file may contain anything.
        """
        if not 1 <= self._n_features_out <= MAX_STORED_COLUMNS:
            raise ValueError(f"{type(self).__name__} makes {self._n_features_out} columns")
        kernel = vars(self).get("kernel_")
        if isinstance(kernel, Kernel):
            kernel.check_resolved()

    def _smaller(self, n_components: int) -> Self:
        """An unfitted map with fewer components that does otherwise what this one would do."""
        smaller: Self = clone(self).set_params(n_components=n_components)
        return smaller

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        """Relative error on pairs of rows of X by a variance formula; nan if there is none."""
        return float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _canonical(X: Any) -> Any:
    """Rows whose entries are whole: a sparse matrix may list the summands of one entry."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def onnx_features(g: Any, x: str, feature_map: Any) -> str:
    """Add the features of a fitted map, which may be frozen or None, to an ONNX graph."""
    if feature_map is None:
        return x
    if isinstance(feature_map, FrozenEstimator):
        return onnx_features(g, x, feature_map.estimator)
    if not isinstance(feature_map, FeatureMap):
        raise ValueError(
            f"export_onnx knows the maps and learners of craftmaps, got a "
            f"{type(feature_map).__name__}; put it into a Pipeline and convert that with skl2onnx."
        )
    check_is_fitted(feature_map, "_n_features_out")
    return feature_map._onnx(g, x)
