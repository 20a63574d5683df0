"""Learning from files that are larger than memory, and on clusters."""

from importlib import import_module
from typing import Any

_ROOMS = ("blocks", "dask", "spark")


def __getattr__(name: str) -> Any:
    """Import a module when it is first used, because each needs other packages."""
    if name == "read":
        from craftmaps.scale.blocks import read

        return read
    if name in _ROOMS:
        return import_module(f"craftmaps.scale.{name}")
    raise AttributeError(f"module 'craftmaps.scale' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_ROOMS, "read"]
