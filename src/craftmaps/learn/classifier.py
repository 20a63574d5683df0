"""Ridge classification on features, from one pass."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from craftmaps.learn.calibration import brier_score, temperature
from craftmaps.learn.classes import ClassLearner
from craftmaps.learn.codes import DISCRIMINANT
from craftmaps.learn.intervals import check_coverage, set_scores, sets
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS
from craftmaps.learn.mergeable import CHECKPOINT_SECONDS, renamed_every
from craftmaps.learn.one_pass import Loss, OnePass
from craftmaps.learn.progress import Progress
from craftmaps.learn.stored import check_classifier
from craftmaps.storage.packing import storable


@storable
class OnePassClassifier(ClassLearner, OnePass):
    """A kernel classifier for any number of rows: exact ridge regression of codes on features.

    One pass over the rows keeps H = sum z z^T, shared by all classes, and one column sum z y per
    bit of the code (Hamid, Xiao, Gittens and DeCoste, s.3.5 and s.4). The result is the same
    whether rows come at once, in blocks, or merged from several learners.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Turns rows into features: a map of this package or any scikit-learn transformer. None
        takes the rows as they are. A clone of it is fitted on a sample of the rows, see `map_rows`;
        wrap a fitted map in `sklearn.frozen.FrozenEstimator` to have it used as it is.
    alpha : "auto", "gcv", float or sequence of floats, default="auto"
        The penalty, on the scale of scikit-learn's RidgeClassifier. "auto" takes the least Brier
        score of a uniform sample of up to 1,024 rows, each of which is left out in turn; these
        scores are exact and come from the sums. "gcv" takes the minimum of generalized
        cross-validation. For a sequence, the alpha with the least K-fold squared error is taken,
        and sums are kept per fold.
    codes : "one-vs-rest", "random", "hadamard" or array (n_classes, n_bits), default="one-vs-rest"
        The targets of the classes. One-vs-rest has one per class; codes of fewer bits than classes
        make thousands of classes cheap.
    n_bits : int or None, default=None
        Bits of a "random" (None: 200) or "hadamard" code (None: as many as give orthogonal rows).
    decoding : {"l2", "hamming", "loss", "pseudo-inverse", "discriminant"}, default="l2"
        From predicted bits to classes, see `craftmaps.learn.codes.CodeMatrix`. One-vs-rest takes
        the largest, or with "discriminant" the class with the largest linear discriminant among
        the predictions, which often has less error where classes are many.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Weights of classes. "balanced" needs `fit`, which sees all labels before it starts.
    alpha_per_target : bool, default=False
        Whether each bit may get its own alpha.
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
    temperature_ : float
        The factor of the scores in the softmax of `predict_proba`.

    Notes
    -----
    `predict_proba` is the softmax of the scores of `decision_function` times a temperature. The
    temperature minimizes the log-loss of exact leave-one-out predictions for a uniform sample of up
    to 1024 rows of the pass. It is found when first asked for.

    Features of float32 rows are float32. The sums of their products are float64; beyond 2048
    features the products within a block of rows are float32, at half the time, which bounds from
    below the alpha that makes a difference. A row of sample_weight 2 counts as two rows, in GCV
    too: give weights of mean 1 there.

    `fit` keeps the rows if they are fewer than their features. Above 16,384 rows the system is
    solved by conjugate gradients to a relative residual of eps^(2/3), and "auto" chooses alpha on a
    10 % hold-out from a grid of two values per decade. An alpha that the rounding errors of such
    rows would hide, 0 for instance, is refused. Leave-one-out predictions then take every
    row to have the mean leverage.

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
        self.random_state = random_state

    @property
    def temperature_(self) -> float:
        self._calibrate()
        factor = self._stream.temperature
        assert factor is not None
        return factor

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Learn from further rows. The system is solved when a result is first asked for.

        If this raises, or is interrupted, the learner is what it was before, so that the call can
        be repeated.

        Parameters
        ----------
        X, y, sample_weight
            Rows as for `fit`. The first call fits the map, on a sample of `map_rows` of its rows.
        classes : array-like, default=None
            All labels that will come, in the first call; without it, those of the first block. With
            one-vs-rest, a later call may announce more: the result is as if they had always been
            known.
        """
        self._take(X, y, sample_weight, Progress(None, shown=False), classes)
        return self

    def fit_blocks(
        self,
        blocks: Iterable[Any],
        classes: Any = None,
        *,
        checkpoint: Any = None,
        checkpoint_every: float = CHECKPOINT_SECONDS,
        progress: bool | None = None,
        every: Any = None,
    ) -> Self:
        """Learn from an iterable of (X, y) or (X, y, sample_weight), whatever its length.

        Parameters
        ----------
        blocks : iterable
            What `craftmaps.scale.blocks.read` returns, for example. If it can be iterated again, a
            first pass collects the rows that the map is fitted on, a uniform sample of all rows. An
            iterator can be read only once, so the map is fitted on its first `map_rows` rows.
        classes : array-like, default=None
            All labels that will come; without it, those of the first block.
        checkpoint : path of a folder, default=None
            Where to write what was learned, so that the same call goes on from there after the
            process was killed; the model is the same, to the last bit on the same machine. After
            the end, the call returns the model without learning a row again. A folder of other
            rows or parameters is refused.
        checkpoint_every : float, default=60.0
            Seconds between two checkpoints.
        progress : bool or None, default=None
            None shows a line of progress if standard error is a terminal.
        every : float
            The former name of `checkpoint_every`.
        """
        seconds = renamed_every(every, checkpoint_every)
        return self._fit_blocks(blocks, checkpoint, seconds, progress, classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Softmax of `temperature_` times scores, of shape (n_samples, n_classes)."""
        t = self.temperature_
        return np.concatenate([softmax(t * scores, axis=1) for scores in self._scores(X)])

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """The classes that a row may have: a set that contains its own with a given probability.

        A class is in the set if its probability is at least 1 - q, where q is the quantile of
        1 - p(true class) among rows that did not teach the model: leave-one-out predictions for up
        to 1,024 rows of the pass with the squared loss, a tenth of the rows with the log-loss. The
        likeliest class is always in.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, on average over rows like those that were learned.

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
        """Scores of classes for a uniform sample of the rows, had each been left out of the pass.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes)
        labels : ndarray of shape (n_rows,)
            Places of the true labels in `classes_`.
        weights : ndarray of shape (n_rows,)
        """
        predicted, labels, weights = super().leave_one_out()
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

    def _wants_discriminant(self) -> bool:
        return self.decoding == DISCRIMINANT

    def _check_mergeable(self, other: "OnePassClassifier") -> None:
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
