"""A kernel classifier that minimizes the log-loss in a few passes."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from craftmaps.learn.calibration import temperature
from craftmaps.learn.choose_loss import MANY_ROWS, SAMPLE_ROWS, prefers_log
from craftmaps.learn.classifier import OnePassClassifier
from craftmaps.learn.codes import DISCRIMINANT, CodeMatrix, Encode, OneBit, OneVsRest, Unchanged
from craftmaps.learn.few_pass_fit import JUDGING_TOLERANCE, Fit
from craftmaps.learn.intervals import set_scores
from craftmaps.learn.kernel_machine import KernelMachine
from craftmaps.learn.local import MANY_LOCAL_ROWS
from craftmaps.learn.losses import BitLogLoss, LogLoss, Loss
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.solvers.choose import is_auto
from craftmaps.search.budget import EXACT_ROWS
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice

_SHARE_OF_RULES = 0.05  # share of tables whose classes follow rules without mistakes
LOSSES = ("auto", "log", "squared")


@storable
class KernelClassifier(KernelMachine, OnePassClassifier):
    """Classify rows by a linear model on the features of a map, with probabilities.

    The multinomial log-loss is sum_i w_i (-log p(y_i)) + alpha / 2 |W|^2 with p = softmax(Z W + b).
    With many rows, the log-loss makes far fewer errors than the squared loss on the same features,
    and its probabilities need no calibration. It takes about ten passes over the features, and each
    pass costs much less than the sums of the squared loss. With few rows, the squared loss is as
    good and faster. By default, the loss is chosen automatically.

    Parameters
    ----------
    feature_map : "auto", "local", transformer or None, default="auto"
        Turns rows into features. "auto" searches for the scaling, kernel and map that suit the
        rows, within `budget`, see `AutoMap`. "local" searches too, splits the rows by a tree, and
        learns a machine with the exact kernel from the rows of each leaf. It takes all rows in
        memory and the squared loss. "auto" compares both above 4,096 rows, unless a loss,
        alpha or budget is given. It can also be a map of this package or any
        scikit-learn transformer. None uses the rows themselves. A clone is fitted on a sample of
        the rows, see `map_rows`. To use a fitted map without fitting it again, wrap it in
        `sklearn.frozen.FrozenEstimator`.
    budget : int, str or None, default=None
        What feature_map="auto" may spend: a number of components; a training time, "10s"; a memory,
        "200MB"; a prediction time, "1ms/row"; or "unlimited". None takes one component for each
        row if there are at most 4,096 rows. With more rows, the number falls to 2,048. With
        "local", a number of components is the number of rows in a leaf, by default 4,096 to 8,192.
    loss : {"auto", "log", "squared"}, default="auto"
        "squared" is the loss of `OnePassClassifier`, with `partial_fit` and `merge`. "auto" uses
        the log-loss if there are more than 2.8 rows for each feature. Otherwise it tries both
        losses on 1,000 rows, and uses the log-loss only if it is clearly better, because it is
        slower. With `class_weight`, codes or a given alpha, "auto" is the log-loss.
    alpha : "auto", float or sequence of floats, default="auto"
        The penalty, 1 / C on the scale of scikit-learn's LogisticRegression. "auto" lowers or
        raises alpha by half decades as long as the log-loss on held-out rows falls, and takes the
        largest alpha whose log-loss is within 2 % of the least one. The alphas of a sequence are
        compared in the same way.
    codes : "one-vs-rest", "random", "hadamard" or array (n_classes, n_bits), default="one-vs-rest"
        With "one-vs-rest", the log-loss is multinomial. With the other codes, each bit has a binary
        log-loss, which makes thousands of classes cheap.
    n_bits : int or None, default=None
        Bits of a "random" (None: 200) or "hadamard" code (None: as many as give orthogonal rows).
    decoding : str, default="l2"
        How predicted bits are decoded to classes, see `craftmaps.learn.codes.CodeMatrix`. With the
        log-loss, "l2" gives the class with the largest likelihood. "discriminant" is for the
        squared loss.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
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
    encoder : "auto", TableEncoder or None, default="auto"
        Turns tables into numbers before the map. "auto" encodes data frames, dicts of columns,
        arrays of objects and dense arrays with missing values by a `TableEncoder`, and leaves
        other arrays unchanged. A TableEncoder encodes all rows. The encoder is a clone, fitted on
        the rows of `map_rows`. To use a fitted encoder without fitting it again, wrap it in
        `sklearn.frozen.FrozenEstimator`. With None, rows must be numbers.
    random_state : int, RandomState instance, Generator or None, default=None
        For random codes, and for feature_map="auto". Other maps have their own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_components), or (1, n_components) for two classes
    intercept_ : ndarray of shape (n_classes,) or (1,)
    alpha_ : float
    alphas_, scores_ : ndarray of shape (n_alphas,) and (n_alphas, 1), or None
        The alphas that were tried, and the total log-loss on held-out rows for each of them (with
        the squared loss, the Brier score).
    loss_ : {"log", "squared"} or None
        What loss="auto" chose; None if the loss was given.
    n_passes_ : int
        Passes over the features that the fit took.
    encoder_ : TableEncoder or None
        The fitted encoder; None if rows were not encoded.
    feature_map_, n_samples_seen_, code_matrix_, decoder_, solution_
        As in OnePassClassifier.

    Notes
    -----
    L-BFGS is preconditioned by the sums of a sample with about four rows for each feature. With
    fewer than some thousand features, it is drawn again during the descent, mostly from the rows
    that are not yet predicted with certainty. A tenth of the rows is held out, or several tenths in
    turn if there are fewer than 30,000 rows; a hash of its position decides whether a row is held
    out. Features are kept in memory if they take at most half of it. Otherwise each pass computes
    them again.

    See Also
    --------
    OnePassClassifier : The squared loss in one exact pass, for streams and for merging.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from craftmaps import CraftMap, KernelClassifier, Polynomial
    >>> X, y = load_digits(return_X_y=True)
    >>> X /= 64
    >>> feature_map = CraftMap(Polynomial(degree=4), n_components=256, random_state=0)
    >>> model = KernelClassifier(feature_map).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    def __init__(
        self,
        feature_map: Any = "auto",
        *,
        budget: Any = None,
        loss: str = "auto",
        alpha: Any = "auto",
        codes: Any = "one-vs-rest",
        n_bits: int | None = None,
        decoding: str = "l2",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_passes: int = 1000,
        block_rows: int = 4096,
        map_rows: int | None = DEFAULT_MAP_ROWS,
        encoder: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.feature_map = feature_map
        self.budget = budget
        self.loss = loss
        self.alpha = alpha
        self.codes = codes
        self.n_bits = n_bits
        self.decoding = decoding
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_passes = max_passes
        self.block_rows = block_rows
        self.map_rows = map_rows
        self.encoder = encoder
        self.random_state = random_state

    @property
    def _task(self) -> str:
        return "classification"

    def _set_targets(self, y: np.ndarray, classes: Any = None) -> None:
        super()._set_targets(y, classes)
        if self.loss != "squared" and isinstance(self._code, OneVsRest) and len(self.classes_) == 2:
            self._code = OneBit()

    def _settle(
        self, feature_map: Any, n_features: int, X: Any, y: np.ndarray, n_rows: int | None
    ) -> None:
        self.loss_ = None
        if self.loss == "auto":
            n_rows = max(n_rows or 0, X.shape[0])
            self.loss_ = self._chosen_loss(feature_map, n_features, X, y, n_rows)

    def _chosen_loss(
        self, feature_map: Any, n_features: int, X: Any, y: np.ndarray, n_rows: int
    ) -> str:
        """The loss for loss="auto", see `craftmaps.learn.choose_loss`."""
        if self._reads_once or self.decoding == DISCRIMINANT:
            return "squared"
        plain = self.class_weight is None and self.fit_intercept and is_auto(self.alpha)
        coded = isinstance(self._code, CodeMatrix) or hasattr(feature_map, "penalty")
        if not plain or coded or n_rows > MANY_ROWS * n_features:
            return "log"
        return "log" if self._prefers_log(feature_map, X, y) else "squared"

    def _prefers_log(self, feature_map: Any, X: Any, y: np.ndarray) -> bool:
        """Whether the log-loss is clearly better on a sample of the rows."""
        some = np.unique(np.linspace(0, X.shape[0] - 1, min(SAMPLE_ROWS, X.shape[0])).astype(int))
        Z = X[some] if feature_map is None else feature_map.transform(X[some])
        if sparse.issparse(Z):
            return True
        labels, alpha = self._targets(y[some]), getattr(feature_map, "alpha_", None)
        if alpha is None:
            alpha = OnePassClassifier().fit(Z, labels).alpha_
        return prefers_log(Z, labels, len(self.classes_), alpha)

    def _may_be_local(self, X: Any, y: np.ndarray) -> bool:
        """Only if nothing is asked for that local machines do not have.

        Local machines have the squared loss. With few leaves, this matters more than features.
        """
        plain = self.loss == "auto" and self.decoding != DISCRIMINANT
        if not (self._searches_freely and plain and len(y) > EXACT_ROWS):
            return False
        if len(y) >= MANY_LOCAL_ROWS:
            return True
        rows, labels = self._sampled(X, y)
        return not self._prefers_log(self.feature_map_, self._encoded(rows), labels)

    def _new_loss(self, fit: Fit) -> Loss:
        return LogLoss() if isinstance(self._code, OneVsRest) else BitLogLoss()

    @property
    def _loss_targets(self) -> Encode:
        return Unchanged() if isinstance(self._code, OneVsRest) else self._code

    @property
    def _balanced_classes(self) -> int | None:
        return len(self.classes_) if isinstance(self.class_weight, str) else None

    def _check_targets(self, y: np.ndarray, *, whole: bool = False) -> None:
        # with the log-loss all labels are known before the first pass, also in a stream
        several_passes = self.loss != "squared" and isinstance(self.class_weight, str)
        super()._check_targets(y, whole=whole or several_passes)

    def _row_weights(self, weights: np.ndarray | None, targets: np.ndarray) -> np.ndarray | None:
        if self._loss_name == "log" and isinstance(self.class_weight, str):
            return weights
        return super()._row_weights(weights, targets)

    def _finish(self, fit: Fit, end: np.ndarray, alpha: float) -> None:
        """Learn the temperature, which never makes probabilities of the log-loss more certain.

        They need no temperature if rows suffice. But few rows may be separable by chance. Bits of a
        code are dependent, so their probabilities need a temperature in any case.
        """
        rows = fit.held_out(end, alpha, JUDGING_TOLERANCE, self.max_passes)
        coded = isinstance(self._code, CodeMatrix)
        self.learn_errors(rows.predicted, rows.y, rows.weights, np.inf if coded else 1.0)

    def learn_errors(
        self,
        predicted: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        largest: float = np.inf,
    ) -> None:
        """Learn the temperature, at most the given one, and scores for sets of classes."""
        scores = self._code.scores(predicted)
        self._judge(scores, targets)
        rules = 0.0 if np.isinf(largest) else _SHARE_OF_RULES
        factor = min(largest, temperature(scores, targets, weights, rules))
        self._stream.temperature = factor
        self._stream.conformal = set_scores(softmax(factor * scores, axis=1), targets, weights)

    def _losses(self, predicted: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return np.asarray(predicted.argmax(axis=1) != targets)

    def _plain_loss(self, targets: np.ndarray) -> float:
        return 1 - float(np.unique(targets, return_counts=True)[1].max()) / len(targets)

    def _calibrate(self) -> None:
        self._begun()
        if self._loss_name == "squared":
            super()._calibrate()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, LOSSES)
        if self.loss == "log" and self.decoding == DISCRIMINANT:
            raise ValueError("decoding='discriminant' is for loss='squared'; use 'l2'.")
