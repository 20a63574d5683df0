"""Models that leave the process: files and ONNX."""

import os
from typing import Any

import craftmaps.learn
import craftmaps.maps
import craftmaps.tables  # noqa: F401  (a file is read with the parts that are known)
from craftmaps.models.onnx import export_onnx
from craftmaps.storage import model_file

__all__ = ["export_onnx", "load"]


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
    return model_file.read(path)
