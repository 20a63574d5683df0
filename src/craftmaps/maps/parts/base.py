"""The interface of the parts of maps, and checks of stored parts."""

from typing import Any, Protocol

import numpy as np


class Part(Protocol):
    """A drawn part of a map, which turns rows into columns.

    A part is a frozen dataclass marked `@storable`. A class method or a function draws it with a
    random generator. `n_in` is the number of columns of its input rows, and `n_out` the number of
    columns of the array that it fills.
    """

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Write the columns for the rows of X into `out`, in the precision of `out`."""

    def check(self, n_in: int, n_out: int) -> None:
        """Raise ValueError unless every index stays within its array.

        Compiled loops do not check indices. A part that was drawn is valid, but a part from a file
        may contain anything.
        """

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        """Add what `fill` computes to the ONNX graph `g`; return the name of the result."""


def check_facts(part: object, **facts: bool) -> None:
    """Raise ValueError that names the arrays whose fact is false."""
    wrong = ", ".join(name for name, holds in facts.items() if not holds)
    if wrong:
        raise ValueError(f"the arrays of {type(part).__name__} do not fit together: {wrong}")


def is_within(array: np.ndarray, least: int, most: int) -> bool:
    """Return whether all entries are integers from `least` to `most`."""
    if not is_whole(array):
        return False
    return not array.size or bool(array.min() >= least and array.max() <= most)


def is_whole(array: np.ndarray) -> bool:
    """Return whether compiled loops can use an array as indices.

    uint64 is excluded, because combined with int64 it becomes floating point.
    """
    return array.dtype.kind in "iu" and array.dtype != np.uint64


def is_sorted(array: np.ndarray, most: int) -> bool:
    """Return whether the entries are integers from 0 to `most` in increasing order."""
    return (
        array.ndim == 1
        and is_within(array, 0, most)
        and bool((np.diff(array.astype(np.int64)) >= 0).all())
    )
