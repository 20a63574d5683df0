"""Code matrices for many classes: random signs, or columns of a Hadamard matrix."""

import numpy as np

from craftmaps.validation import check_count

_MAX_ATTEMPTS = 1000
_MAX_BITS_TO_ENUMERATE = 20  # shorter codewords are drawn as distinct integers


def random_code(n_classes: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """Draw independent signs until no two rows are equal and no column is constant."""
    _check_bits(n_classes, n_bits)
    for _ in range(_MAX_ATTEMPTS):
        if n_bits <= _MAX_BITS_TO_ENUMERATE:
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
    """Take rows of a Hadamard matrix without its constant column: M M^T = (n_bits + 1) I - 1.

    For any other number of bits, columns of this matrix, or of random rows of a larger one, are
    chosen at random. Such a code is orthogonal only on average.
    """
    least = order = 1 << max(1, (n_classes - 1).bit_length())
    if n_bits is None:
        n_bits = order - 1
    _check_bits(n_classes, n_bits)
    while order - 1 < n_bits:
        order *= 2
    for attempt in range(1, _MAX_ATTEMPTS):
        rows = rng.choice(order, n_classes, replace=False)
        if order == least:
            rows = np.arange(n_classes)
        columns = 1 + rng.choice(order - 1, min(order - 1, 2 * n_bits), replace=False)
        code = _sylvester(rows, np.sort(columns) if n_bits == order - 1 else columns)
        code = code[:, (code != code[0]).any(axis=0)][:, :n_bits]
        if code.shape[1] == n_bits and not _duplicate(code):
            return code
        if attempt % 50 == 0:  # a few rows of this matrix rarely have enough distinct columns
            order *= 2
    raise ValueError(
        f"no choice of {n_bits} Hadamard columns tells {n_classes} classes apart; raise n_bits."
    )


def _sylvester(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Compute entries (i, j) of Sylvester's Hadamard matrix: (-1)^(number of common bits).

    `scipy.linalg.hadamard` makes the whole matrix, which has 16,384^2 entries for 10,000 classes.
    """
    common = np.bitwise_count(rows[:, None].astype(np.int32) & columns.astype(np.int32))
    return np.asarray(1 - 2 * (common & 1).astype(np.float32))


def _check_bits(n_classes: int, n_bits: int) -> None:
    check_count("n_bits", n_bits, none=True)
    if n_classes > 2 ** min(n_bits, 62):
        raise ValueError(
            f"n_bits={n_bits} can tell {2**n_bits} classes apart, but there are {n_classes}; use "
            f"at least {(n_classes - 1).bit_length()}."
        )


def _duplicate(code: np.ndarray) -> bool:
    return len(np.unique(code, axis=0)) < len(code)
