"""A map that transforms rows by a metric learned from targets."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.preprocessing import normalize
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from craftmaps.kernels import Gaussian
from craftmaps.kernels.gradients import gradient_products
from craftmaps.kernels.learned import centred_targets
from craftmaps.kernels.ridge import Ridge, best_ridge
from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.wrapped import WrappedMap, onnx_unit_rows
from craftmaps.storage.packing import storable
from craftmaps.validation import is_number, warn_renamed

_AUTO_POWERS = (0.0, 0.125, 0.25)
_MIN_ROWS = 30
_MAX_COLUMNS = 4096
_METRIC_ROWS = 2000  # rows from which the metric is learned
_JUDGED_ROWS = 8000  # rows for fitting the inner map when powers are compared
_HELD_OUT_ROWS = 2000  # rows for measuring the errors of powers and penalties
# The inner map that compares powers has at most the first number of components, but at least the
# second number more than X has columns.
_MAX_PROBE_COMPONENTS = 1024
_MIN_RANDOM_COMPONENTS = 64
_MAX_TARGETS = 32  # with more targets, gradients of random sums of targets are used
_N_STEPS = 2
_GAMMA_FACTORS = (2.0, 8.0, 32.0)  # above 1, because gamma="median" is often too smooth


@storable
class MetricMap(WrappedMap):
    """Features of rows transformed by a metric that is learned from targets.

    The features are z(R x / |R x|). The matrix R stretches columns and combinations of columns
    along which the targets change, and shrinks the others, so that the inner map spends its
    features on what matters. R is G^p for the average outer product of gradients,
    G = mean_x sum_c grad f_c(x) grad f_c(x)^T, where f_c predicts target c by kernel ridge
    regression on up to 2,000 rows. It is computed twice, the second time from rows transformed by
    the first R.

    Parameters
    ----------
    feature_map : map of this package
        The inner map, which gets the rows R x.
    power : float or "auto", default="auto"
        The exponent p, from 0 (rows do not change) to 1. "auto" takes the value among 0, 1/8 and
        1/4 with which the inner map, limited to 1,024 components, best predicts the targets of
        held-out rows. Try a larger value if the targets depend on few directions.
    unit_norm : bool, default=True
        Whether each row R x is divided by its length.

    Attributes
    ----------
    feature_map_ : map
        The inner map, fitted on rows R x.
    power_ : float
        The exponent p; 0 if there are fewer than 30 rows or the targets do not vary.
    metric_root_ : ndarray of shape (n_features, n_features), or None
        The matrix R, scaled so that rows keep their mean squared length. None if p is 0.

    See Also
    --------
    ScaledMap : Scales columns without targets. Put it around a MetricMap if columns have different
        units.

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
    metric_root_: np.ndarray | None

    def __init__(
        self, feature_map: Any, *, power: float | str = "auto", unit_norm: bool = True
    ) -> None:
        self.feature_map = feature_map
        self.power = power
        self.unit_norm = unit_norm

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        powers = self._powers()
        if y is None and powers != (0.0,):
            raise ValueError(
                "MetricMap requires y to be passed, but the target y is None: call fit(X, y), or "
                "set power=0 to leave the rows unchanged."
            )
        if X.shape[1] > _MAX_COLUMNS:
            raise ValueError(
                f"MetricMap learns a square matrix for at most {_MAX_COLUMNS:,} columns, got "
                f"{X.shape[1]:,}; reduce them first, for example with TruncatedSVD."
            )
        if y is not None:
            y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
            check_consistent_length(X, y)
        power, root = 0.0, None
        if powers != (0.0,) and X.shape[0] >= _MIN_ROWS:
            power, root = self._chosen(powers, X, y, rng)
        inside = self._fitted_inside(_seen(X, root, self.unit_norm), y, X.dtype)
        return {"power_": power, "metric_root_": root, **inside}

    def _powers(self) -> tuple[float, ...]:
        if isinstance(self.power, str) and self.power == "auto":
            return _AUTO_POWERS
        power: Any = self.power
        if not is_number(power) or not 0 <= power <= 1:
            raise ValueError(f"power must be 'auto' or a number from 0 to 1, got {power!r}.")
        return (float(power),)

    def _chosen(
        self, powers: tuple[float, ...], X: Any, y: np.ndarray, rng: np.random.Generator
    ) -> tuple[float, np.ndarray | None]:
        """Return the power with the lowest error on held-out rows, and its root."""
        order = rng.permutation(X.shape[0])
        n_left = min(_HELD_OUT_ROWS, X.shape[0] // 3)
        left, kept = order[:n_left], order[n_left:][:_JUDGED_ROWS]
        Y = centred_targets(y[np.concatenate([left, kept])])
        Y_left, Y = Y[:n_left], Y[n_left:]
        learned = kept[:_METRIC_ROWS]
        roots = _roots(powers, _dense(X[learned]), Y[:_METRIC_ROWS], _dense(X[left]), Y_left, rng)
        if len(roots) == 1:
            return roots[0]
        most = max(_MAX_PROBE_COMPONENTS, X.shape[1] + _MIN_RANDOM_COMPONENTS)
        large = self.n_components > most
        probe = self.feature_map._smaller(most) if large else self.feature_map

        def error(root: np.ndarray | None) -> float:
            features = clone(probe).fit(_seen(X[kept], root, self.unit_norm), y[kept])
            Z, Z_left = (
                features.transform(_seen(X[rows], root, self.unit_norm)).astype(np.float64)
                for rows in (kept, left)
            )
            mean = Z.mean(axis=0)
            Z -= mean
            return _held_out(Z.T @ Z, Z.T @ Y, Z_left - mean, Y_left).score

        return min(roots, key=lambda power_and_root: error(power_and_root[1]))

    def _prepared(self, X: Any) -> Any:
        return _seen(X, self.metric_root_, self.unit_norm)

    @property
    def root_(self) -> np.ndarray | None:
        """Deprecated name of `metric_root_`."""
        warn_renamed("MetricMap.root_", "metric_root_")
        return self.metric_root_

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Rename the attributes of a file of version 0.1.0."""
        if "root_" in state:
            state["metric_root_"] = state.pop("root_")
        return state

    def _check_stored(self) -> None:
        super()._check_stored()
        root, square = self.metric_root_, (self.n_features_in_, self.n_features_in_)
        check_facts(self, metric_root_=root is None or root.shape == square)

    def _onnx(self, g: Any, x: str) -> str:
        seen = g.double(x)
        if self.metric_root_ is not None:
            seen = g.add("MatMul", seen, self.metric_root_)
        return self._onnx_inside(g, onnx_unit_rows(g, seen) if self.unit_norm else seen)

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
    """Return R for each power; each step takes gradients at rows R x of the step before.

    The width of the Gaussian kernel and the penalty of each f minimize the error on the held-out
    rows.
    """
    signs = None
    if Y.shape[1] > _MAX_TARGETS:
        # Random sums of gradients have the same outer product on average.
        signs = rng.choice([-1.0, 1.0], size=(Y.shape[1], _MAX_TARGETS))

    def gradients(root: np.ndarray | None) -> np.ndarray:
        Z, Z_left = (X, X_left) if root is None else (X @ root, X_left @ root)
        gamma = float(Gaussian("median").resolved(Z).gamma)
        kernels = [Gaussian(factor * gamma) for factor in _GAMMA_FACTORS]
        ridges = [_held_out(kernel(Z), Y, kernel(Z_left, Z), Y_left) for kernel in kernels]
        best = int(np.argmin([ridge.score for ridge in ridges]))
        coef = ridges[best].coef if signs is None else ridges[best].coef @ signs
        products = gradient_products(kernels[best], Z, coef, full=True)
        return products if root is None else root @ products @ root

    first = gradients(None)
    roots: list[tuple[float, np.ndarray | None]] = []
    for power in powers:
        root = _root(first, power, X)
        for _ in range(_N_STEPS - 1):
            root = None if root is None else _root(gradients(root), power, X)
        roots.append((0.0 if root is None else power, root))
    return roots


def _root(products: np.ndarray, power: float, X: np.ndarray) -> np.ndarray | None:
    """Return products^power, scaled to keep the mean squared length of X; None if power is 0."""
    values, vectors = eigh(products)
    if power == 0 or values[-1] <= 0:
        return None
    root = (vectors * (np.maximum(values, 0) / values[-1]) ** power) @ vectors.T
    lengths = float(np.linalg.norm(X @ root))
    return np.asarray(root * (float(np.linalg.norm(X)) / lengths)) if lengths else None


def _held_out(A: np.ndarray, B: np.ndarray, C: np.ndarray, Y_left: np.ndarray) -> Ridge:
    """Minimize the mean squared error of C W with W = (A + alpha I)^-1 B."""
    return best_ridge(A, B, lambda W: float(np.mean((C @ W - Y_left) ** 2)))


def _seen(X: Any, root: np.ndarray | None, unit_norm: bool) -> Any:
    """Return the rows R x, divided by their lengths if `unit_norm`."""
    if root is not None:
        X = np.asarray(X @ root.astype(X.dtype))
    return normalize(X) if unit_norm else X


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
