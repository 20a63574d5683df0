"""Nyström features for any kernel, from landmark rows."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from craftmaps.kernels import Kernel, any_kernel
from craftmaps.kernels.pairs import Fill, fill_blocks
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts import landmarks as choose
from craftmaps.maps.parts.base import check_facts, is_within
from craftmaps.maps.parts.whitening import Whitening, one_thread_if_few, pivoted_factor
from craftmaps.storage.packing import storable
from craftmaps.threads import for_each_product_block
from craftmaps.validation import warn

_CHOICES = ("uniform", "kmeans", "rpcholesky", "leverage")
_MANY_LANDMARKS = 256  # with fewer, features of landmarks are computed like those of other rows
_BLOCK_ROWS = 1024  # rows of K_LL that are copied at a time


def _not_whitened(feature_map: Any) -> bool:
    return not feature_map.whiten


@storable
class Nystroem(FeatureMap):
    """Nyström features of any kernel, computed from landmark rows L.

    The features are z(x) = R^-1 k(x, L) with the Cholesky factor K_LL = R R'. Their inner product
    <z(x), z(y)> = k(x, L) K_LL^+ k(L, y) equals the kernel if x or y is a landmark. Given L, the
    approximation is deterministic, and K - <z, z> is positive semi-definite.

    Parameters
    ----------
    kernel : kernel, str or callable, default="rbf"
        A kernel of this library or its name ("rbf", "laplacian", "cauchy", "poly" or "exp"); the
        name of another kernel of scikit-learn; a function k(X, Y) of two matrices that returns
        their Gram matrix; or "precomputed". With "precomputed", `fit` takes the Gram matrix of the
        training rows, and `transform` takes the kernel between new rows and all training rows.
    n_components : int, default=1024
        Number of landmarks and of output columns. If there are fewer rows, all of them are used.
    landmarks : {"uniform", "kmeans", "rpcholesky", "leverage"} or array, default="uniform"
        How landmarks are chosen from the rows given to `fit`:

        - "uniform": every row has the same probability.
        - "kmeans": the centers of k-means clusters.
        - "rpcholesky": randomly pivoted Cholesky, which prefers rows that the landmarks chosen so
          far do not explain. It costs less than two transformations of all rows.
        - "leverage": recursive ridge leverage scores.
        - an array of shape (n_landmarks, n_features): these rows are the landmarks. With
          kernel="precomputed" it is an array of indices of training rows. `n_components` is
          ignored.
    unit_norm : bool, default=False
        Whether the centers of "kmeans" are scaled to length 1. Set it if all rows have length 1.
    whiten : bool, default=True
        If False, the output is k(x, L) itself, which saves a matrix product per row. A ridge
        learner gets the same predictions with the penalty alpha b' K_LL b; `penalty` returns K_LL.
    kernel_params : dict or None, default=None
        Keyword arguments for a kernel of scikit-learn or for a function.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. Pass an int for the same landmarks in every call of `fit`.

    Attributes
    ----------
    kernel_ : kernel or "precomputed"
        The kernel, with a number as gamma.
    landmarks_ : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        The landmarks, or their indices with kernel="precomputed". If the features are whitened,
        the landmarks that explain most come first.
    rank_ : int
        The numerical rank of K_LL in the precision of the rows given to `fit`. It is lower than
        the number of landmarks if landmarks repeat or depend on each other; output columns beyond
        the rank are 0.

    See Also
    --------
    FourierFeatures : Faster and independent of the data, for shift-invariant kernels only.

    References
    ----------
    C. Williams and M. Seeger, "Using the Nyström Method to Speed Up Kernel Machines", NIPS 2001.
    K. Zhang, I. Tsang and J. Kwok, "Improved Nyström Low-Rank Approximation and Error Analysis",
    ICML 2008.
    C. Musco and C. Musco, "Recursive Sampling for the Nyström Method", NIPS 2017.
    E. Epperly, J. Tropp and R. Webber, "Embrace rejection: Kernel matrix approximation by
    accelerated randomly pivoted Cholesky", arXiv:2410.03969.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Gaussian, Nystroem
    >>> X = np.random.default_rng(0).random((200, 5))
    >>> kernel = Gaussian(gamma=0.3)
    >>> feature_map = Nystroem(kernel, 50, landmarks="rpcholesky", random_state=0)
    >>> Z = feature_map.fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - kernel(X)).max() < 0.01)
    True
    """

    kernel_: Kernel | str
    landmarks_: Any
    rank_: int
    _whitening: Whitening | None = None
    _gram: np.ndarray | None = None  # K_LL, if the features are not whitened

    def __init__(
        self,
        kernel: Any = "rbf",
        n_components: int = 1024,
        *,
        landmarks: Any = "uniform",
        unit_norm: bool = False,
        whiten: bool = True,
        kernel_params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.unit_norm = unit_norm
        self.whiten = whiten
        self.kernel_params = kernel_params
        self.random_state = random_state

    @available_if(_not_whitened)
    def penalty(self) -> np.ndarray:
        """Return K_LL, so that alpha b' K_LL b is the ridge penalty of weights b on k(x, L).

        It needs `whiten=False`, because weights of whitened columns have the plain ridge penalty.
        """
        check_is_fitted(self, "_n_features_out")
        assert self._gram is not None
        return self._gram.copy()

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        kernel: Kernel | str
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            kernel, X = "precomputed", _square(X)
            landmarks = self._choose_columns(X, rng)
            gram = X[np.ix_(landmarks, landmarks)].astype(np.float64)
        else:
            kernel = any_kernel(self.kernel, self.kernel_params).resolved(X)
            landmarks = self._choose_rows(kernel, X, rng)
            gram = _gram_of(kernel, landmarks)
        _make_symmetric(gram)
        fitted = {"kernel_": kernel, "_n_features_out": int(landmarks.shape[0])}
        if self.whiten:
            whitening, order = Whitening.draw(gram, X.dtype)
            landmarks = landmarks[order]
            drawn = {"_whitening": whitening, "_gram": None, "rank_": whitening.rank}
        else:
            drawn = {"_whitening": None, "_gram": gram, "rank_": _rank(gram, X.dtype)}
        return {**fitted, "landmarks_": landmarks, **drawn}

    def _fill(self, X: Any, out: np.ndarray) -> None:
        known = self._known(X, out.dtype)
        if known is None:
            self._fill_rows(X, out)
            return
        assert self._whitening is not None
        self._whitening.fill_landmarks(known, out)
        rest = known < 0
        if rest.any():
            others = np.empty((np.count_nonzero(rest), out.shape[1]), out.dtype)
            self._fill_rows(X[rest], others)
            out[rest] = others

    def _known(self, X: Any, dtype: np.dtype) -> np.ndarray | None:
        """Return the places of landmarks among the rows, and -1 for other rows.

        The result is None unless so many rows are landmarks that inverting W is cheaper than
        computing their features as usual. That is so for the rows that a map was fitted on.
        """
        whitening, landmarks = self._whitening, self.landmarks_
        enough = max(_MANY_LANDMARKS, landmarks.shape[0] // 2)
        if whitening is None or isinstance(self.kernel_, str) or X.shape[0] < enough:
            return None
        is_dense = not (sparse.issparse(X) or sparse.issparse(landmarks))
        same_type = X.dtype == landmarks.dtype == dtype == whitening.matrix.dtype
        n_known = whitening.n_recoverable
        if not (is_dense and same_type) or n_known < enough:
            return None
        landmarks = landmarks[:n_known]
        places = choose.places_of(X, landmarks)
        return places if np.count_nonzero(places >= 0) >= enough else None

    def _fill_rows(self, X: Any, out: np.ndarray) -> None:
        whitening = None if self._whitening is None else self._whitening.rounded(out.dtype)
        n_columns = out.shape[1] if whitening is None else whitening.n_landmarks
        columns = self._columns(out.dtype, n_columns)

        def task(start: int, stop: int) -> None:
            filled = out[start:stop]
            if n_columns == out.shape[1]:
                values = filled
            else:  # kernels fill whole arrays
                values = np.empty((stop - start, n_columns), out.dtype)
            columns(X[start:stop], values)
            if whitening is not None:
                whitening.fill(values, filled)

        threads = isinstance(self.kernel_, str) or self.kernel_.threads
        row_bytes = out.itemsize * (X.shape[1] + out.shape[1])
        for_each_product_block(task, X.shape[0], row_bytes, threads)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Convert the attributes of a file of version 0.1.0, which had no `Whitening`."""
        triangular = state.pop("_triangular", False)
        if "_values" in state:
            values, matrix = state.pop("_values"), state.pop("_whitening")
            state["_whitening"] = Whitening(values, matrix, triangular)
        return state

    def _check_stored(self) -> None:
        super()._check_stored()
        n, landmarks = self._n_features_out, self.landmarks_
        if isinstance(self.kernel_, str):
            fits = landmarks.shape == (n,) and is_within(landmarks, 0, self.n_features_in_ - 1)
        else:
            fits = landmarks.shape == (n, self.n_features_in_)
        check_facts(self, landmarks_=fits)
        if self._whitening is None:
            check_facts(self, _gram=self._gram is not None and self._gram.shape == (n, n))
        else:
            self._whitening.check(n, n)

    def _onnx(self, g: Any, x: str) -> str:
        if isinstance(self.kernel_, str):  # precomputed
            columns = g.double(g.gather(x, self.landmarks_, axis=1))
        else:
            rows: Any = self.landmarks_
            rows = (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64)
            kernel: Any = self.kernel_
            columns = kernel.onnx(g, g.double(x), rows)
        if self._whitening is not None:
            n = self._n_features_out
            columns = self._whitening.onnx(g, columns, n, n)
        return str(g.single(columns))

    def _columns(self, dtype: np.dtype, n: int) -> Fill:
        """Return a function that writes k(x, L) for the first n landmarks into an array."""
        landmarks = self.landmarks_[:n]
        if not isinstance(self.kernel_, str):
            return self.kernel_.against(landmarks, dtype)

        def fill(X: Any, out: np.ndarray) -> None:
            columns = X[:, landmarks]
            out[:] = columns.toarray() if sparse.issparse(columns) else columns

        return fill

    def _choose_rows(self, kernel: Kernel, X: Any, rng: np.random.Generator) -> Any:
        if not isinstance(self.landmarks, str):
            given = check_array(self.landmarks, accept_sparse="csr", dtype=X.dtype)
            if given.shape[1] != X.shape[1]:
                raise ValueError(
                    f"landmarks have {given.shape[1]} columns, the rows of X have {X.shape[1]}: "
                    f"they must agree."
                )
            return given
        n = self._n_landmarks(X.shape[0])
        if self.landmarks == "kmeans":
            return choose.kmeans(X, n, self.unit_norm, rng)
        return X[self._choose(choose.Candidates.of_rows(kernel, X), n, rng)]

    def _choose_columns(self, gram: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not isinstance(self.landmarks, str):
            given = np.asarray(self.landmarks)
            whole = given.ndim == 1 and given.size and given.dtype.kind in "iu"
            if not whole or given.min() < 0 or given.max() >= len(gram):
                raise ValueError(
                    f"with kernel='precomputed', landmarks must be a list of row numbers from 0 to "
                    f"{len(gram) - 1}."
                )
            return given
        if self.landmarks == "kmeans":
            raise ValueError(
                "landmarks='kmeans' needs rows, but kernel='precomputed' has none; use "
                "'rpcholesky', 'leverage' or 'uniform'."
            )
        n = self._n_landmarks(len(gram))
        return self._choose(choose.Candidates.of_gram(gram), n, rng)

    def _choose(
        self, candidates: choose.Candidates, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        if self.landmarks == "rpcholesky":
            return choose.rpcholesky(candidates, n, rng)
        if self.landmarks == "leverage":
            return choose.leverage(candidates, n, rng)
        return choose.uniform(candidates, n, rng)

    def _n_landmarks(self, n_rows: int) -> int:
        if self.landmarks not in _CHOICES:
            raise ValueError(
                f"landmarks must be one of {', '.join(map(repr, _CHOICES))} or an array of rows, "
                f"got {self.landmarks!r}."
            )
        if self.n_components > n_rows:
            warn(
                f"n_components={self.n_components} is more than the {n_rows} rows; all {n_rows} "
                f"rows are used as landmarks."
            )
        return int(min(self.n_components, n_rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _gram_of(kernel: Kernel, landmarks: Any) -> np.ndarray:
    """Compute K_LL in float64."""
    exact = landmarks.astype(np.float64)
    gram = np.empty((exact.shape[0], exact.shape[0]))
    fill_blocks(kernel.against(exact, exact.dtype), exact, gram, kernel.threads)
    np.fill_diagonal(gram, kernel.diagonal(exact))  # so that rounding does not choose the pivots
    if not np.isfinite(gram).all():
        raise ValueError(
            f"{kernel!r} is not finite for some of the landmarks; scale the rows down."
        )
    return gram


def _rank(gram: np.ndarray, dtype: np.dtype) -> int:
    """Compute the numerical rank of K_LL without changing it."""
    with one_thread_if_few(len(gram)):
        factor, _ = pivoted_factor(gram.copy(), dtype)
    return len(factor)


def _make_symmetric(gram: np.ndarray) -> None:
    """Replace a square matrix by the mean of itself and its transpose, block by block."""
    for start in range(0, len(gram), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        mean = (gram[rows, start:] + gram[start:, rows].T) / 2
        gram[rows, start:] = mean
        gram[start:, rows] = mean.T


def _square(X: Any) -> np.ndarray:
    gram = X.toarray() if sparse.issparse(X) else X
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs the square Gram matrix of the training rows in fit, got "
            f"shape {gram.shape}."
        )
    return np.asarray(gram)
