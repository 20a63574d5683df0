"""The former name of `craftmaps.models.onnx`; it will be removed in 0.3."""

import warnings
from typing import Any

from craftmaps.models import onnx

_MOVED = ("export_onnx", "register_converters")


def __getattr__(name: str) -> Any:
    """Return a name that has moved, and warn where it is now."""
    if name not in _MOVED:
        raise AttributeError(f"module 'craftmaps.deploy' has no attribute {name!r}")
    warnings.warn(
        f"craftmaps.deploy.{name} has moved to craftmaps.models.onnx.{name}; craftmaps.deploy will "
        f"be removed in 0.3.",
        FutureWarning,
        stacklevel=2,
    )
    return getattr(onnx, name)


def __dir__() -> list[str]:
    return [*globals(), *_MOVED]
