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
    """Load a map, an encoder or a learner from a file that `save` wrote.

    The file is checked before it is used. A file that is truncated, altered, or written by another
    program or a later version of the library raises a ValueError that says so. A file contains no
    code, so loading it runs none.

    Parameters
    ----------
    path : str or path-like
        Path of the file.

    Returns
    -------
    estimator
        The fitted map, encoder or learner.

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
