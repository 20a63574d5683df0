"""What the parts of maps have in common, and how a stored part is checked."""

from typing import Any, Protocol

import numpy as np


class Part(Protocol):
    """What a map has drawn: a frozen value that turns rows into columns.

    A part is a frozen dataclass marked `@storable`, drawn by a class method or a function that
    takes the random generator. `n_in` is the number of columns of the rows that it takes, `n_out`
    the number of columns of the buffer that it fills.
    """

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Write the columns for the rows of X into `out`, in the precision of `out`."""

    def check(self, n_in: int, n_out: int) -> None:
        """Raise ValueError unless every index stays within its array.

        Compiled loops do not check indices. A part that was drawn is sound; one that comes from a
        file may hold anything.
        """

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        """Add what `fill` computes to the ONNX graph `g`; return the name of the result."""


def check_facts(part: object, **facts: bool) -> None:
    """Raise ValueError with the names of the arrays about which a fact does not hold."""
    wrong = ", ".join(name for name, holds in facts.items() if not holds)
    if wrong:
        raise ValueError(f"the arrays of {type(part).__name__} do not fit together: {wrong}")


def is_within(array: np.ndarray, least: int, most: int) -> bool:
    """Whether all entries are whole numbers from `least` to `most`."""
    if not is_whole(array):
        return False
    return not array.size or bool(array.min() >= least and array.max() <= most)


def is_whole(array: np.ndarray) -> bool:
    """Whether an array is of a type that compiled loops take as indices.

    Together with an int64, a uint64 would become a floating-point number.
    """
    return array.dtype.kind in "iu" and array.dtype != np.uint64


def is_sorted(array: np.ndarray, most: int) -> bool:
    """Whether entries are whole numbers from 0 to `most` in increasing order."""
    return (
        array.ndim == 1
        and is_within(array, 0, most)
        and bool((np.diff(array.astype(np.int64)) >= 0).all())
    )
