"""Kernel machines at the price of linear ones: compact random feature maps for scikit-learn.

The public names are listed in `__all__` of the sub-packages kernels, tables, maps, search, learn
and models. A sub-package is imported when one of its names is first used, so that the command line
can start without scikit-learn.
"""

# ruff: noqa: F403 (star imports show the names to type checkers, which cannot follow __getattr__)
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftmaps.kernels import *
    from craftmaps.learn import *
    from craftmaps.maps import *
    from craftmaps.models import *
    from craftmaps.search import *
    from craftmaps.tables import *

__version__ = version("craftmaps")

_ROOMS_OF_PUBLIC_NAMES = ("kernels", "tables", "maps", "search", "learn", "models")
_MODULES = (*_ROOMS_OF_PUBLIC_NAMES, "diagnose", "scale", "deploy")


def __getattr__(name: str) -> Any:
    """Import a sub-package, or the one that defines a public name, when it is first used."""
    if name in _MODULES:
        return import_module(f"craftmaps.{name}")
    if name == "__all__":
        return sorted(name for room in _public_rooms() for name in room.__all__)
    if not name.startswith("_"):
        for room in _public_rooms():
            if name in room.__all__:
                value = globals()[name] = getattr(room, name)
                return value
    raise AttributeError(f"module 'craftmaps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__getattr__("__all__"), *_MODULES]


def _public_rooms() -> Iterator[Any]:
    return (import_module(f"craftmaps.{room}") for room in _ROOMS_OF_PUBLIC_NAMES)
