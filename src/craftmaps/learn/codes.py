"""Codes that turn classes into regression targets, and predictions into scores of classes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from craftmaps.learn.code_matrices import hadamard_code, random_code
from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable

Encode = Callable[[np.ndarray], np.ndarray]  # turns targets as rows have them into a matrix
DISCRIMINANT = "discriminant"
_DECODINGS = ("l2", "hamming", "loss", "pseudo-inverse")
_DEFAULT_RANDOM_BITS = 200  # as in the papers


@storable
class Unchanged:
    """The code of a regression, which leaves targets unchanged."""

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return targets


@storable
class OneVsRest:
    """One target per class: 1 for its own rows, -1 for all others."""

    n_classes: int
    n_bits: int

    def __init__(self, n_classes: int) -> None:
        self.n_classes = self.n_bits = n_classes

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """Return the targets of rows, given the index of the class of each row."""
        targets = np.full((len(labels), self.n_classes), -1.0, dtype=np.float32)
        targets[np.arange(len(labels)), labels] = 1.0
        return targets

    __call__ = encode

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """Return one score per class; the largest score wins."""
        return predicted

    def _check_stored(self) -> None:
        expect(self.n_bits == self.n_classes >= 2, "one bit for each of at least two classes")


@storable
@dataclass(frozen=True)
class OneBit:
    """Two classes as one target, -1 or 1, whose prediction is the log-odds of class 1."""

    n_classes: ClassVar[int] = 2
    n_bits: ClassVar[int] = 1

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """Return the targets of rows, given the class of each row as 0 or 1."""
        return np.where(labels == 1, np.float32(1), np.float32(-1))[:, None]

    __call__ = encode

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """Return one score per class; the difference of the two is the prediction."""
        return np.hstack([-predicted / 2, predicted / 2])


@storable
class CodeMatrix:
    """A code matrix M: rows are classes and columns are targets (Dietterich and Bakiri 1995).

    Parameters
    ----------
    matrix : array of shape (n_classes, n_bits)
        Rows must differ from each other, and no column may be constant.
    decoding : {"l2", "hamming", "loss", "pseudo-inverse"}
        How predictions f become scores of classes. "l2" is minus half the squared distance to
        the codeword, up to a constant for each row. "hamming" is minus the share of bits whose sign
        differs. "loss" is minus the mean hinge loss max(0, 1 - M_kb f_b) (Allwein, Schapire and
        Singer 2000). "pseudo-inverse" is f M^+, which inverts the code: with n_bits >= n_classes
        independent bits it gives the same predictions as one-vs-rest.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps.learn.codes import CodeMatrix
    >>> code = CodeMatrix([[1, 1, 1], [-1, 1, -1], [1, -1, -1]], "hamming")
    >>> code.scores(np.array([[0.1, -0.5, -2.0]])).argmax(axis=1)
    array([2])
    """

    matrix: np.ndarray
    n_classes: int
    n_bits: int
    decoding: str
    _inverse: np.ndarray | None

    def __init__(self, matrix: Any, decoding: str) -> None:
        self.matrix = _checked(matrix)
        self.n_classes, self.n_bits = self.matrix.shape
        if decoding not in _DECODINGS:
            listed = ", ".join(map(repr, (*_DECODINGS, DISCRIMINANT)))
            raise ValueError(f"decoding must be one of {listed}, got {decoding!r}.")
        if decoding in ("hamming", "loss") and not (np.abs(self.matrix) == 1).all():
            raise ValueError(
                f"decoding={decoding!r} needs a code matrix of 1 and -1; use 'l2' for others."
            )
        self.decoding = decoding
        self._inverse = _inverse(self.matrix) if decoding == "pseudo-inverse" else None

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """Return the targets of rows, given the index of the class of each row."""
        return np.asarray(self.matrix[labels])

    __call__ = encode

    def _check_stored(self) -> None:
        expect(self.decoding in _DECODINGS, f"decoding={self.decoding!r}")
        expect(self.n_bits >= 1 and self.n_classes >= 2, "at least one bit and two classes")
        expect_array("matrix", self.matrix, "f", (self.n_classes, self.n_bits))
        if self.decoding == "pseudo-inverse":
            expect_array("inverse", self._inverse, "f", (self.n_bits, self.n_classes))
        else:
            expect(self._inverse is None, "no inverse")

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """Return scores of shape (n_rows, n_classes); the largest score wins."""
        code = self.matrix.astype(predicted.dtype, copy=False)
        if self.decoding == "l2":
            return np.asarray((predicted @ code.T - np.square(code).sum(axis=1) / 2) / self.n_bits)
        if self.decoding == "hamming":
            # M.sign(f) = agreeing bits - differing bits; f = 0 counts as half a bit
            return np.asarray((np.sign(predicted) @ code.T / self.n_bits - 1) / 2)
        if self._inverse is not None:
            return np.asarray(predicted @ self._inverse.astype(predicted.dtype, copy=False))
        positive = (code + 1) / 2
        loss_if_positive = np.maximum(0, 1 - predicted)
        loss_if_negative = np.maximum(0, 1 + predicted)
        difference = loss_if_positive - loss_if_negative
        loss = difference @ positive.T + loss_if_negative.sum(axis=1, keepdims=True)
        return np.asarray(-loss / self.n_bits)


def code_for(
    codes: Any, n_classes: int, n_bits: int | None, decoding: str, rng: np.random.Generator
) -> OneVsRest | CodeMatrix:
    """Return the code that a classifier's `codes`, `n_bits` and `decoding` describe."""
    if isinstance(codes, str) and codes == "one-vs-rest":
        if n_bits is not None:
            raise ValueError(
                "codes='one-vs-rest' has one bit per class; n_bits is for 'random' and 'hadamard'."
            )
        if decoding not in (*_DECODINGS, DISCRIMINANT):
            return CodeMatrix([[-1], [1]], decoding)  # raises an error that lists the choices
        return OneVsRest(n_classes)
    if decoding == DISCRIMINANT:
        raise ValueError(
            f"decoding={decoding!r} needs the mean of each class, which only "
            f"codes='one-vs-rest' has in its sums; use that code, or another decoding."
        )
    if isinstance(codes, str) and codes == "random":
        return CodeMatrix(
            random_code(n_classes, _DEFAULT_RANDOM_BITS if n_bits is None else n_bits, rng),
            decoding,
        )
    if isinstance(codes, str) and codes == "hadamard":
        return CodeMatrix(hadamard_code(n_classes, n_bits, rng), decoding)
    if isinstance(codes, str):
        raise ValueError(
            f"codes must be 'one-vs-rest', 'random', 'hadamard' or a matrix, got {codes!r}."
        )
    code = CodeMatrix(codes, decoding)
    if code.n_classes != n_classes:
        raise ValueError(
            f"the code matrix has {code.n_classes} rows, but there are {n_classes} classes; give "
            f"one row per class, in the order of classes_."
        )
    return code


def _checked(matrix: Any) -> np.ndarray:
    try:
        code: np.ndarray = np.asarray(matrix, dtype=np.float32)
    except (TypeError, ValueError):
        code = np.empty(0)
    if code.ndim != 2 or not np.isfinite(code).all() or not code.size:
        raise ValueError("a code matrix must be a finite matrix of shape (n_classes, n_bits).")
    _, first, counts = np.unique(code, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = int(first[counts > 1][0])
        raise ValueError(
            f"row {row} of the code matrix occurs twice; give each class its own code."
        )
    constant = np.flatnonzero((code == code[0]).all(axis=0))
    if constant.size:
        raise ValueError(
            f"column {constant[0]} of the code matrix is constant, so it does not separate any "
            f"classes; remove it."
        )
    return code


def _inverse(code: np.ndarray) -> np.ndarray:
    """Return M^+ if M M^+ is the identity plus a constant, so that f M M^+ ranks as f does."""
    inverse = np.linalg.pinv(code.astype(np.float64))
    error = np.eye(len(code)) - code @ inverse
    if np.abs(error - error.mean()).max() > 1e-6:
        raise ValueError(
            f"decoding='pseudo-inverse' needs as many independent bits as classes, but the code of "
            f"{len(code)} classes has rank {np.linalg.matrix_rank(code)}; use 'l2', or more bits."
        )
    return inverse
