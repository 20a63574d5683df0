"""A kernel regressor with a squared, robust or quantile loss."""

from typing import Any

import numpy as np

from craftmaps.learn.few_pass_fit import JUDGING_TOLERANCE, Fit
from craftmaps.learn.intervals import Conformal
from craftmaps.learn.kernel_machine import KernelMachine
from craftmaps.learn.local import MANY_NUMBERS
from craftmaps.learn.losses import HuberLoss, Loss, QuantileLoss
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.one_pass import Loss as Scores
from craftmaps.learn.regressor import OnePassRegressor
from craftmaps.learn.solvers.solution import limits_around, mean_and_spread
from craftmaps.search.targets import weights_of_choice
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice, is_number

_NORMAL_MAD = 1.4826  # standard deviation over median absolute deviation, of a normal distribution
_MAX_SCALE_ROUNDS = 5  # fits to find the scale of residuals
_SAME_SCALE = 0.05  # relative change of the scale that ends these fits
_LEAST_SCALE = 0.01  # relative to the spread of targets, because some fits are exact
LOSSES = ("squared", "huber", "quantile")


@storable
class KernelRegressor(KernelMachine, OnePassRegressor):
    """Predict numbers by a linear model on the features of a map.

    The objective is sum_i w_i loss(y_i, z_i^T w + b) + alpha / 2 |w|^2. The squared loss is solved
    exactly from the sums of one pass. The Huber loss limits the influence of outliers, and
    the quantile loss predicts a quantile instead of the mean. Both take a few passes.

    Parameters
    ----------
    feature_map : "auto", "local", transformer or None, default="auto"
        Turns rows into features. "auto" searches for the scaling, kernel and map that suit the
        rows, within `budget`, see `AutoMap`. "local" searches too, splits the rows by a tree, and
        learns a machine with the exact kernel from the rows of each leaf. It takes all rows in
        memory and the squared loss. "auto" compares both above 16,384 rows, unless a loss, alpha
        or budget is given: local machines have no `return_std`, `partial_fit` and `merge`. It
        can also be a map of this package or any
        scikit-learn transformer. None uses the rows themselves. A clone is fitted on a sample of
        the rows, see `map_rows`. To use a fitted map without fitting it again, wrap it in
        `sklearn.frozen.FrozenEstimator`.
    budget : int, str or None, default=None
        What feature_map="auto" may spend: a number of components; a training time, "10s"; a memory,
        "200MB"; a prediction time, "1ms/row"; or "unlimited". None takes one component for each
        row if there are at most 4,096 rows. With more rows, the number falls to 2,048. With
        "local", a number of components is the number of rows in a leaf, by default 4,096 to 8,192.
    loss : {"squared", "huber", "quantile"}, default="squared"
        "squared" is the loss of `OnePassRegressor`, with `partial_fit` and `merge`.
    quantile : float, default=0.5
        What loss="quantile" predicts; 0.5 is the median.
    epsilon : float, default=1.35
        With loss="huber", residuals above `epsilon` times their scale count linearly. The scale is
        a robust standard deviation of the residuals of held-out rows.
    alpha : "auto", float or sequence of floats, default="auto"
        The penalty. "auto" lowers or raises alpha by half decades as long as the loss on held-out
        rows falls, and takes the largest alpha whose loss is within 2 % of the least one; for the
        squared loss, see `OnePassRegressor`.
    fit_intercept : bool, default=True
    tol : float, default=1e-4
        Passes end when the objective can fall by no more than about this fraction of the decrease
        that was possible at first, from coefficients of zero.
    max_passes : int, default=1000
        Limit on the number of passes, including the search for alpha. Reaching it gives a warning.
    block_rows : int, default=4096
        Rows whose features are held at a time, with the squared loss.
    map_rows : int or None, default=10000
        Number of rows that the feature map is fitted on: a uniform sample, chosen by the places
        of the rows. None takes all rows. A map gets at least two rows for each component.
    random_state : int, RandomState instance, Generator or None, default=None
        For feature_map="auto". Other maps have their own.
    encoder : "auto", TableEncoder or None, default="auto"
        Turns tables into numbers before the map. "auto" encodes data frames, dicts of columns,
        arrays of objects and dense arrays with missing values by a `TableEncoder`, and leaves
        other arrays unchanged. A TableEncoder encodes all rows. The encoder is a clone, fitted on
        the rows of `map_rows`. To use a fitted encoder without fitting it again, wrap it in
        `sklearn.frozen.FrozenEstimator`. With None, rows must be numbers.

    Attributes
    ----------
    coef_, intercept_, alpha_, alphas_, scores_, feature_map_, n_samples_seen_, solution_
        As in OnePassRegressor.
    encoder_ : TableEncoder or None
        The fitted encoder; None if rows were not encoded.
    n_passes_ : int
        Passes over the features that the fit took.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import CraftMap, KernelRegressor, Polynomial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 3))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(2000)
    >>> y[::20] += 100.0
    >>> feature_map = CraftMap(Polynomial(degree=2), n_components=64, random_state=0)
    >>> robust = KernelRegressor(feature_map, loss="huber").fit(X, y)
    >>> bool(np.abs(robust.predict(X) - X[:, 0] * X[:, 1]).mean() < 0.05)
    True
    """

    def __init__(
        self,
        feature_map: Any = "auto",
        *,
        budget: Any = None,
        loss: str = "squared",
        quantile: float = 0.5,
        epsilon: float = 1.35,
        alpha: Any = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_passes: int = 1000,
        block_rows: int = 4096,
        map_rows: int | None = DEFAULT_MAP_ROWS,
        random_state: Any = None,
        encoder: Any = "auto",
    ) -> None:
        self.feature_map = feature_map
        self.budget = budget
        self.loss = loss
        self.quantile = quantile
        self.epsilon = epsilon
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_passes = max_passes
        self.block_rows = block_rows
        self.map_rows = map_rows
        self.random_state = random_state
        self.encoder = encoder

    @property
    def _task(self) -> str:
        return "regression"

    def _loss(self, targets: np.ndarray, weights: np.ndarray) -> Scores | None:
        """Mean squared errors in which no few rows decide."""
        Y = targets.reshape(len(targets), -1)
        if not weights.any():
            return None
        lowered = weights_of_choice(Y, weights)
        return lambda predicted: np.average((Y - predicted) ** 2, axis=0, weights=lowered)

    def _may_be_local(self, X: Any, y: np.ndarray) -> bool:
        """Only if nothing is asked for that local machines do not have."""
        plain = self.loss == "squared" and self.fit_intercept
        return self._searches_freely and plain and len(y) > MANY_NUMBERS

    def _new_loss(self, fit: Fit) -> Loss:
        """The loss with the scale of its residuals, which repeated fits of this loss find."""
        scale = _spread(fit.targets()[0])
        least = _LEAST_SCALE * scale
        alpha = self.alpha
        for _ in range(_MAX_SCALE_ROUNDS):
            fit.loss = self._scaled_loss(scale)
            machine = fit.machine(self.max_passes)
            alpha, _, _, start = fit.chosen(machine, alpha)
            rows = fit.held_out(start, alpha, self.tol, self.max_passes)
            before = scale
            scale = np.maximum(_spread(rows.y - rows.predicted), least)
            if np.abs(scale / before - 1).max() < _SAME_SCALE:
                break
        return self._scaled_loss(scale)

    def _usual_targets(self, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
        return mean_and_spread(*fit.targets())

    def _finish(self, fit: Fit, end: np.ndarray, alpha: float) -> None:
        """Keep the errors of held-out rows for intervals."""
        rows = fit.held_out(end, alpha, JUDGING_TOLERANCE, self.max_passes)
        self.learn_errors(rows.predicted, rows.y, rows.weights)

    def learn_errors(self, predicted: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        self._judge(predicted, targets)
        self._stream.conformal = Conformal(targets - predicted, weights)

    def _limits(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Limits for maps of a search: kernels that suit the rows may rise steeply beyond them."""
        ends = getattr(self.feature_map_, "target_ends_", None)
        return None if ends is None else limits_around(self.solution_, ends)

    @property
    def _residual_factor(self) -> float:
        report = self._map_report
        return 1.0 if report is None else float(np.sqrt(report.optimism))

    def _losses(self, predicted: np.ndarray, targets: np.ndarray) -> np.ndarray:
        variance = np.var(targets, axis=0)
        squares = np.square(predicted - targets) / np.where(variance > 0, variance, 1)
        return np.asarray(squares.mean(axis=1))

    def _plain_loss(self, targets: np.ndarray) -> float:
        return 1.0

    def _scaled_loss(self, scale: np.ndarray) -> Loss:
        if self.loss == "huber":
            return HuberLoss(self.epsilon * scale)
        return QuantileLoss(self.quantile, scale)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, LOSSES)
        if not is_number(self.quantile) or not 0 < self.quantile < 1:
            raise ValueError(f"quantile must be between 0 and 1, got {self.quantile!r}.")
        if not is_number(self.epsilon) or self.epsilon <= 0:
            raise ValueError(f"epsilon must be a number above 0, got {self.epsilon!r}.")


def _spread(y: np.ndarray) -> np.ndarray:
    """Return robust standard deviations of columns, or plain ones if half of the values agree."""
    deviations = np.median(np.abs(y - np.median(y, axis=0)), axis=0)
    spread = np.where(deviations > 0, _NORMAL_MAD * deviations, y.std(axis=0))
    return np.where(spread > 0, spread, 1.0)
