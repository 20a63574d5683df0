"""The base class of feature maps: validating rows, drawing, filling buffers, saving."""

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
from craftmaps.validation import FLOATS, check_count, check_squares, generator, valid_rows

MAX_STORED_COLUMNS = 1 << 24  # so that a small file cannot request all memory


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base class of transformers whose features have inner products that approximate a kernel.

    A subclass has the parameters `n_components` and `random_state` and defines two methods:

    - `_draw(X, y, rng)` checks the parameters and returns the fitted attributes as a dictionary,
      without setting anything on `self`. The entry `_n_features_out` is needed if the number of
      output columns is not `n_components`.
    - `_fill(X, out)` writes the features of validated rows into a C-ordered array.

    It may also define `_onnx(g, x)`, for `export_onnx`. The decorator `@storable` allows the class
    in model files; the fitted attributes are then annotated in the class body. If compiled loops
    rely on the drawn arrays, `_check_stored()` must validate them after loading.
    """

    n_components: int
    random_state: Any
    _n_features_out: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map for rows like X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets, for maps that learn from them; other maps ignore them.

        Returns
        -------
        self
        """
        rows = check_array(X, accept_sparse="csr", dtype=FLOATS, estimator=self, input_name="X")
        check_squares("X", rows)
        check_count("n_components", self.n_components)
        fitted = {"_n_features_out": int(self.n_components)}
        fitted |= self._draw(_canonical(rows), y, generator(self.random_state))
        # The loops rely on consistent attributes, so a fit that fails must not change any of them.
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
        """Compute the features of the rows of X in an existing array.

        `out` is a C-ordered floating-point array with at least as many rows as X; the features get
        its precision. The part of `out` that was written is returned.
        """
        check_is_fitted(self, "_n_features_out")
        X = self._valid(X)
        fits = out.ndim == 2 and out.shape[0] >= X.shape[0] and out.shape[1] == self._n_features_out
        if not (fits and out.flags.c_contiguous and out.flags.writeable and out.dtype in FLOATS):
            raise ValueError(
                f"out must be a writable C-ordered float32 or float64 array of at least "
                f"{X.shape[0]} rows and exactly {self._n_features_out} columns, got {out.dtype} of "
                f"shape {out.shape}."
            )
        filled = out[: X.shape[0]]
        self._fill(X, filled)
        return filled

    def _valid(self, X: Any) -> Any:
        """Validate rows after `fit` and convert them to floating point."""
        return _canonical(valid_rows(self, X))

    def save(self, path: Any) -> None:
        """Save the fitted map to a file, which `craftmaps.load` reads.

        The file contains the drawn numbers, not only the seed, so the features stay the same with
        every later version of this library and of NumPy. A `random_state` that is a generator is
        restored as None.
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
            f"{type(self).__name__} cannot be exported to ONNX: it does not define _onnx(g, x)."
        )

    def _check_stored(self) -> None:
        """Raise ValueError unless all drawn indices stay within their arrays.

        `load` calls this, because compiled loops do not check the drawn arrays and a file may
        contain anything.
        """
        if not 1 <= self._n_features_out <= MAX_STORED_COLUMNS:
            raise ValueError(f"{type(self).__name__} makes {self._n_features_out} columns")
        kernel = vars(self).get("kernel_")
        if isinstance(kernel, Kernel):
            kernel.check_resolved()

    def _smaller(self, n_components: int) -> Self:
        """Return an unfitted copy of this map with fewer components."""
        smaller: Self = clone(self).set_params(n_components=n_components)
        return smaller

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        """Predict the relative error on pairs of rows of X, or nan without a variance formula."""
        return float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _canonical(X: Any) -> Any:
    """Sum duplicate entries of sparse rows."""
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
            f"export_onnx takes the maps and learners of craftmaps, got a "
            f"{type(feature_map).__name__}; put it into a Pipeline and convert that with skl2onnx."
        )
    check_is_fitted(feature_map, "_n_features_out")
    return feature_map._onnx(g, x)
