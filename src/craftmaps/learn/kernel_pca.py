"""Principal components of features, from one pass."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import validate_data

from craftmaps.learn.codes import Encode, Unchanged
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.mergeable import Mergeable
from craftmaps.learn.row_checks import refuse_text
from craftmaps.learn.solvers.memory import refuse_if_too_large
from craftmaps.learn.solvers.solution import Solution, check_weight
from craftmaps.learn.stored import check_components
from craftmaps.learn.stream import FeatureStream
from craftmaps.storage.expect import expect_array
from craftmaps.storage.packing import storable
from craftmaps.validation import FLOATS, check_count

_ROUNDING = 10.0  # units of rounding per feature; a smaller variance counts as zero


@storable
@dataclass
class Components(Solution):
    """Directions of features as coefficients, and the variances along them."""

    variances: np.ndarray | None = None
    total_variance: float = 0.0
    centre: np.ndarray | None = None

    def _check_stored(self) -> None:
        super()._check_stored()
        expect_array("variances", self.variances, "f", (len(self.intercept),))
        expect_array("centre", self.centre, "f", (len(self.coef),))


@storable
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Mergeable):
    """Kernel principal component analysis in one pass: principal components of features.

    One pass over the rows keeps H = sum (z - m)(z - m)^T. Its eigenvectors are the components, and
    its eigenvalues divided by n - 1 are the variances along them. The result equals
    `sklearn.decomposition.PCA` on the features, and approaches `sklearn.decomposition.KernelPCA` as
    the number of features grows. Sums can be added, merged and forgotten as in `OnePassRegressor`.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Turns rows into features. None uses the rows themselves. A clone is fitted on a sample of
        the rows, see `map_rows`. To use a fitted map without fitting it again, wrap it in
        `sklearn.frozen.FrozenEstimator`.
    n_components : int or None, default=None
        Number of components to keep, largest variance first. None keeps one per feature.
    block_rows : int, default=4096
        Number of rows whose features are held in memory and added to the sums together.
    map_rows : int or None, default=10000
        Rows that the feature map is fitted on, as in `OnePassRegressor`.
    decay : float or None, default=None
        Factor on the weight of every earlier row when another row arrives.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features of the map)
        Unit vectors whose largest entry is positive. If the rows vary in fewer directions, the
        last components are 0.
    explained_variance_ : ndarray of shape (n_components,)
    explained_variance_ratio_ : ndarray of shape (n_components,)
    mean_ : ndarray of shape (n_features of the map,)
    n_components_ : int
    feature_map_ : fitted transformer or None
    n_samples_seen_ : int

    Notes
    -----
    For E features of n rows the pass takes n E^2 operations and 8 E^2 bytes, the components 4/3 E^3
    operations. A saved file holds the components, and with `resumable=True` also the sums.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from craftmaps import FourierFeatures, Gaussian, KernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> feature_map = FourierFeatures(Gaussian(), n_components=256, random_state=0)
    >>> pca = KernelPCA(feature_map, n_components=2).fit(X)
    >>> pca.transform(X).shape
    (1797, 2)
    >>> stream = KernelPCA(feature_map, n_components=2)
    >>> for start in range(0, len(X), 500):
    ...     _ = stream.partial_fit(X[start : start + 500])
    >>> stream.explained_variance_ratio_.shape
    (2,)
    """

    def __init__(
        self,
        feature_map: Any = None,
        n_components: int | None = None,
        *,
        block_rows: int = 4096,
        map_rows: int | None = DEFAULT_MAP_ROWS,
        decay: float | None = None,
    ) -> None:
        self.feature_map = feature_map
        self.n_components = n_components
        self.block_rows = block_rows
        self.map_rows = map_rows
        self.decay = decay

    @property
    def components_(self) -> np.ndarray:
        return np.asarray(self.solution_.coef.T)

    @property
    def explained_variance_(self) -> np.ndarray:
        return np.asarray(self._components.variances)

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        return np.asarray(self.explained_variance_ / (self._components.total_variance or 1.0))

    @property
    def mean_(self) -> np.ndarray:
        return np.asarray(self._components.centre)

    @property
    def n_components_(self) -> int:
        return int(self.solution_.coef.shape[1])

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the components of the rows of X, and forget what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
        """
        return super().fit(X, None, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. Components are computed when they are first needed."""
        return super().partial_fit(X, None, sample_weight)

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearn rows, see `OnePassRegressor.forget`; y is ignored."""
        return super().forget(X, None, sample_weight)

    def transform(self, X: Any) -> np.ndarray:
        """Project rows onto the components; the result has shape (n_samples, n_components)."""
        return np.concatenate(list(self._predicted(X)))

    def _fit_blocks(self, blocks: Iterable[Any], *args: Any) -> Self:
        return super()._fit_blocks(_in_pairs(blocks), *args)

    @property
    def _components(self) -> Any:
        return self.solution_

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _solve(self) -> Components:
        stream = self._stream
        sums = stream.problem(fit_intercept=True, spanned=False).total()
        check_weight(sums.weight)
        n_features = stream.n_features
        k = n_features if self.n_components is None else int(self.n_components)
        if k > n_features:
            raise ValueError(f"n_components={k} must be at most the {n_features} features.")
        lower, _, _ = sums.system()
        rows = sums.weight - 1 if sums.weight > 1 else sums.weight
        total = float(np.trace(lower)) / rows
        values, vectors = eigh(
            lower, lower=True, overwrite_a=True, subset_by_index=[n_features - k, n_features - 1]
        )
        variances = np.maximum(values[::-1], 0.0) / rows
        coef, _ = svd_flip(vectors[:, ::-1].copy(order="K"), None)
        eps = float(np.finfo(sums.precision).eps)
        coef[:, values[::-1] <= _ROUNDING * n_features * eps * max(values[-1], 0.0)] = 0.0
        centre = sums.z_mean.copy()
        return Components(
            coef,
            -(centre @ coef),
            alpha=0.0,
            jitter=0.0,
            condition=1.0,
            variances=variances,
            total_variance=total,
            centre=centre,
        )

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        if reset:
            refuse_text(self, X)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=reset)
        return X, np.empty((X.shape[0], 0))

    def _set_targets(self, y: np.ndarray, classes: Any = None) -> None:
        if classes is not None:
            raise ValueError("principal components have no classes.")

    def _map_targets(self, y: np.ndarray) -> None:
        return None

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return y

    @property
    def _encode(self) -> Encode:
        return Unchanged()

    @property
    def _n_columns(self) -> int:
        return 0

    def _new_stream(
        self, feature_map: Any, n_features: int, n_rows: int | None, dtype: np.dtype
    ) -> FeatureStream:
        capacity = self.block_rows if n_rows is None else min(self.block_rows, n_rows)
        refuse_if_too_large(n_features, 0, dtype.itemsize)
        decay = 1.0 if self.decay is None else float(self.decay)
        return FeatureStream(feature_map, n_features, capacity, dtype, self._encode, decay=decay)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_components", self.n_components, none=True)

    def _check_stored(self) -> None:
        check_components(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Pairs:
    """Blocks that can be iterated again, where X alone becomes (X, None)."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        return ((block, None) if hasattr(block, "shape") else block for block in self._blocks)


def _in_pairs(blocks: Iterable[Any]) -> Iterable[Any]:
    if hasattr(blocks, "fingerprint"):  # blocks from files always have targets
        return blocks
    pairs = _Pairs(blocks)
    return iter(pairs) if iter(blocks) is blocks else pairs
