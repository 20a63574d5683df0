"""Ridge regression on features, from one pass."""

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from craftmaps.learn.base import FLOATS, refuse_text
from craftmaps.learn.codes import Unchanged
from craftmaps.learn.intervals import Conformal, check_coverage
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.one_pass import OnePass
from craftmaps.learn.solvers.solution import warn_of_far_predictions
from craftmaps.learn.stored import check_regressor
from craftmaps.learn.stream import Encode
from craftmaps.learn.uncertainty import Posterior, learned
from craftmaps.storage.packing import storable
from craftmaps.validation import check_squares, generator, is_integer


@storable
class OnePassRegressor(MultiOutputMixin, RegressorMixin, OnePass):
    """Exact ridge regression on the features of a map: min |Y - Z W - c|^2 + alpha |W|^2.

    One pass over the rows keeps sums of size n_components^2, and a sample of the rows by which
    "auto" chooses alpha. The result for an alpha is the same whether rows come at once, in blocks,
    or merged from several learners.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Turns rows into features: a map of this package or any scikit-learn transformer. None
        takes the rows as they are. A clone of it is fitted on a sample of the rows, see `map_rows`;
        wrap a fitted map in `sklearn.frozen.FrozenEstimator` to have it used as it is.
    alpha : "auto", "gcv", float or sequence of floats, default="auto"
        The penalty, on the scale of scikit-learn's Ridge. "auto" takes the least squared error of
        a uniform sample of up to 1,024 rows, each of which is left out in turn; these errors are
        exact and come from the sums. "gcv" takes the minimum of generalized cross-validation,
        which can be far too small where rows differ in leverage. Of a sequence, the alpha with the
        least K-fold error is taken, for which sums are kept per fold.
    fit_intercept : bool, default=True
        Whether to fit c, which is not penalised.
    alpha_per_target : bool, default=False
        Whether each target may get its own alpha.
    n_folds : int, default=5
        Folds for a sequence of alphas; row i of the stream belongs to fold i mod n_folds.
    block_rows : int, default=4096
        Rows whose features are held at a time and enter the sums together.
    map_rows : int or None, default=10000
        The feature map is fitted on a uniform sample of so many rows, chosen by their places in the
        stream; on all rows if there are no more, or if it is None. A map with `n_components` gets
        at least two rows for each of them. `partial_fit` samples its first block, and `fit_blocks`
        takes the first rows of an iterator that can be read only once.
    decay : float or None, default=None
        What the weight of every row is multiplied by whenever another row comes, for streams that
        change: with 0.999, a row counts half after 700 others. None forgets nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
    intercept_ : float or ndarray of shape (n_targets,)
    alpha_ : float or ndarray of shape (n_targets,)
    jitter_ : float or ndarray
        The most that had to be added to `alpha_` because the system was singular to working
        precision; 0 usually, and a warning otherwise. With a given alpha, the jitter of each
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
    Features of float32 rows are float32. The sums of their products are float64; beyond 2048
    features the products within a block of rows are float32, at half the time, which bounds from
    below the alpha that makes a difference. A row of sample_weight 2 counts as two rows, in GCV
    too: give weights of mean 1 there.

    `fit` keeps the rows if they are fewer than their features. Above 16,384 rows the system is
    solved by conjugate gradients to a relative residual of eps^(2/3), and "auto" chooses alpha on a
    10 % hold-out from a grid of two values per decade. An alpha that the rounding errors of such
    rows would hide, 0 for instance, is refused.

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

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets, of the shape of y, and how far off they may be.

        A warning says so if predictions lie more than ten standard deviations of the training
        targets from their mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the standard deviation of the target of each row too, noise included:
            s sqrt(1 + h) for the leverage h of the row and the noise s, the root mean square of
            leave-one-out residuals. The first call factors the system, E^3 / 3 operations for E
            features and 8 E^2 bytes; then a row costs 2 E^2 operations.

        Returns
        -------
        predicted : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape, if `return_std`
        """
        if not return_std:
            predicted = np.concatenate(list(self._predicted(X)))
            warn_of_far_predictions(predicted, self.solution_)
            return self._shaped(predicted)
        posterior, conformal = self._uncertainty()
        self._known(posterior)
        predicted, factors = self._with_factors(X)
        std = factors[:, None] * conformal.deviation().astype(factors.dtype)
        return self._shaped(predicted), self._shaped(std)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """An interval for the target of each row, which contains it with the given probability.

        The interval is f(x) +- q sqrt(1 + h) for the leverage h of the row. q is the quantile of
        the leave-one-out residuals of up to 1,024 rows of the pass, each divided by its own
        sqrt(1 + h). No distribution of the noise is assumed, only that new rows are like those that
        were learned. Other losses than the squared one take q from rows held out, with h = 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, on average over rows. The interval is infinite if there are fewer than
            coverage / (1 - coverage) rows to tell from.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2), lower and upper ends
        """
        check_coverage(coverage)
        _, conformal = self._uncertainty()
        predicted, factors = self._with_factors(X)
        half = factors[:, None] * conformal.bound(coverage).astype(factors.dtype)
        ends = np.stack([predicted - half, predicted + half], axis=-1)
        return np.asarray(ends[:, 0] if self._one_target else ends)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Functions drawn from the posterior, at the rows of X, without noise.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance, Generator or None, default=0
            The same int gives the same functions, whatever rows they are asked for.

        Returns
        -------
        ndarray of shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)
        """
        if not is_integer(n_samples) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer of at least 1, got {n_samples!r}.")
        posterior, conformal = self._uncertainty()
        posterior, noise = self._known(posterior), conformal.deviation()
        rng = generator(random_state)
        drawn = [posterior.draws(n_samples, rng) for _ in range(self._n_targets)]
        solution, parts = self.solution_, []
        for Z in self._features(X):
            centred = Z - posterior.centre
            spread = [
                s * (centred @ W + offsets) for s, (W, offsets) in zip(noise, drawn, strict=True)
            ]
            mean = Z @ solution.coef + solution.intercept
            parts.append((mean[:, :, None] + np.stack(spread, axis=1)).astype(Z.dtype))
        return self._shaped(np.concatenate(parts))

    def _shaped(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(columns[:, 0] if self._one_target else columns)

    def _with_factors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predicted columns, and sqrt(1 + h) for each row."""
        (posterior, conformal), solution = self._uncertainty(), self.solution_
        predicted, factors = [], []
        for Z in self._features(X):
            predicted.append(Z @ solution.coef.astype(Z.dtype) + solution.intercept.astype(Z.dtype))
            h = self._known(posterior).leverages(Z) if conformal.studentized else np.zeros(len(Z))
            factors.append(np.sqrt(1 + h).astype(Z.dtype))
        return np.concatenate(predicted), np.concatenate(factors)

    def _uncertainty(self, *, single: bool = False) -> tuple[Posterior | None, Conformal]:
        stream = self._begun()
        if stream.conformal is None:
            if stream._closed:
                raise ValueError(
                    "this model was saved without what it knows about its errors; save it with "
                    "uncertainty=True or resumable=True."
                )
            with self._draft(same_rows=True) as draft:
                stream = draft._stream
                if stream.conformal is None:  # nor has another thread computed it meanwhile
                    stream.posterior, stream.conformal = learned(draft)
        posterior, conformal = stream.posterior, stream.conformal
        return posterior.single() if single and posterior is not None else posterior, conformal

    def _known(self, posterior: Posterior | None) -> Posterior:
        if posterior is None:
            raise ValueError(
                "standard deviations are known for the squared loss, unless the system is solved "
                "by iteration, as it is for more than 16,384 rows of still more features; use "
                "predict_interval."
            )
        return posterior

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        if reset:
            refuse_text(self, X)
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
        return np.asarray(check_array(y, ensure_2d=False, input_name="y"))

    def _set_targets(self, y: np.ndarray, classes: Any = None) -> None:
        if classes is not None:
            raise ValueError("a regressor has no classes.")
        self._one_target, self._n_targets = y.ndim == 1, 1 if y.ndim == 1 else y.shape[1]

    def _targets(self, y: np.ndarray) -> np.ndarray:
        targets = y[:, None] if y.ndim == 1 else y
        if targets.shape[1] != self._n_targets:
            raise ValueError(f"y has {targets.shape[1]} targets, and had {self._n_targets} before.")
        targets = targets.astype(np.float64)
        check_squares("y", targets)
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
