"""The one decorator of every compiled loop."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numba
from numba.core.caching import FunctionCache

from craftmaps.validation import warn


def compiled(function: Callable[..., Any], contract: bool = False) -> Callable[..., Any]:
    """Compile `function` for the machine it runs on, once, and keep the result on disk.

    The interpreter lock is released inside, so that threads over rows run side by side. Where no
    folder can be written (a read-only image without a home), it is compiled in each process anew.
    With `contract`, a product and a sum may be rounded once instead of twice, where the machine has
    an instruction for both.
    """
    flags = {"contract"} if contract else False
    loop: Any = numba.njit(nogil=True, error_model="numpy", fastmath=flags)(function)
    try:
        loop._cache = _Cache(loop.py_func)
    except RuntimeError:  # numba: "cannot cache function: no locator available"
        _tell_once(
            "no folder can be written to keep compiled loops, so every process compiles them "
            "again, which takes some seconds; set the environment variable NUMBA_CACHE_DIR to a "
            "folder that can be written."
        )
    return loop  # type: ignore[no-any-return]


def contracted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with `contract`, for arithmetic that need not be the same to the last bit."""
    return compiled(function, contract=True)


class _Cache(FunctionCache):
    """Compiled code on disk: what is wrong with its files is said, and costs time only."""

    def load_overload(self, *wanted: Any) -> Any:
        """The code for types of arguments; None if it is to be compiled."""
        try:
            return super().load_overload(*wanted)
        except Exception as error:  # a damaged pickle may raise any
            _tell_once(
                f"compiled loops in {self.cache_path} cannot be read ({_told(error)}) and are "
                f"compiled again; if this is said more than once, remove that folder, or set the "
                f"environment variable NUMBA_CACHE_DIR to another one."
            )
            with suppress(OSError):
                self.flush()  # so that the new code is found
            return None

    def save_overload(self, *compiled_code: Any) -> None:
        """Keep code for types of arguments."""
        try:
            super().save_overload(*compiled_code)
        except Exception as error:  # a full disk, for instance, or a damaged index
            _tell_once(
                f"compiled loops cannot be written to {self.cache_path} ({_told(error)}), so every "
                f"process compiles them again; make room there, or set the environment variable "
                f"NUMBA_CACHE_DIR to another folder."
            )


def _told(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


@cache
def _tell_once(message: str) -> None:
    warn(message)
