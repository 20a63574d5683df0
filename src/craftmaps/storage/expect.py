"""Checks of objects from files, for the methods `_check_stored` of their classes."""

from typing import Any

import numpy as np


def expect(holds: bool, what: str) -> None:
    """Raise ValueError unless a fact holds; `what` describes it."""
    if not holds:
        raise ValueError(f"expected {what}")


def expect_array(name: str, array: Any, kinds: str, shape: tuple[int | None, ...]) -> None:
    """Raise ValueError unless an array has one of the kinds of dtype and the shape.

    `kinds` are NumPy's letters: "f" for floating point, "iu" for whole numbers. None in `shape`
    stands for any number.
    """
    fits = (
        isinstance(array, np.ndarray)
        and array.dtype.kind in kinds
        and array.dtype != np.float16  # a type for storage only
        and array.ndim == len(shape)
        and all(
            size is None or size == given for given, size in zip(array.shape, shape, strict=True)
        )
    )
    if not fits:
        kind = f"{array.dtype} of shape {array.shape}" if hasattr(array, "shape") else repr(array)
        raise ValueError(f"{name} is {kind}, and not of shape {shape}")


def expect_indices(name: str, array: Any, n: int, shape: tuple[int | None, ...]) -> None:
    """Raise ValueError unless an array contains only whole numbers from 0 to n - 1."""
    expect_array(name, array, "iu", shape)
    expect(array.dtype != np.uint64, f"{name} of a type that int64 can hold")  # or sums are floats
    if array.size and not (int(array.min()) >= 0 and int(array.max()) < n):
        raise ValueError(f"{name} has numbers outside of 0 to {n - 1}")
