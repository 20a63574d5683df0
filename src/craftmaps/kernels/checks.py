"""What all kernels check the same way."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array


def check_number(
    kernel: object,
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    kind: type = Real,
) -> None:
    """Raise ValueError unless `value` is a number of the given kind within the given limit."""
    limit = f"above {above}" if above is not None else f"at least {least}"
    noun = "an integer" if kind is Integral else "a finite number"
    good = isinstance(value, kind) and not isinstance(value, bool)
    good = good and math.isfinite(value)
    if good and above is not None:
        good = value > above
    if good and least is not None:
        good = value >= least
    if not good:
        owner = type(kernel).__name__
        raise ValueError(f"{owner}: {name} must be {noun} {limit}, got {value!r}.")


def check_rows_pair(X: Any, Y: Any) -> tuple[Any, Any]:
    """X and Y as floating-point arrays or CSR matrices with equally many columns."""
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    Y = X if Y is None else check_array(Y, accept_sparse="csr", dtype=X.dtype)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns and Y has {Y.shape[1]}: they must agree.")
    return X, Y


def same_parameters(kernel: BaseEstimator, other: object) -> bool:
    """Whether two kernels are of one type and have equal parameters."""
    if type(kernel) is not type(other):
        return False
    mine, theirs = kernel.get_params(), other.get_params()  # type: ignore[attr-defined]
    return all(np.array_equal(mine[name], theirs[name]) for name in mine)
