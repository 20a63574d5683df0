"""Ridge classification on features, from one pass."""

from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from craftmaps.learn.calibration import brier_score, temperature
from craftmaps.learn.class_sums import class_factors, is_own_class
from craftmaps.learn.classes import ClassLearner
from craftmaps.learn.codes import DISCRIMINANT
from craftmaps.learn.intervals import check_coverage, set_scores, sets
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.one_pass import Loss, OnePass
from craftmaps.learn.own_class import OwnClass
from craftmaps.learn.solvers.choose import Solver, is_sequence
from craftmaps.learn.solvers.left_out import LeftOut
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.solvers.span import Problem
from craftmaps.learn.stored import check_classifier
from craftmaps.storage.packing import storable


@storable
class OnePassClassifier(ClassLearner, OnePass):
    """Classify rows by exact ridge regression on the features of a map, in one pass.

    Each class is encoded as a row of bits, the targets of the regression. One pass over the rows
    keeps H = sum z z^T, shared by all classes, and one column sum z y per bit (Hamid, Xiao, Gittens
    and DeCoste, s.3.5 and s.4). The result is the same whether rows come at once, in blocks, or
    merged from several learners.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Turns rows into features: a map of this package or any scikit-learn transformer. None
        uses the rows themselves. A clone is fitted on a sample of the rows, see `map_rows`. To use
        a fitted map without fitting it again, wrap it in `sklearn.frozen.FrozenEstimator`.
    alpha : "auto", "gcv", float or sequence of floats, default="auto"
        The penalty, on the scale of scikit-learn's RidgeClassifier. "auto" minimizes the exact
        leave-one-out Brier score of a uniform sample of up to 1,024 rows, which is computed from
        the sums. "gcv" minimizes generalized cross-validation. With a sequence, the alpha
        with the smallest K-fold squared error is chosen, and sums are kept per fold.
    codes : "one-vs-rest", "random", "hadamard" or array (n_classes, n_bits), default="one-vs-rest"
        How classes are encoded as targets. One-vs-rest has one target per class. Codes with fewer
        bits than classes make thousands of classes cheap.
    n_bits : int or None, default=None
        Bits of a "random" (None: 200) or "hadamard" code (None: as many as give orthogonal rows).
    decoding : {"l2", "hamming", "loss", "pseudo-inverse", "discriminant"}, default="l2"
        How predicted bits are decoded to classes, see `craftmaps.learn.codes.CodeMatrix`. With
        one-vs-rest codes, it is the class with the largest prediction, or with "discriminant" the
        class with the largest linear discriminant of the predictions, which often makes fewer
        errors with many classes.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced", "own-class" or None, default=None
        Weights of classes. "balanced" needs `fit`, which sees all labels before it starts, or
        `class_sums`. "own-class" needs `class_sums` and one-vs-rest codes: in the target of each
        class, the rows of this class get a larger weight. This often makes far fewer errors with
        three or more classes, and takes a few factorizations per class. The weight is 1, sqrt(k) or
        k for k classes, whichever has the smallest leave-one-out Brier score.
    alpha_per_target : bool, default=False
        Whether each bit may get its own alpha.
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
    class_sums : bool, default=False
        Whether to keep one set of sums per class. This takes the same number of operations, and the
        memory of one set of sums times the number of classes. Class weights are then applied to the
        sums, so "balanced" is also exact in streams: `partial_fit`, `fit_blocks` with an iterator,
        `merge`, Dask and Spark give the same model as `fit`. Rows of weight 0 are not counted.
        alpha must not be a sequence.
    random_state : int, RandomState instance, Generator or None, default=None
        For random codes. The feature map has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_bits, n_components), one row for two classes one-vs-rest
    intercept_ : ndarray of shape (n_bits,)
    code_matrix_ : ndarray of shape (n_classes, n_bits), or None for one-vs-rest
    alpha_, jitter_, condition_, alphas_, scores_, feature_map_, n_samples_seen_
        As in OnePassRegressor.
    solution_ : Solution
        Coefficients of shape (n_components, n_bits) and how they were found.
    decoder_ : OneVsRest, CodeMatrix or Discriminant
        Turns predicted bits into scores of classes.
    own_class_weight_ : float
        Weight of the rows of a class in their own target; 1 unless class_weight is "own-class".
    temperature_ : float
        The factor of the scores in the softmax of `predict_proba`.

    Notes
    -----
    `predict_proba` is the softmax of the scores of `decision_function` times a temperature. The
    temperature minimizes the log-loss of exact leave-one-out predictions for a uniform sample of up
    to 1,024 rows. It is computed when it is first needed.

    Features of float32 rows are float32, and the sums of their products are float64. Beyond 2048
    features, products within a block of rows are float32, which takes half the time but limits how
    small an effective alpha can be. A row with sample_weight 2 counts as two rows, also in GCV,
    which therefore needs weights with mean 1.

    `fit` keeps the rows if they are fewer than their features. Above 16,384 rows the system is
    solved by conjugate gradients to a relative residual of eps^(2/3), and "auto" chooses alpha on a
    10% hold-out from a grid of two values per decade. An alpha below the rounding errors, such as
    0, raises an error. Leave-one-out predictions then assume that every row has the mean leverage.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
    >>> X, y = load_digits(return_X_y=True)
    >>> X /= 64
    >>> feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=512, random_state=0)
    >>> model = OnePassClassifier(feature_map).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True

    The same from a stream:

    >>> stream = OnePassClassifier(feature_map)
    >>> for start in range(0, 1000, 100):
    ...     rows = slice(start, start + 100)
    ...     _ = stream.partial_fit(X[rows], y[rows], classes=range(10))
    >>> stream.score(X[1000:], y[1000:]) > 0.94
    True
    """

    def __init__(
        self,
        feature_map: Any = None,
        *,
        alpha: Any = "auto",
        codes: Any = "one-vs-rest",
        n_bits: int | None = None,
        decoding: str = "l2",
        fit_intercept: bool = True,
        class_weight: Any = None,
        alpha_per_target: bool = False,
        n_folds: int = 5,
        block_rows: int = 4096,
        map_rows: int | None = DEFAULT_MAP_ROWS,
        decay: float | None = None,
        class_sums: bool = False,
        random_state: Any = None,
    ) -> None:
        self.feature_map = feature_map
        self.alpha = alpha
        self.codes = codes
        self.n_bits = n_bits
        self.decoding = decoding
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.alpha_per_target = alpha_per_target
        self.n_folds = n_folds
        self.block_rows = block_rows
        self.map_rows = map_rows
        self.decay = decay
        self.class_sums = class_sums
        self.random_state = random_state

    @property
    def own_class_weight_(self) -> float:
        return self.solution_.own_class_weight

    @property
    def temperature_(self) -> float:
        self._calibrate()
        factor = self._stream.temperature
        assert factor is not None
        return factor

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Learn from more rows. The system is solved when a result is first needed.

        If this raises an error or is interrupted, the learner is unchanged and the call can be
        repeated.

        Parameters
        ----------
        X, y, sample_weight
            Rows as for `fit`. The first call also fits the map, on a sample of `map_rows` rows.
        classes : array-like, default=None
            All labels of the stream. It is needed in the first call if the first block does not
            have all of them. With one-vs-rest codes, a later call may announce more labels; the
            result is the same as if they had been known from the start.

        Returns
        -------
        self
        """
        return self._take(X, y, sample_weight, classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities of shape (n_samples, n_classes)."""
        t = self.temperature_
        return np.concatenate([softmax(t * scores, axis=1) for scores in self._scores(X)])

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return a set of classes for each row, which contains the true class at the given rate.

        A class is in the set if its probability is at least 1 - q, where q is the quantile of
        1 - p(true class) among rows that the model was not fitted on: leave-one-out predictions for
        up to 1,024 rows with the squared loss, or a held-out tenth of the rows with the log-loss.
        The most probable class is always in the set.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, on average over rows from the same source as the training rows.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes), columns in the order of `classes_`
        """
        check_coverage(coverage)
        self.solve()
        self._calibrate()
        conformal = self._stream.conformal
        if conformal is None:
            raise ValueError(
                "this model was saved by a version without sets of classes; fit it again."
            )
        return sets(self.predict_proba(X), float(conformal.bound(coverage)[0]))

    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return leave-one-out scores of classes for a uniform sample of the rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes)
        labels : ndarray of shape (n_rows,)
            Places of the true labels in `classes_`.
        weights : ndarray of shape (n_rows,)
        """
        predicted, labels, weights = super().leave_one_out()
        if self._stream.by_class:
            weights = weights * self._class_factors()[labels]
        return self.decoder_.scores(predicted), labels, weights

    def _calibrate(self) -> None:
        """Find the temperature, if it is not known, and the scores for sets of classes."""
        if not self._is_calibrated():
            with self._draft(same_rows=True) as draft:
                if not draft._is_calibrated():
                    scores, labels, weights = draft.leave_one_out()
                    stream = draft._stream
                    stream.temperature = temperature(scores, labels, weights)
                    probabilities = softmax(stream.temperature * scores, axis=1)
                    stream.conformal = set_scores(probabilities, labels, weights)

    def _is_calibrated(self) -> bool:
        stream = self._begun()
        return stream.temperature is not None and (stream.conformal is not None or stream._closed)

    def _loss(self, targets: np.ndarray, weights: np.ndarray) -> Loss:
        """Brier score of calibrated probabilities.

        Squared errors of codes count rows far on the right side as errors, and choose an alpha that
        is too large.
        """
        scores = self._code.scores
        return lambda predicted: np.array([brier_score(scores(predicted), targets, weights)])

    def _fold_kind(self) -> tuple[int, bool]:
        return (len(self.classes_), True) if self.class_sums else super()._fold_kind()

    def _solve(self) -> Solution:
        if not self._stream.by_class:
            return super()._solve()
        solution = self._weighted()._solve()
        # With two classes, the two targets only differ in sign, so both classes weigh the same.
        if not is_own_class(self.class_weight) or len(self.classes_) == 2:
            return solution
        problem, penalty = self._problem()
        best = self._own_class(problem, penalty).solve(solution)
        return solution if best is solution else problem.restore(best)

    def _left_out_predictions(self, solution: Solution) -> np.ndarray:
        if not self._stream.by_class:
            return super()._left_out_predictions(solution)
        if solution.own_class_weight != 1:
            own_class = self._own_class(*self._problem())
            return own_class.left_out(solution, solution.own_class_weight)
        return self._weighted()._left_out_predictions(solution)

    def _own_class(self, problem: Problem, penalty: np.ndarray | None) -> OwnClass:
        sample = self._stream.sample
        Y = self._stream.encode(sample.labels).astype(np.float64)
        loss = self._loss(sample.labels, sample.weights)
        return OwnClass(
            problem.total(),
            problem.folds,
            LeftOut(problem.rows(sample.Z), Y, sample.weights, loss),
            sample.labels,
            self.fit_intercept,
            penalty,
        )

    def _choice(self, n_kept: int | None, n_features: int, penalized: bool) -> Solver:
        solver = super()._choice(n_kept, n_features, penalized)
        if is_own_class(self.class_weight) and solver is Solver.CONJUGATE_GRADIENTS:
            return Solver.SPAN  # leverages of single rows are needed
        return solver

    def _weighted(self) -> Self:
        """Return a copy that has the sums of all rows, with the weights of their classes."""
        weighted = copy(self)
        weighted._stream = self._stream.with_class_weights(self._class_factors())
        return weighted

    def _class_factors(self) -> np.ndarray:
        return class_factors(self.class_weight, self.classes_, self._stream.class_counts())

    def _wants_discriminant(self) -> bool:
        return self.decoding == DISCRIMINANT

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.class_sums, bool | np.bool_):
            raise ValueError(f"class_sums must be True or False, got {self.class_sums!r}.")
        if self.class_sums and is_sequence(self.alpha):
            raise ValueError(
                "class_sums=True keeps one set of sums per class, and none per fold; give one "
                "alpha, 'auto' or 'gcv' instead of a sequence."
            )
        plain = isinstance(self.codes, str) and self.codes == "one-vs-rest"
        if is_own_class(self.class_weight) and not (plain and self.decoding != DISCRIMINANT):
            raise ValueError(
                "class_weight='own-class' needs codes='one-vs-rest', where each class has a "
                "target of its own, and decoding='l2'."
            )

    def _check_mergeable(self, other: "OnePassClassifier") -> None:
        if self._stream.by_class != other._stream.by_class:
            raise ValueError(
                "one classifier has class_sums=True and the other does not, so their sums do not "
                "add; give both the same class_sums."
            )
        mine, theirs = self.code_matrix_, other.code_matrix_
        if (mine is None) != (theirs is None) or not np.array_equal(mine, theirs):  # type: ignore[arg-type]
            raise ValueError(
                "the two classifiers have different codes, so their sums do not add; give both the "
                "same random_state and the same classes."
            )
        if mine is not None and not np.array_equal(self.classes_, other.classes_):
            raise ValueError("the two classifiers have different classes_ for one code matrix.")

    def _merge(self, other: "OnePassClassifier") -> None:
        if not np.array_equal(self.classes_, other.classes_):
            other = deepcopy(other)
            other._announce(self.classes_)
            self._announce(other.classes_)
        super()._merge(other)

    def _check_stored(self) -> None:
        check_classifier(self)
