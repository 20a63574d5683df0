"""Validation of parameters, random generators, and the type of a target."""

import math
import sys
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

FLOATS = (np.float64, np.float32)
MAX_CLASSES_OF_NUMBERS = 100  # whole numbers with more distinct values are not labels
_FEW_CLASSES = 10  # whole numbers of a file with so few distinct values are always labels,
_ROWS_PER_CLASS = 10  # and with more, if there are so many rows for each


def generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy generator for a scikit-learn `random_state` or a generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    try:
        legacy = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be None, an integer from 0 to 2**32 - 1, a RandomState or a "
            f"Generator, got {random_state!r}."
        ) from None
    return np.random.default_rng(legacy.randint(2**31, size=4))


def is_integer(value: Any) -> bool:
    """Return whether value is an integer and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether value is a finite real number and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def valid_rows(estimator: Any, X: Any) -> Any:
    """Check rows that come after `fit`; return a floating-point array or CSR matrix.

    A plain array of finite numbers is returned at once, because the checks of scikit-learn take
    longer than the features of one row.
    """
    if (
        type(X) is np.ndarray
        and X.dtype in FLOATS
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
    ):
        with np.errstate(over="ignore", invalid="ignore"):
            if math.isfinite(X.sum()):
                return X
    return validate_data(estimator, X, accept_sparse="csr", dtype=FLOATS, reset=False)


def check_squares(name: str, values: Any) -> None:
    """Raise ValueError if the squared norm of a row of finite numbers could overflow."""
    data = values.data if sparse.issparse(values) else values
    largest = float(max(data.max(initial=0), -data.min(initial=0)))
    width = values.shape[1] if values.ndim == 2 else 1
    if largest > np.sqrt(np.finfo(data.dtype).max / max(1, width)):
        raise ValueError(
            f"{name} has values up to {largest:.3g}, whose squares are too large for {data.dtype}; "
            f"divide them by a large number first."
        )


def check_count(name: str, value: Any, least: int = 1, *, none: bool = False) -> None:
    """Raise ValueError unless `value` is an integer of at least `least`, or None if `none`."""
    if not (is_integer(value) and value >= least) and not (none and value is None):
        kind = "None or an integer" if none else "an integer"
        raise ValueError(f"{name} must be {kind} of at least {least}, got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of the names in `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def current_name(parameter: str, value: Any, renamed: dict[str, str]) -> Any:
    """Return the current name of an option, with a FutureWarning for an old name."""
    if not isinstance(value, str) or value not in renamed:
        return value
    warn_renamed(f"{parameter}={value!r}", repr(renamed[value]))
    return renamed[value]


def current_parameter(old: str, given: Any, new: str, value: Any) -> Any:
    """Return the value of a parameter that may have been passed under its old name."""
    if isinstance(given, str) and given == "deprecated":
        return value
    warn_renamed(f"the parameter {old}", new)
    return given


def warn_renamed(old: str, new: str) -> None:
    """Warn that a name of an earlier release will be removed."""
    warn(f"{old} is now called {new}; the old name will be removed in 0.3.", FutureWarning)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code, outside this package and other libraries.

    A warning that carries its parts is its own category.
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_library(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in ("craftmaps", "joblib", "numba", "sklearn")


def is_continuous(y: Any, n_rows: float | None = None) -> bool:
    """Return whether the targets are continuous numbers rather than labels.

    Whole numbers are labels if they have at most 100 distinct values. With `n_rows`, y holds the
    distinct targets of so many rows, of which nothing else is known: whole numbers are then labels
    if they have at most 10 distinct values, or at most 100 that occur in 10 rows each on average.
    """
    y = np.asarray(y)
    if y.dtype.kind not in "fiu":
        return False
    most: float = MAX_CLASSES_OF_NUMBERS
    if n_rows is not None:
        most = min(most, max(_FEW_CLASSES, n_rows / _ROWS_PER_CLASS))
    return bool((y != np.floor(y)).any()) or len(np.unique(y)) > most


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
    """Return X and Y as floating-point arrays or CSR matrices with the same number of columns."""
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    Y = X if Y is None else check_array(Y, accept_sparse="csr", dtype=X.dtype)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns and Y has {Y.shape[1]}: they must agree.")
    return X, Y
