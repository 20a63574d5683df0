"""The one decorator of every compiled loop."""

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` for the machine it runs on, once, and keep the result on disk.

    The interpreter lock is released inside, so that threads over rows run side by side. Where no
    folder can be written (a read-only image without a home), it is compiled in each process anew.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # numba: "cannot cache function: no locator available"
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
