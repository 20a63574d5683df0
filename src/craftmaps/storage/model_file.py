"""Models on disk, safe to open."""

import os
from typing import Any

from craftmaps.storage import array_file
from craftmaps.storage.packing import Packer, Unpacker

MODELS = (
    "RandomMaclaurin",
    "TensorSketch",
    "CraftMap",
    "FourierFeatures",
    "Nystroem",
    "CompositionalMap",
    "ScaledMap",
    "MetricMap",
    "ImageMap",
    "OnePassClassifier",
    "OnePassRegressor",
)


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted map or learner to one file."""
    if type(estimator).__name__ not in MODELS:
        raise ValueError(f"maps and learners of craftmaps can be saved, got {estimator!r}.")
    packer = Packer()
    tree = packer.pack(estimator, type(estimator).__name__)
    array_file.write(path, "model", {"model": tree}, packer.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """The map or learner that `save` wrote to a file.

    The file is checked before it is used: one that is truncated, altered, of another program or of
    a later version of the library is refused with a ValueError that says so. Opening it executes
    nothing that it contains.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    the estimator, fitted

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import craftmaps
    >>> X = np.random.default_rng(0).random((50, 4))
    >>> feature_map = craftmaps.TensorSketch(n_components=64, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "map.craft")
    ...     feature_map.save(path)
    ...     again = craftmaps.load(path)
    >>> bool((again.transform(X) == feature_map.transform(X)).all())
    True
    """
    header, arrays = array_file.read(path, "model")
    try:
        model = Unpacker(arrays).unpack(header["model"])
        if type(model).__name__ not in MODELS:
            raise TypeError("neither a map nor a learner")
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{path} is refused: its parts do not make a model ({error}).") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is refused: its parts are too deep or too large.") from error
    return model
