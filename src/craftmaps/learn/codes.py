"""Classes as targets of a ridge regression, and back: one-vs-rest and error-correcting codes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import helmert

from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable

DISCRIMINANT = "discriminant"
_DECODINGS = ("l2", "hamming", "loss", "pseudo-inverse")
_TRIES = 1000
_FEW = 20  # bits up to which distinct codewords are drawn as distinct numbers
_RANDOM_BITS = 200  # as the papers use
_NO_SHARE = 1e-12  # of a class in all rows: what rounding leaves of none


@storable
class Unchanged:
    """Targets of a regression, which need no code."""

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return targets


@storable
class OneVsRest:
    """One target per class: 1 on its rows, -1 on all others."""

    n_classes: int
    n_bits: int

    def __init__(self, n_classes: int) -> None:
        self.n_classes = self.n_bits = n_classes

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """The targets of rows whose classes are numbered by `labels`."""
        targets = np.full((len(labels), self.n_classes), -1.0, dtype=np.float32)
        targets[np.arange(len(labels)), labels] = 1.0
        return targets

    __call__ = encode

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """A score per class, the largest of which wins."""
        return predicted

    def _check_stored(self) -> None:
        expect(self.n_bits == self.n_classes >= 2, "one bit for each of at least two classes")


@storable
@dataclass(frozen=True)
class OneBit:
    """Two classes as one target, -1 or 1, whose prediction is the logarithm of their odds."""

    n_classes: ClassVar[int] = 2
    n_bits: ClassVar[int] = 1

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """The target of rows whose classes are numbered 0 and 1 by `labels`."""
        return np.where(labels == 1, np.float32(1), np.float32(-1))[:, None]

    __call__ = encode

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """A score per class; their difference is the prediction."""
        return np.hstack([-predicted / 2, predicted / 2])


@storable
@dataclass(frozen=True)
class Discriminant:
    """Linear discriminants among one-vs-rest predictions f: scores f A + b.

    The largest prediction wins wrongly where a class is masked by others that lie on both sides of
    it, which happens the more often the more classes there are. Linear discriminant analysis of
    the predictions asks instead to which mean of a class they are nearest, by the spread within
    classes (Hastie, Tibshirani and Buja, "Flexible Discriminant Analysis by Optimal Scoring",
    1994).
    """

    matrix: np.ndarray
    offset: np.ndarray

    @classmethod
    def learn(
        cls,
        share: np.ndarray,
        mean: np.ndarray,
        sums: np.ndarray,
        covariance: np.ndarray,
        eps: float,
        same_sum: bool,
    ) -> "Discriminant":
        """From moments of the predictions.

        Parameters
        ----------
        share : ndarray of shape (n_classes,)
            Of each class in all rows. One that no row has had scores less than the mean of the
            others, so that it never wins.
        mean : ndarray of shape (n_classes,)
            Of all predictions.
        sums : ndarray of shape (n_classes, n_classes)
            Row k is the sum over the rows of class k, less `mean`, by the number of all rows.
        covariance : ndarray of shape (n_classes, n_classes)
            Of all predictions, about `mean`.
        eps : float
            Relative precision of the moments.
        same_sum : bool
            Whether predictions have the same sum for every row, as their targets have. Then it
            tells nothing of classes: it has no spread but that of rounding, which would be blown
            up, and is left out.
        """
        seen = share > _NO_SHARE
        deviations = sums / np.where(seen, share, 1.0)[:, None]
        within = covariance - (deviations.T * share) @ deviations
        basis = helmert(len(share), full=not same_sum).T
        values, vectors = np.linalg.eigh(basis.T @ within @ basis)
        vectors = basis @ vectors
        least = 10 * eps * np.trace(covariance) or 1.0  # what rounding tells from no spread
        matrix = vectors / np.maximum(values, least) @ (vectors.T @ deviations.T)
        distance = np.einsum("kj,jk->k", deviations, matrix) / 2
        offset = np.log(np.where(seen, share, 1.0)) - distance - mean @ matrix
        matrix[:, ~seen] = matrix[:, seen].mean(axis=1, keepdims=True)
        offset[~seen] = offset[seen].mean() + np.log(_NO_SHARE)
        return cls(matrix, offset)

    @classmethod
    def of_rows(
        cls, predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray, same_sum: bool
    ) -> "Discriminant":
        """From predictions for rows, their classes and weights."""
        member = (labels[:, None] == np.arange(predicted.shape[1])) * weights[:, None]
        total, eps = weights.sum(), float(np.finfo(predicted.dtype).eps)
        share, mean = member.sum(axis=0) / total, weights @ predicted / total
        centred = predicted - mean
        sums, squares = member.T @ centred, (centred.T * weights) @ centred
        return cls.learn(share, mean, sums / total, squares / total, eps, same_sum)

    def _check_stored(self) -> None:
        expect_array("matrix", self.matrix, "f", (len(self.offset), len(self.offset)))
        expect_array("offset", self.offset, "f", (None,))

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities of Gaussian classes, up to a constant of the row."""
        matrix, offset = (a.astype(predicted.dtype) for a in (self.matrix, self.offset))
        return np.asarray(predicted @ matrix + offset)


@storable
class CodeMatrix:
    """Each class is a row of a code matrix M, each column of M a target (Dietterich and Bakiri).

    Parameters
    ----------
    matrix : array of shape (n_classes, n_bits)
        No two rows alike, no column constant.
    decoding : {"l2", "hamming", "loss", "pseudo-inverse"}
        How predictions f become scores of classes, per bit: "l2" is minus half the squared
        distance to the codeword (up to a constant of the row); "hamming" is minus the share of
        bits whose sign differs; "loss" is minus the mean hinge loss max(0, 1 - M_kb f_b) (Allwein,
        Schapire and Singer 2000); "pseudo-inverse" is f M^+, which undoes the code: with n_bits >=
        n_classes independent bits it predicts what one-vs-rest does.

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
        """The targets of rows whose classes are numbered by `labels`."""
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
        """A score per class, the largest of which wins; shape (n_rows, n_classes)."""
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
    """What the parameters `codes`, `n_bits` and `decoding` of a classifier ask for."""
    if isinstance(codes, str) and codes == "one-vs-rest":
        if n_bits is not None:
            raise ValueError(
                "codes='one-vs-rest' has one bit per class; n_bits is for 'random' and 'hadamard'."
            )
        if decoding not in (*_DECODINGS, DISCRIMINANT):
            return CodeMatrix([[-1], [1]], decoding)  # raises, naming the choices
        return OneVsRest(n_classes)
    if decoding == DISCRIMINANT:
        raise ValueError(
            f"decoding={decoding!r} needs the mean of each class, which the sums of "
            f"codes='one-vs-rest' have and those of other codes have not."
        )
    if isinstance(codes, str) and codes == "random":
        return CodeMatrix(
            random_code(n_classes, _RANDOM_BITS if n_bits is None else n_bits, rng), decoding
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


def random_code(n_classes: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """Independent signs, drawn again where two rows are alike or a column is constant."""
    _check_bits(n_classes, n_bits)
    for _ in range(_TRIES):
        if n_bits <= _FEW:
            words = rng.choice(2**n_bits, n_classes, replace=False)
            bits = words[:, None] >> np.arange(n_bits) & 1
        else:
            bits = rng.integers(0, 2, (n_classes, n_bits))
        code: np.ndarray = (2 * bits - 1).astype(np.float32)
        constant = np.flatnonzero((code == code[0]).all(axis=0))
        while constant.size:
            code[:, constant] = 2 * rng.integers(0, 2, (n_classes, constant.size)) - 1
            constant = constant[(code[:, constant] == code[0, constant]).all(axis=0)]
        if not _duplicate(code):
            return code
    raise ValueError(f"no usable code of {n_bits} bits was found; raise n_bits.")


def hadamard_code(n_classes: int, n_bits: int | None, rng: np.random.Generator) -> np.ndarray:
    """Rows of a Hadamard matrix without its constant column: M M^T = (n_bits + 1) I - 1.

    Another number of bits than that matrix has columns is a random choice among the columns of
    that matrix, or of random rows of a larger one; it is orthogonal on average only.
    """
    least = order = 1 << max(1, (n_classes - 1).bit_length())
    if n_bits is None:
        n_bits = order - 1
    _check_bits(n_classes, n_bits)
    while order - 1 < n_bits:
        order *= 2
    for attempt in range(1, _TRIES):
        rows = rng.choice(order, n_classes, replace=False)
        if order == least:
            rows = np.arange(n_classes)
        columns = 1 + rng.choice(order - 1, min(order - 1, 2 * n_bits), replace=False)
        code = _sylvester(rows, np.sort(columns) if n_bits == order - 1 else columns)
        code = code[:, (code != code[0]).any(axis=0)][:, :n_bits]
        if code.shape[1] == n_bits and not _duplicate(code):
            return code
        if attempt % 50 == 0:  # few rows of a matrix of this order seldom have enough columns
            order *= 2
    raise ValueError(
        f"no choice of {n_bits} Hadamard columns tells {n_classes} classes apart; raise n_bits."
    )


def _sylvester(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Entries of Sylvester's Hadamard matrix: -1 to the number of common bits of i and j."""
    common = np.bitwise_count(rows[:, None].astype(np.int32) & columns.astype(np.int32))
    return np.asarray(1 - 2 * (common & 1).astype(np.float32))


def _check_bits(n_classes: int, n_bits: int) -> None:
    if isinstance(n_bits, bool) or not isinstance(n_bits, int | np.integer) or n_bits < 1:
        raise ValueError(f"n_bits must be None or an integer of at least 1, got {n_bits!r}.")
    if n_classes > 2 ** min(n_bits, 62):
        raise ValueError(
            f"n_bits={n_bits} can tell {2**n_bits} classes apart, but there are {n_classes}; use "
            f"at least {(n_classes - 1).bit_length()}."
        )


def _duplicate(code: np.ndarray) -> bool:
    return len(np.unique(code, axis=0)) < len(code)


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
        raise ValueError(f"row {row} of the code matrix occurs twice: two classes have one code.")
    constant = np.flatnonzero((code == code[0]).all(axis=0))
    if constant.size:
        raise ValueError(
            f"column {constant[0]} of the code matrix is constant: that bit tells nothing."
        )
    return code


def _inverse(code: np.ndarray) -> np.ndarray:
    """M^+, if f M M^+ orders classes as f does: M M^+ is the identity, up to equal columns."""
    inverse = np.linalg.pinv(code.astype(np.float64))
    error = np.eye(len(code)) - code @ inverse
    if np.abs(error - error.mean()).max() > 1e-6:
        raise ValueError(
            f"decoding='pseudo-inverse' needs as many independent bits as classes, but the code of "
            f"{len(code)} classes has rank {np.linalg.matrix_rank(code)}; use 'l2', or more bits."
        )
    return inverse
