"""A map of rows seen through a metric that is learnt from targets, as one transformer."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, lapack
from sklearn.base import clone
from sklearn.preprocessing import normalize
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from craftmaps.kernels import Gaussian
from craftmaps.kernels.learned import centred_targets
from craftmaps.maps.wrapped import WrappedMap
from craftmaps.storage.packing import storable
from craftmaps.validation import is_number

_POWERS = (0.0, 0.125, 0.25)  # what "auto" chooses from
_LEAST_ROWS = 30
_MOST_COLUMNS = 4096
_LEARNT, _JUDGED, _LEFT = 2000, 8000, 2000  # rows: of the metric, of the choice, and to judge by
_MOST_COMPONENTS = 1024  # of the maps that powers are judged with,
_ROOM = 64  # or as many beside those that H0/1 gives to the columns themselves
_MOST_TARGETS = 32  # whose gradients are taken one by one
_STEPS = 2
_WIDTHS = (2.0, 8.0, 32.0)  # times the gamma of the median distance, often too smooth a kernel
_ALPHAS = 10.0 ** np.arange(-7, 2)  # relative to the mean of the diagonal


@storable
class MetricMap(WrappedMap):
    """Features of rows seen through a metric: z(R x / |R x|), R learnt from rows and targets.

    Columns, and combinations of them, along which the targets change are stretched, the others
    shrunk: the features of the map inside are spent on what matters. R is G^p for the average
    outer product of gradients, G = mean_x sum_c grad f_c(x) grad f_c(x)^T, where f_c predicts
    target c by kernel ridge regression on up to 2,000 of the rows; it is found twice, the second
    time with rows seen through the first R.

    Parameters
    ----------
    feature_map : map of this package
        What the rows R x are given to.
    power : float or "auto", default="auto"
        p, from 0 (rows stay as they are) to 1. "auto" takes that of 0, 1/8 and 1/4 with which
        the map inside, of up to 1,024 components, predicts targets of rows left out best. More
        may be better where few directions decide.
    unit_norm : bool, default=True
        Whether each row is then divided by its length.

    Attributes
    ----------
    feature_map_ : the map, fitted on rows R x
    power_ : float
        p; 0 where there are fewer than 30 rows or targets do not vary.
    root_ : ndarray of shape (n_features, n_features), or None
        R, symmetric, scaled so that rows keep their mean squared length; None if p is 0.

    See Also
    --------
    ScaledMap : scales columns without looking at targets. Put it around this one where columns
        have different units.

    References
    ----------
    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models, Science 383, 2024.

    Examples
    --------
    Two of ten columns decide:

    >>> import numpy as np
    >>> from craftmaps import CraftMap, MetricMap, OnePassClassifier, Polynomial
    >>> X = np.random.default_rng(0).normal(size=(3000, 10))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> inner = CraftMap(Polynomial(degree=4), n_components=256, random_state=0)
    >>> def score(feature_map):
    ...     return OnePassClassifier(feature_map).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])
    >>> bool(score(inner) < 0.8 < 0.9 < score(MetricMap(inner)))
    True
    """

    power_: float
    root_: np.ndarray | None

    def __init__(
        self, feature_map: Any, *, power: float | str = "auto", unit_norm: bool = True
    ) -> None:
        self.feature_map = feature_map
        self.power = power
        self.unit_norm = unit_norm

    def _learn(self, X: Any, y: Any, rng: np.random.Generator) -> None:
        powers = self._powers()
        if y is None and powers != (0.0,):
            raise ValueError(
                "MetricMap requires y to be passed, but the target y is None: call fit(X, y), or "
                "set power=0 to leave rows as they are."
            )
        if X.shape[1] > _MOST_COLUMNS:
            raise ValueError(
                f"MetricMap learns a matrix of columns by columns, for at most {_MOST_COLUMNS:,} "
                f"columns, got {X.shape[1]:,}; reduce them first, for example by TruncatedSVD."
            )
        if y is not None:
            y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
            check_consistent_length(X, y)
        self.power_ = 0.0
        self.root_ = None
        if powers != (0.0,) and X.shape[0] >= _LEAST_ROWS:
            self._choose(powers, X, y, rng)
        self._fit_inside(X, y)

    def _powers(self) -> tuple[float, ...]:
        if isinstance(self.power, str) and self.power == "auto":
            return _POWERS
        power: Any = self.power
        if not is_number(power) or not 0 <= power <= 1:
            raise ValueError(f"power must be 'auto' or a number from 0 to 1, got {power!r}.")
        return (float(power),)

    def _choose(
        self, powers: tuple[float, ...], X: Any, y: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Set root and power to those with the least error on rows left out."""
        order = rng.permutation(X.shape[0])
        n_left = min(_LEFT, X.shape[0] // 3)
        left, kept = order[:n_left], order[n_left:][:_JUDGED]
        Y = centred_targets(y[np.concatenate([left, kept])])
        Y_left, Y = Y[:n_left], Y[n_left:]
        roots = _roots(powers, _dense(X[kept[:_LEARNT]]), Y[:_LEARNT], _dense(X[left]), Y_left, rng)
        if len(roots) == 1:
            self.power_, self.root_ = roots[0]
            return
        most = max(_MOST_COMPONENTS, X.shape[1] + _ROOM)
        large = self.n_components > most
        probe = self.feature_map._smaller(most) if large else self.feature_map

        def error(root: np.ndarray | None) -> float:
            features = clone(probe).fit(self._seen(X[kept], root), y[kept])
            Z, Z_left = (
                features.transform(self._seen(X[rows], root)).astype(np.float64)
                for rows in (kept, left)
            )
            mean = Z.mean(axis=0)
            Z -= mean
            return _best_ridge(Z.T @ Z, Z.T @ Y, Z_left - mean, Y_left)[0]

        self.power_, self.root_ = min(roots, key=lambda found: error(found[1]))

    def _changed(self, X: Any) -> Any:
        return self._seen(X, self.root_)

    def _seen(self, X: Any, root: np.ndarray | None) -> Any:
        """R X, with rows of length 1 if so asked for."""
        if root is not None:
            X = np.asarray(X @ root.astype(X.dtype))
        return normalize(X) if self.unit_norm else X

    def is_sound(self) -> bool:
        square = (self.n_features_in_, self.n_features_in_)
        return super().is_sound() and (self.root_ is None or self.root_.shape == square)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _roots(
    powers: tuple[float, ...],
    X: np.ndarray,
    Y: np.ndarray,
    X_left: np.ndarray,
    Y_left: np.ndarray,
    rng: np.random.Generator,
) -> list[tuple[float, np.ndarray | None]]:
    """R for each power; the gradients of the last step are those with rows R x of the one before.

    The width of the Gaussian kernel and the penalty of each f are those with the least error on
    the rows left out.
    """
    signs = None
    if Y.shape[1] > _MOST_TARGETS:
        # the outer products of random sums of gradients have the same mean
        signs = rng.choice([-1.0, 1.0], size=(Y.shape[1], _MOST_TARGETS))

    def gradients(root: np.ndarray | None) -> np.ndarray:
        Z, Z_left = (X, X_left) if root is None else (X @ root, X_left @ root)
        gamma = float(Gaussian("median").resolved(Z).gamma)
        error = np.inf
        for kernel in (Gaussian(factor * gamma) for factor in _WIDTHS):
            gram = kernel(Z)
            missed, solved = _best_ridge(gram, Y, kernel(Z_left, Z), Y_left)
            if missed < error:
                error, coef, K = missed, solved, gram
        found = gradient_products(Z, K, coef if signs is None else coef @ signs)
        return found if root is None else root @ found @ root

    first = gradients(None)
    found: list[tuple[float, np.ndarray | None]] = []
    for power in powers:
        root = _root(first, power, X)
        for _ in range(_STEPS - 1):
            root = None if root is None else _root(gradients(root), power, X)
        found.append((0.0 if root is None else power, root))
    return found


def gradient_products(X: np.ndarray, K: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """sum_x sum_c grad f_c(x) grad f_c(x)^T over rows x of X, divided by (2 gamma)^2.

    f_c(x) = sum_j coef_jc k(x, x_j) for a Gaussian kernel with the Gram matrix K has the gradient
    -2 gamma sum_j coef_jc k(x, x_j) (x - x_j).
    """
    found = np.zeros((X.shape[1], X.shape[1]))
    for column in coef.T:
        weights = K * column
        slopes = weights.sum(axis=1)[:, None] * X - weights @ X
        found += slopes.T @ slopes
    return found


def _root(products: np.ndarray, power: float, X: np.ndarray) -> np.ndarray | None:
    """products^power, with the mean squared length of rows X; None where nothing is to change."""
    values, vectors = eigh(products)
    if power == 0 or values[-1] <= 0:
        return None
    root = (vectors * (np.maximum(values, 0) / values[-1]) ** power) @ vectors.T
    lengths = float(np.linalg.norm(X @ root))
    return np.asarray(root * (float(np.linalg.norm(X)) / lengths)) if lengths else None


def _best_ridge(
    A: np.ndarray, B: np.ndarray, C: np.ndarray, Y_left: np.ndarray
) -> tuple[float, np.ndarray]:
    """The least mean squared error of C (A + alpha I)^-1 B, and the right factor of it."""
    best, diagonal = (np.inf, np.zeros_like(B)), np.diag_indices(len(A))
    for alpha in _ALPHAS * (np.mean(A[diagonal]) or 1.0):
        shifted = A.copy()
        shifted[diagonal] += alpha
        factor, failed = lapack.dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            coef, _ = lapack.dpotrs(factor, B, lower=1)
            error = float(np.mean((C @ coef - Y_left) ** 2))
            if error < best[0]:
                best = error, coef
    return best


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
