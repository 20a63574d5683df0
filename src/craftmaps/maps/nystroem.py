"""Nyström features for any kernel, from landmark rows."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, lapack
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from craftmaps.kernels import Kernel, any_kernel
from craftmaps.kernels.pairs import Fill
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts import landmarks as choose
from craftmaps.storage.packing import storable
from craftmaps.threads import for_each_product_block

_CHOICES = ("uniform", "kmeans", "rpcholesky", "leverage")
_MANY = 4096  # landmarks beyond which eigenvectors are dear
_BLOCK = 1024  # rows of K_LL that are copied at a time, columns of a triangle that are multiplied
_CLEAR = 64  # times the last bit: a squared pivot below that may be rounding
_STRIP_BYTES = 1 << 28  # of K_LL that are filled at a time


def _not_whitened(feature_map: Any) -> bool:
    return not feature_map.whiten


@storable
class Nystroem(FeatureMap):
    """Nyström features: z(x) = K_LL^(-1/2) k(x, L), where L are landmark rows.

    <z(x), z(y)> = k(x, L) K_LL^+ k(L, y) is the kernel itself wherever x or y is a landmark, and
    falls short of it elsewhere: the approximation is deterministic given L, and K - <z, z> is
    positive semi-definite.

    Parameters
    ----------
    kernel : kernel, str or callable, default="rbf"
        A kernel of this library or one of its names "rbf", "laplacian", "cauchy", "poly" and
        "exp"; the name of another kernel of scikit-learn; a function k(X, Y) of two matrices that
        returns their Gram matrix; or "precomputed", for which `fit` takes the Gram matrix of the
        training rows and `transform` the kernel between new rows and all training rows.
    n_components : int, default=1024
        Number of landmarks and of output columns. If there are fewer rows, all of them are used.
    landmarks : {"uniform", "kmeans", "rpcholesky", "leverage"} or array, default="uniform"
        How landmarks are chosen from the rows given to `fit`:

        - "uniform": each row is as likely as any other.
        - "kmeans": the centres of k-means clusters.
        - "rpcholesky": randomly pivoted Cholesky, which takes rows that those before it do not
          explain. Costs less than two transformations of all rows.
        - "leverage": recursive ridge leverage scores.
        - an array of shape (n_landmarks, n_features): rows of your own; with
          kernel="precomputed", the indices of training rows. `n_components` is then not used.
    unit_norm : bool, default=False
        Scale the centres of "kmeans" to length 1, for data of which all rows have length 1.
    whiten : bool, default=True
        If False, the output is k(x, L) itself, which saves a matrix product per row. A ridge
        learner then gets the same predictions with the penalty alpha b' K_LL b, where K_LL is
        returned by `penalty`.
    kernel_params : dict or None, default=None
        Keyword arguments of a kernel of scikit-learn or of a function.
    random_state : int, RandomState instance, Generator or None, default=None

    Attributes
    ----------
    kernel_ : kernel or "precomputed"
        The kernel, its gamma a number.
    landmarks_ : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        The landmarks; with kernel="precomputed" their indices.
    rank_ : int
        The numerical rank of K_LL in the precision of the rows given to `fit`. Landmarks that
        repeat or depend on each other make it less than their number. Output columns are ordered
        by eigenvalue, and those beyond the rank are 0. More than 4,096 landmarks are whitened by
        a pivoted Cholesky factor instead: `landmarks_` and the columns have the order of its
        pivots.

    See Also
    --------
    FourierFeatures : faster, independent of the data, and for shift-invariant kernels only.

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

    _triangular: bool = False  # the whitening, of files that do not say

    kernel_: Kernel | str
    landmarks_: Any
    rank_: int
    _gram: Any = None  # if the features are not whitened
    _values: Any = None  # if they are
    _whitening: Any = None

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
        """K_LL, for which alpha b' K_LL b is the ridge penalty of weights b on k(x, L).

        Only with `whiten=False`: the weights of whitened columns have the plain one.
        """
        check_is_fitted(self, "_n_features_out")
        gram: np.ndarray = self._gram.copy()
        return gram

    def _draw(self, X: Any, rng: np.random.Generator) -> None:
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        if precomputed:
            self.kernel_ = "precomputed"
            X = _square(X)
            self.landmarks_ = self._choose_columns(X, rng)
            gram = X[np.ix_(self.landmarks_, self.landmarks_)].astype(np.float64)
        else:
            kernel = any_kernel(self.kernel, self.kernel_params).resolved(X)
            self.kernel_ = kernel
            self.landmarks_ = self._choose_rows(kernel, X, rng)
            n = self.landmarks_.shape[0]
            gram = np.empty((n, n))
            exact = self.landmarks_.astype(np.float64)
            fill = kernel.against(exact, exact.dtype)
            step = max(1, _STRIP_BYTES // gram.strides[0])  # kernels take copies of what they fill
            for start in range(0, n, step):
                fill(exact[start : start + step], gram[start : start + step])
        self._n_features_out = self.landmarks_.shape[0]
        _make_symmetric(gram)
        if self.whiten:
            self._find_whitening(gram, X.dtype)
            return
        # Eigenvectors take far longer than a Cholesky factor, and nothing needs them.
        self._gram = gram
        largest = np.abs(gram).sum(axis=0).max()  # at least the largest eigenvalue
        least = _smallest(len(gram), X.dtype) * largest
        _, _, rank, _ = lapack.dpstrf(gram, tol=least, lower=1)
        self.rank_ = int(rank)

    def _find_whitening(self, gram: np.ndarray, dtype: np.dtype) -> None:
        """K_LL^(-1/2) up to a rotation, in the precision of the rows given to `fit`."""
        self._triangular = len(gram) > _MANY
        if self._triangular:
            self._values, inverse, order = _by_pivots(gram)
            self.rank_ = self._rank(dtype)
            self.landmarks_ = self.landmarks_[order]
            self._whitening = np.zeros((len(gram), self.rank_), dtype=dtype)
            for i in range(self.rank_):
                self._whitening[i, i:] = inverse[i, i : self.rank_]
            return
        self._values, vectors = _by_eigenvalue(gram)
        self.rank_ = self._rank(dtype)
        known = slice(self.rank_)
        self._whitening = (vectors[:, known] / np.sqrt(self._values[known])).astype(dtype)

    def _rank(self, dtype: np.dtype) -> int:
        """How many eigenvalues or pivots of K_LL stand out of the rounding errors of k(x, L)."""
        n = self._n_features_out
        least = _smallest(n, dtype) if n <= _MANY else _smallest_pivot(n, dtype)
        return int(np.count_nonzero(self._values > least * self._values.max(initial=0.0)))

    def _fill(self, X: Any, out: np.ndarray) -> None:
        columns = self._columns(out.dtype)
        if self.whiten:
            rank = min(self.rank_, self._rank(out.dtype))
            whitening = self._whitening[:, :rank].astype(out.dtype, copy=False)
            product = _times_upper if self._triangular else np.matmul

        def task(start: int, stop: int) -> None:
            filled = out[start:stop]
            if not self.whiten:
                columns(X[start:stop], filled)
                return
            values = np.empty_like(filled)
            columns(X[start:stop], values)
            product(values, whitening, filled[:, :rank])
            filled[:, rank:] = 0

        threads = isinstance(self.kernel_, str) or self.kernel_.threads
        row_bytes = out.itemsize * (X.shape[1] + out.shape[1])
        for_each_product_block(task, X.shape[0], row_bytes, threads)

    def _columns(self, dtype: np.dtype) -> Fill:
        """A function that writes k(x, L) of rows x into a buffer."""
        if not isinstance(self.kernel_, str):
            return self.kernel_.against(self.landmarks_, dtype)

        def fill(X: Any, out: np.ndarray) -> None:
            columns = X[:, self.landmarks_]
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
                "landmarks='kmeans' needs rows, and kernel='precomputed' has none; use "
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
            warnings.warn(
                f"n_components={self.n_components} landmarks were asked of {n_rows} rows; all "
                f"{n_rows} are used.",
                UserWarning,
                stacklevel=5,
            )
        return int(min(self.n_components, n_rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _by_eigenvalue(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, the largest first, and their vectors.

    Eigenvectors have a sign that rounding decides; the largest entry is made positive.
    """
    values, vectors = eigh(gram)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return values[::-1], (vectors * np.sign(largest))[:, ::-1]


def _by_pivots(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared pivots, the largest first, U^-1 of the Cholesky factor U' U = P' K_LL P, and P.

    The first columns of U^-1 are those of the first pivots alone, so that, as with eigenvectors,
    the last ones can be left out. All is done in the memory of `gram`, which for many landmarks
    is most of what there is; below the diagonal U^-1 is not 0 but what was there before.
    """
    factor, order, rank, _ = lapack.dpstrf(gram.T, tol=-1.0, lower=0, overwrite_a=1)
    values = factor.diagonal()[:rank] ** 2
    factor[rank:, rank:] = 0  # what pivots left over; any triangle with a diagonal will do
    factor[range(rank, len(gram)), range(rank, len(gram))] = 1
    inverse, _ = lapack.dtrtri(factor, lower=0, overwrite_c=1)
    return values, inverse, order - 1


def _times_upper(left: np.ndarray, upper: np.ndarray, out: np.ndarray) -> None:
    """left @ upper without most of the zeros below the diagonal of `upper`."""
    for start in range(0, upper.shape[1], _BLOCK):
        stop = start + _BLOCK
        np.matmul(left[:, :stop], upper[:stop, start:stop], out=out[:, start:stop])


def _make_symmetric(gram: np.ndarray) -> None:
    """Replace a square matrix by the mean of it and its transpose, by blocks."""
    for start in range(0, len(gram), _BLOCK):
        rows = slice(start, start + _BLOCK)
        mean = (gram[rows, start:] + gram[start:, rows].T) / 2
        gram[rows, start:] = mean
        gram[start:, rows] = mean.T


def _smallest(n_landmarks: int, dtype: np.dtype) -> float:
    """The share of the largest eigenvalue of K_LL from which on others are rounding errors."""
    return max(n_landmarks * float(np.finfo(np.float64).eps), float(np.finfo(dtype).eps))


def _smallest_pivot(n_landmarks: int, dtype: np.dtype) -> float:
    """The share of the largest squared pivot of K_LL from which on others are rounding errors.

    An eigenvector averages the errors of all entries of k(x, L) and a pivot does not, so that more
    than the last bit is asked of it.
    """
    return max(n_landmarks * float(np.finfo(np.float64).eps), _CLEAR * float(np.finfo(dtype).eps))


def _square(X: Any) -> np.ndarray:
    gram = X.toarray() if sparse.issparse(X) else X
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs the square Gram matrix of the training rows in fit, got "
            f"shape {gram.shape}."
        )
    return np.asarray(gram)
