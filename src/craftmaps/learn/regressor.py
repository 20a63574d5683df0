"""Ridge regression on features, from one pass."""

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from craftmaps.learn.bands import Bands
from craftmaps.learn.codes import Encode, Unchanged
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.row_checks import checked_targets, refuse_text
from craftmaps.learn.stored import check_regressor
from craftmaps.storage.packing import storable
from craftmaps.validation import FLOATS, check_squares

_LEAST_TARGET = 1e-140  # squares of smaller targets have few digits in float64, or are 0


@storable
class OnePassRegressor(MultiOutputMixin, RegressorMixin, Bands):
    """Predict numbers by exact ridge regression on the features of a map, in one pass.

    The objective is |Y - Z W - c|^2 + alpha |W|^2. One pass over the rows keeps sums of size
    n_components^2, and a sample of rows to choose alpha. For a given alpha, the result is the same
    whether rows come at once, in blocks, or merged from several learners.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Turns rows into features: a map of this package or any scikit-learn transformer. None
        uses the rows themselves. A clone is fitted on a sample of the rows, see `map_rows`. To use
        a fitted map without fitting it again, wrap it in `sklearn.frozen.FrozenEstimator`.
    alpha : "auto", "gcv", float or sequence of floats, default="auto"
        The penalty, on the scale of scikit-learn's Ridge. "auto" minimizes the exact
        leave-one-out squared error of a uniform sample of up to 1,024 rows, which is computed from
        the sums. "gcv" minimizes generalized cross-validation, which can be far too small where
        rows differ in leverage. With a sequence, the alpha with the smallest K-fold error is
        chosen, and sums are kept per fold.
    fit_intercept : bool, default=True
        Whether to fit the intercept c, which is not penalized.
    alpha_per_target : bool, default=False
        Whether each target may get its own alpha.
    n_folds : int, default=5
        Number of folds for a sequence of alphas. Row i of the stream is in fold i mod n_folds.
    block_rows : int, default=4096
        Number of rows whose features are held in memory and added to the sums together.
    map_rows : int or None, default=10000
        Number of rows that the feature map is fitted on, a uniform sample chosen by place in the
        stream. None uses all rows. A map with `n_components` gets at least two rows per component.
        `partial_fit` samples its first block, and `fit_blocks` takes the first rows of an iterator
        that can be read only once.
    decay : float or None, default=None
        Factor on the weight of every earlier row when another row arrives, for streams that
        change. With 0.999, a row counts half after 700 others. None forgets nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
    intercept_ : float or ndarray of shape (n_targets,)
    alpha_ : float or ndarray of shape (n_targets,)
    jitter_ : float or ndarray
        The largest amount added to `alpha_` because the system was singular to working precision.
        It is usually 0; otherwise there is a warning. With a given alpha, the jitter of each
        feature is proportional to its squared norm.
    condition_ : float or ndarray
        Condition number of the system that was solved: LAPACK's estimate in the 1-norm for
        features of equal lengths, or the ratio of extreme eigenvalues if they are known. After
        conjugate gradients it is an estimate from a sample of the rows.
    alphas_, scores_ : ndarray of shape (n_alphas,) and (n_alphas, n_targets), or None
        The alphas that were tried, and the score of each: GCV, the loss of rows left out, or the
        mean squared K-fold error. The Brier score of a classifier is one column for all targets.
    solution_ : Solution
        Coefficients of shape (n_components, n_targets) and how they were found.
    feature_map_ : fitted transformer or None
    n_samples_seen_ : int

    Notes
    -----
    Features of float32 rows are float32, and the sums of their products are float64. Beyond 2048
    features, products within a block of rows are float32, which takes half the time but limits how
    small an effective alpha can be. A row with sample_weight 2 counts as two rows, also in GCV,
    which therefore needs weights with mean 1.

    `fit` keeps the rows if they are fewer than their features. Above 16,384 rows the system is
    solved by conjugate gradients to a relative residual of eps^(2/3), and "auto" chooses alpha on a
    10% hold-out from a grid of two values per decade. An alpha below the rounding errors, such as
    0, raises an error.

    A map may have a method `penalty()` that returns a positive semi-definite matrix P. Then
    alpha w^T P w is the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import OnePassRegressor, Polynomial, RandomMaclaurin
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 5)) / 3
    >>> y = X[:, 0] * X[:, 1] + 0.01 * rng.standard_normal(2000)
    >>> feature_map = RandomMaclaurin(Polynomial(degree=2), n_components=200, random_state=0)
    >>> model = OnePassRegressor(feature_map).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.99
    """

    _one_target: bool
    _n_targets: int

    def __init__(
        self,
        feature_map: Any = None,
        *,
        alpha: Any = "auto",
        fit_intercept: bool = True,
        alpha_per_target: bool = False,
        n_folds: int = 5,
        block_rows: int = 4096,
        map_rows: int | None = DEFAULT_MAP_ROWS,
        decay: float | None = None,
    ) -> None:
        self.feature_map = feature_map
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.alpha_per_target = alpha_per_target
        self.n_folds = n_folds
        self.block_rows = block_rows
        self.map_rows = map_rows
        self.decay = decay

    @property
    def coef_(self) -> np.ndarray:
        coef = self.solution_.coef
        return np.asarray(coef[:, 0] if self._one_target else coef.T)

    @property
    def intercept_(self) -> Any:
        intercept = self.solution_.intercept
        return float(intercept[0]) if self._one_target else intercept

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        if reset:
            refuse_text(self, X)
        y = checked_targets(self, y)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=FLOATS,
            multi_output=True,
            y_numeric=True,
            reset=reset,
        )
        return X, y

    def _valid_targets(self, y: Any) -> np.ndarray:
        y = checked_targets(self, y)
        return np.asarray(check_array(y, ensure_2d=False, input_name="y"))

    def _set_targets(self, y: np.ndarray, classes: Any = None) -> None:
        if classes is not None:
            raise ValueError("a regressor has no classes.")
        self._one_target, self._n_targets = y.ndim == 1, 1 if y.ndim == 1 else y.shape[1]

    def _targets(self, y: np.ndarray) -> np.ndarray:
        targets = y[:, None] if y.ndim == 1 else y
        if targets.shape[1] != self._n_targets:
            raise ValueError(f"y has {targets.shape[1]} targets, but had {self._n_targets} before.")
        targets = targets.astype(np.float64)
        check_squares("y", targets)
        largest = float(np.abs(targets).max(initial=0.0))
        if 0 < largest < _LEAST_TARGET:
            raise ValueError(
                f"y has values up to {largest:.3g}, whose squares are too small for "
                f"{targets.dtype}; multiply them by a large number first."
            )
        return targets

    @property
    def _encode(self) -> Encode:
        return Unchanged()

    @property
    def _n_columns(self) -> int:
        return self._n_targets

    def _check_mergeable(self, other: "OnePassRegressor") -> None:
        if other._n_targets != self._n_targets:
            raise ValueError(
                f"the two regressors have {self._n_targets} and {other._n_targets} targets, so "
                f"their sums do not add; give both the same targets."
            )

    def _check_stored(self) -> None:
        check_regressor(self)
