"""Labels of classes as targets, and predictions as labels: what classifiers share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from craftmaps.learn.base import Learner
from craftmaps.learn.class_sums import class_factors, is_own_class
from craftmaps.learn.codes import CodeMatrix, Encode, OneBit, OneVsRest, code_for
from craftmaps.learn.discriminant import Discriminant
from craftmaps.learn.row_checks import checked_targets, refuse_text
from craftmaps.validation import FLOATS, generator


class ClassLearner(ClassifierMixin, Learner):
    """The targets of a classifier with any loss: labels, codes, class weights and decoding."""

    codes: Any
    n_bits: int | None
    decoding: str
    class_weight: Any
    class_sums: Any = False
    random_state: Any
    classes_: np.ndarray
    _code: OneVsRest | CodeMatrix | OneBit

    @property
    def code_matrix_(self) -> np.ndarray | None:
        """The code matrix of shape (n_classes, n_bits), or None for one-vs-rest."""
        self._begun()
        return getattr(self._code, "matrix", None)

    @property
    def coef_(self) -> np.ndarray:
        return np.asarray(self.solution_.coef.T[self._shown()])

    @property
    def intercept_(self) -> np.ndarray:
        return np.asarray(self.solution_.intercept[self._shown()])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores of shape (n_samples, n_classes), or (n_samples,) for two classes."""
        scores = np.concatenate(list(self._scores(X)))
        if len(self.classes_) > 2:
            return scores
        if isinstance(self.decoder_, OneVsRest):
            return scores[:, 1]
        return np.asarray(scores[:, 1] - scores[:, 0])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the highest score for each row."""
        winners = np.concatenate([scores.argmax(axis=1) for scores in self._scores(X)])
        return np.asarray(self.classes_[winners])

    @property
    def decoder_(self) -> OneVsRest | CodeMatrix | OneBit | Discriminant:
        """The decoder, whose method `scores` turns predicted columns into scores of classes."""
        return self.solution_.discriminant or self._code

    def _scores(self, X: Any) -> Iterator[np.ndarray]:
        return (self.decoder_.scores(predicted) for predicted in self._predicted(X))

    def _shown(self) -> slice:
        """The columns of coefficients to show: of two classes one-vs-rest, only the second.

        The first column is the second with the opposite sign.
        """
        return slice(1 if self._code.n_bits == 2 and self.code_matrix_ is None else 0, None)

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        if reset:
            refuse_text(self, X)
        y = checked_targets(self, y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, reset=reset)
        return X, y

    def _valid_targets(self, y: Any) -> np.ndarray:
        labels = column_or_1d(checked_targets(self, y), warn=True)
        assert_all_finite(labels, input_name="y")
        return np.asarray(labels)

    def _set_targets(self, y: np.ndarray, classes: Any = None) -> None:
        if classes is None:
            check_classification_targets(y)  # otherwise each label is checked against `classes`
        classes = np.unique(y if classes is None else classes)
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, got {len(classes)} class, "
                f"{classes.tolist()}; in a stream, announce all of them in classes."
            )
        rng = generator(self.random_state)
        self._code = code_for(self.codes, len(classes), self.n_bits, self.decoding, rng)
        self.classes_ = classes

    def _more_targets(self, classes: Any) -> None:
        if classes is not None:
            self._announce(np.unique(classes))

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

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Return the index of each label in `classes_`."""
        places = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[places] != y
        if unknown.any():
            raise ValueError(
                f"the labels {np.unique(y[unknown])[:5].tolist()} are not among the "
                f"{len(self.classes_)} classes announced so far; give all labels as classes in "
                f"the first call."
            )
        return np.asarray(places)

    @property
    def _encode(self) -> Encode:
        return self._code

    @property
    def _n_columns(self) -> int:
        return self._code.n_bits

    def _check_targets(self, y: np.ndarray, *, whole: bool = False) -> None:
        given = self.class_weight
        if isinstance(given, str) and given == "balanced":
            if not whole and not self.class_sums:
                raise ValueError(
                    "class_weight='balanced' needs all labels at once, which a stream cannot give; "
                    "use OnePassClassifier(class_sums=True), or fit, or give the weights as a dict."
                )
        elif isinstance(given, dict):
            labels = set(np.unique(y).tolist()) if whole else set()
            unknown, unnamed = given.keys() - labels, labels - given.keys()
            if unknown and unnamed:  # a class that is missing from some of the rows is no mistake
                raise ValueError(
                    f"class_weight names {next(iter(unknown))!r}, which no row has, and not "
                    f"{next(iter(unnamed))!r}; name classes as they are in y."
                )
        elif given is not None and not (self.class_sums and is_own_class(given)):
            raise ValueError(
                f"class_weight must be a dict, 'balanced' or None, or 'own-class' for a "
                f"OnePassClassifier with class_sums=True, got {given!r}."
            )

    def _row_weights(self, weights: np.ndarray | None, targets: np.ndarray) -> np.ndarray | None:
        """Multiply the weights of rows by the weights of their classes (1 unless given)."""
        if self.class_weight is None or self.class_sums:  # class sums are weighted when solved
            return weights
        counts = np.bincount(targets, minlength=len(self.classes_))
        by_class = class_factors(self.class_weight, self.classes_, counts)[targets]
        return np.asarray(by_class if weights is None else weights * by_class)
