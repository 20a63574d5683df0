"""Ridge classification on features, from one pass."""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from craftmaps.learn.calibration import log_loss, temperature
from craftmaps.learn.codes import CodeMatrix, Discriminant, OneVsRest, code_for
from craftmaps.learn.one_pass import (
    FLOATS,
    SAMPLE_ROWS,
    begin,
    check_mergeable,
    fit_blocks,
    fit_whole,
    left_out_predictions,
    predictions,
    sample_weights,
    save,
    solution_of,
    solved,
    stream_of,
)
from craftmaps.learn.progress import Progress
from craftmaps.learn.stored import check_classifier
from craftmaps.learn.stream import FeatureStream
from craftmaps.storage.packing import storable
from craftmaps.validation import generator


@storable
class OnePassClassifier(ClassifierMixin, BaseEstimator):
    """A kernel classifier for any number of rows: exact ridge regression of codes on features.

    One pass over the rows keeps H = sum z z^T, shared by all classes, and one column sum z y per
    bit of the code (Hamid, Xiao, Gittens and DeCoste, s.3.5 and s.4). The result is the same
    whether rows come at once, in blocks, or merged from several learners.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Turns rows into features: a map of this package or any scikit-learn transformer. None
        takes the rows as they are. A clone of it is fitted on the rows of `fit` or on the first
        block; wrap a fitted one in `sklearn.frozen.FrozenEstimator` to have it used as it is.
    alpha : "gcv", float or sequence of floats, default="gcv"
        The penalty, on the scale of scikit-learn's RidgeClassifier. "gcv" takes the minimum of
        generalised cross-validation, from the sums alone, or, where there are no more rows than
        features, of the log-loss of up to 1,024 rows that are left out one by one; of a sequence
        the alpha with the least K-fold squared error, for which sums are kept per fold.
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
    temperature_ : float
        That of the softmax of `predict_proba`.

    Notes
    -----
    `predict_proba` is the softmax of the scores of `decision_function` times a temperature. The
    temperature minimises the log-loss of exact leave-one-out predictions for a uniform sample of up
    to 1024 rows of the pass. It is found when first asked for.

    Features of float32 rows are float32. The sums of their products are float64; beyond 2048
    features the products within a block of rows are float32, at half the time, which bounds from
    below the alpha that makes a difference. A row of sample_weight 2 counts as two rows, in GCV
    too: give weights of mean 1 there.

    `fit` keeps rows that are fewer than their features. More than 16,384 of them are solved for by
    conjugate gradients, to 2/3 of the digits of features. "gcv" is then the best of half-decades
    for a tenth of the rows that is left out, and leave-one-out predictions take all rows to have
    the mean leverage.

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

    feature_map_: Any
    classes_: np.ndarray
    _code: OneVsRest | CodeMatrix
    _stream: FeatureStream
    _probe: Any = None  # a row of the data, if the sums of rows are kept
    _probe_features: Any = None

    def __init__(
        self,
        feature_map: Any = None,
        *,
        alpha: Any = "gcv",
        codes: Any = "one-vs-rest",
        n_bits: int | None = None,
        decoding: str = "l2",
        fit_intercept: bool = True,
        class_weight: Any = None,
        alpha_per_target: bool = False,
        n_folds: int = 5,
        block_rows: int = 4096,
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
        self.random_state = random_state

    alpha_ = solved("alpha")
    jitter_ = solved("jitter")
    condition_ = solved("condition")
    alphas_ = solved("alphas")
    scores_ = solved("scores")

    @property
    def coef_(self) -> np.ndarray:
        return np.asarray(solution_of(self).coef.T[self._shown()])

    @property
    def intercept_(self) -> np.ndarray:
        return np.asarray(solution_of(self).intercept[self._shown()])

    @property
    def n_samples_seen_(self) -> int:
        return stream_of(self).n_rows

    @property
    def code_matrix_(self) -> np.ndarray | None:
        stream_of(self)
        return getattr(self._code, "matrix", None)

    @property
    def temperature_(self) -> float:
        stream = stream_of(self)
        with stream.lock:
            if stream.temperature is None:
                scores = self._decoded(left_out_predictions(self))
                sample = stream.sample
                stream.temperature = temperature(scores, sample.labels, sample.weights)
            return stream.temperature

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their classes y, forgetting what was learnt before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        fit_whole(self, X, y, sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows. The system is solved when a result is first asked for.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array-like, default=None
            All labels that will come, in the first call; without it, those of the first block. With
            one-vs-rest, a later call may announce more: the result is as if they had always been
            known.
        """
        return self._add(X, y, sample_weight, Progress(None, shown=False), classes)

    def fit_blocks(
        self,
        blocks: Iterable[Any],
        classes: Any = None,
        *,
        checkpoint: Any = None,
        every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Learn from an iterable of (X, y) or (X, y, sample_weight), whatever its length.

        Parameters
        ----------
        blocks : iterable
            Such as `craftmaps.scale.blocks.read` gives it.
        classes : array-like, default=None
            All labels that will come; without it, those of the first block.
        checkpoint : path of a folder, default=None
            Where to write what was learnt, so that the same call goes on from there after the
            process was killed; the model is the same, to the last bit on the same machine. After
            the end it gives the model without learning a row again. A folder of other rows or
            parameters is refused.
        every : float, default=60.0
            Seconds between two checkpoints.
        progress : bool or None, default=None
            None shows a line of progress if standard error is a terminal.
        """
        fit_blocks(self, blocks, checkpoint, every, progress, classes=classes)
        return self

    def merge(self, other: "OnePassClassifier") -> Self:
        """Learn what `other` has learnt from its rows with the same map; it stays as it is."""
        check_mergeable(self, other)
        mine, theirs = self.code_matrix_, other.code_matrix_
        if (mine is None) != (theirs is None) or not np.array_equal(mine, theirs):  # type: ignore[arg-type]
            raise ValueError(
                "the two classifiers have different codes, so their sums do not add; give both the "
                "same random_state and the same classes."
            )
        if not np.array_equal(self.classes_, other.classes_):
            if mine is not None:
                raise ValueError("the two classifiers have different classes_ for one code matrix.")
            other = deepcopy(other)
            other._announce(self.classes_)
            self._announce(other.classes_)
        self._stream.merge(other._stream)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of shape (n_samples, n_classes), or (n_samples,) for two classes."""
        scores = np.concatenate(list(self._scores(X)))
        if len(self.classes_) > 2:
            return scores
        if self.code_matrix_ is None and solution_of(self).discriminant is None:
            return scores[:, 1]
        return np.asarray(scores[:, 1] - scores[:, 0])

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest score."""
        winners = np.concatenate([scores.argmax(axis=1) for scores in self._scores(X)])
        return np.asarray(self.classes_[winners])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Softmax of `temperature_` times scores, of shape (n_samples, n_classes)."""
        stream_of(self)
        t = self.temperature_
        return np.concatenate([softmax(t * scores, axis=1) for scores in self._scores(X)])

    def save(self, path: Any, *, resumable: bool = False) -> None:
        """Write the model to one file, from which `craftmaps.load` gives it back.

        Parameters
        ----------
        path : path of the file
        resumable : bool, default=False
            Whether to store the sums of the rows too, 4 n_components^2 bytes per fold, so that
            `partial_fit` and `merge` can go on after loading. Without them the model predicts.
        """
        save(self, path, resumable)

    def _scores(self, X: Any) -> Iterator[np.ndarray]:
        return (self._decoded(predicted) for predicted in predictions(self, X))

    @property
    def _decoder(self) -> OneVsRest | CodeMatrix | Discriminant:
        """What makes scores of classes from predicted targets."""
        return solution_of(self).discriminant or self._code

    def _decoded(self, predicted: np.ndarray) -> np.ndarray:
        return self._decoder.scores(predicted)

    def _shown(self) -> slice:
        """Of two classes one-vs-rest, the first column is the second with the other sign."""
        return slice(1 if self._code.n_bits == 2 and self.code_matrix_ is None else 0, None)

    def _add(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        progress: Progress,
        classes: Any = None,
        whole: bool = False,
    ) -> Self:
        first = not hasattr(self, "_stream")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, reset=first)
        if first and classes is None:
            check_classification_targets(y)  # announced labels are checked one by one
        weights = sample_weights(sample_weight, X)
        self._check_class_weight(y, whole)
        if first:
            self._begin(X, y, np.unique(y if classes is None else classes), whole)
        elif classes is not None:
            self._announce(np.unique(classes))
        numbers = self._number(y)
        self._stream.add(X, numbers, self._weights(weights, y, numbers), progress)
        return self

    def _begin(self, X: Any, y: np.ndarray, classes: np.ndarray, whole: bool) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, got 1 class, {classes.tolist()}; in a "
                f"stream, announce all of them in classes."
            )
        rng = generator(self.random_state)
        code = code_for(self.codes, len(classes), self.n_bits, self.decoding, rng)
        self._code = code
        self.classes_ = classes
        self._number(y)  # complains before the map is fitted
        n_rows = len(y) if whole else None
        begin(
            self,
            X,
            y,
            code,
            n_targets=code.n_bits,
            n_rows=n_rows,
            sample_rows=SAMPLE_ROWS,
            calibrates=True,
        )

    def _loss(self, predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Log-loss of calibrated probabilities: squared errors of codes are less to the point."""
        return np.array([log_loss(self._code.scores(predicted), labels, weights)])

    def _announce(self, classes: np.ndarray) -> None:
        new = np.setdiff1d(classes, self.classes_)
        if not len(new):
            return
        if self.code_matrix_ is not None:
            raise ValueError(
                f"the classes {new[:5].tolist()} are announced after the first block, but the code "
                f"matrix is drawn for {len(self.classes_)} classes; announce all of them at first, "
                f"or use codes='one-vs-rest'."
            )
        self._stream.check_open()  # before anything is changed
        both = np.union1d(self.classes_, new)
        self._code = OneVsRest(len(both))
        self._stream.encode = self._code
        self._stream.relabel(np.searchsorted(both, self.classes_), np.searchsorted(both, new))
        self.classes_ = both

    def _number(self, y: np.ndarray) -> np.ndarray:
        numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[numbers] != y
        if unknown.any():
            raise ValueError(
                f"the labels {np.unique(y[unknown])[:5].tolist()} are not among the "
                f"{len(self.classes_)} classes announced so far; give all labels as classes in "
                f"the first call."
            )
        return np.asarray(numbers)

    def _check_class_weight(self, y: np.ndarray, whole: bool) -> None:
        given = self.class_weight
        if isinstance(given, str) and given == "balanced":
            if not whole:
                raise ValueError(
                    "class_weight='balanced' needs all labels at once, which a stream has not; "
                    "give the weights as a dict, or use fit."
                )
        elif isinstance(given, dict):
            labels = set(np.unique(y).tolist()) if whole else set()
            unknown, unnamed = given.keys() - labels, labels - given.keys()
            if unknown and unnamed:  # a class that is missing from some of the rows is none
                raise ValueError(
                    f"class_weight names {next(iter(unknown))!r}, which no row has, and not "
                    f"{next(iter(unnamed))!r}; name classes as they are in y."
                )
        elif given is not None:
            raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {given!r}.")

    def _weights(
        self, weights: np.ndarray | None, y: np.ndarray, numbers: np.ndarray
    ) -> np.ndarray | None:
        """Those of rows times those of their classes, which are 1 where a dict has none."""
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, dict):
            known = [self.class_weight.get(label, 1.0) for label in self.classes_.tolist()]
            by_class = np.array(known, dtype=np.float64)[numbers]
        else:
            by_class = compute_sample_weight(self.class_weight, y)
        return np.asarray(by_class if weights is None else weights * by_class)

    def _check_stored(self) -> None:
        check_classifier(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
