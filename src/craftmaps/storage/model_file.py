"""Write and read models."""

import os
from typing import Any

from craftmaps.storage import array_file
from craftmaps.storage.packing import Packer, Unpacker


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted map or learner to one file."""
    if not hasattr(type(estimator), "save"):
        raise ValueError(f"maps and learners of craftmaps can be saved, got {estimator!r}.")
    packer = Packer()
    tree = packer.pack(estimator, type(estimator).__name__)
    array_file.write(path, "model", {"model": tree}, packer.arrays)


def read(path: str | os.PathLike[str]) -> Any:
    """Read the model in a file, whose classes must have been imported; see `craftmaps.load`."""
    header, arrays = array_file.read(path, "model")
    try:
        model = Unpacker(arrays).unpack(header["model"])
        if not hasattr(type(model), "save"):
            raise TypeError("neither a map nor a learner")
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{path} is refused: its parts do not make a model ({error}).") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is refused: its parts are too deep or too large.") from error
    return model
