"""Checks of parameters, random generators, and the kind of a target."""

import math
import os
import sys
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state

MAX_CLASSES_OF_NUMBERS = 100  # whole numbers with more different values are measured, not labels
_OWN_FOLDERS = tuple(
    os.path.dirname(os.path.abspath(f)) + os.sep for f in (__file__, sklearn.__file__)
)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn with the line of the user's code that called this package, directly or by scikit-learn.

    Python 3.12 can do so by itself (`skip_file_prefixes`).
    """
    frame, stacklevel = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_FOLDERS):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, category, stacklevel=stacklevel)


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from what scikit-learn accepts as random_state, or a generator itself."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


def is_integer(value: Any) -> bool:
    """Whether value is a whole number and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether value is a finite real number and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of the names in `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def is_continuous(y: Any) -> bool:
    """Whether targets are measured numbers rather than labels."""
    y = np.asarray(y)
    if y.dtype.kind not in "fiu":
        return False
    return bool((y != np.floor(y)).any()) or len(np.unique(y)) > MAX_CLASSES_OF_NUMBERS


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
