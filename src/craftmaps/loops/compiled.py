"""The decorator for all compiled loops."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numba
from numba.core.caching import FunctionCache

from craftmaps.validation import warn


def compiled(function: Callable[..., Any], contract: bool = False) -> Callable[..., Any]:
    """Compile `function` for this machine when it is first called, and cache the result on disk.

    The function releases the interpreter lock, so threads can process rows in parallel. If no
    folder is writable, as in a read-only image without a home folder, every process compiles again.
    With `contract`, a product and a sum may be rounded once instead of twice if the machine has a
    fused instruction.
    """
    flags = {"contract"} if contract else False
    loop: Any = numba.njit(nogil=True, error_model="numpy", fastmath=flags)(function)
    try:
        loop._cache = _Cache(loop.py_func)
    except RuntimeError:  # numba: "cannot cache function: no locator available"
        _tell_once(
            "no folder is writable for compiled loops, so every process compiles them again, which "
            "takes some seconds; set the environment variable NUMBA_CACHE_DIR to a writable "
            "folder."
        )
    return loop  # type: ignore[no-any-return]


def contracted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with `contract`, for results that need not agree to the last bit."""
    return compiled(function, contract=True)


class _Cache(FunctionCache):
    """A cache of compiled code on disk, whose errors become warnings."""

    def load_overload(self, *wanted: Any) -> Any:
        """Return the code for the types of arguments, or None to compile it."""
        try:
            return super().load_overload(*wanted)
        except Exception as error:  # a damaged pickle may raise any
            _tell_once(
                f"compiled loops in {self.cache_path} cannot be read ({_told(error)}) and are "
                f"compiled again; if this message returns, remove that folder, or set the "
                f"environment variable NUMBA_CACHE_DIR to another one."
            )
            with suppress(OSError):
                self.flush()  # so that the new code is found
            return None

    def save_overload(self, *compiled_code: Any) -> None:
        """Store the code for the types of arguments."""
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
