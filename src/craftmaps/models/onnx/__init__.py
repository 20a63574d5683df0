"""Models that leave Python: ONNX files, and converters for pipelines of scikit-learn."""

import os
from typing import Any

_MISSING = "{} needs the package {}; install it with pip install 'craftmaps[onnx]'."


def export_onnx(estimator: Any, path: str | os.PathLike[str], *, return_std: bool = False) -> None:
    """Write a fitted map or learner as an ONNX model, which runs without Python.

    The model takes float32 rows `X` of shape (any number, n_features). A `TableEncoder`, or a
    learner that encodes tables, takes one input of shape (any number, 1) for each column that it
    encodes, under the name of the column: float64 numbers, dates as seconds since 1970, and text.
    A missing value is NaN, or an empty text; `TableEncoder.onnx_inputs` makes these arrays of a
    table. The model gives `features` for a
    map, `variable` for a regressor, `label` and `probabilities` for a classifier. It is made of
    standard operators: transforms as products of small matrices, permutations as gathers, folds as
    sums, convolutions as Fourier transforms.

    Parameters
    ----------
    estimator : fitted map, OnePassClassifier or OnePassRegressor of this library
    path : path of the file
    return_std : bool, default=False
        Whether the model of a regressor gives `std`, the standard deviation of each prediction,
        too. That takes 4 n_components^2 bytes more.

    Notes
    -----
    Rows that a kernel's radius of convergence excludes are refused by this library, and not by an
    ONNX model. A pipeline with steps of scikit-learn is converted by skl2onnx, after
    `register_converters`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from craftmaps import OnePassClassifier, TensorSketch, export_onnx
    >>> X = np.random.default_rng(0).random((100, 4), dtype=np.float32)
    >>> y = X[:, 0] > X[:, 1]
    >>> model = OnePassClassifier(TensorSketch(n_components=64, random_state=0)).fit(X, y)
    >>> import onnxruntime
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(model, Path(folder, "model.onnx"))
    ...     session = onnxruntime.InferenceSession(Path(folder, "model.onnx"))
    >>> label, probabilities = session.run(None, {"X": X})
    >>> bool((label == model.predict(X)).all())
    True
    """
    try:
        from craftmaps.models.onnx.export import write
    except ModuleNotFoundError as error:
        raise ImportError(_MISSING.format("export_onnx", error.name)) from error
    write(estimator, path, return_std)


def register_converters() -> None:
    """Teach skl2onnx the maps and learners of this library, so that it converts pipelines of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skl2onnx import to_onnx
    >>> from craftmaps import FourierFeatures
    >>> from craftmaps.models.onnx import register_converters
    >>> X = np.random.default_rng(0).random((100, 4), dtype=np.float32)
    >>> pipeline = make_pipeline(FourierFeatures(n_components=64), LogisticRegression())
    >>> register_converters()
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = to_onnx(pipeline.fit(X, y), X[:1])
    >>> "Cos" in [node.op_type for node in model.graph.node]
    True
    """
    try:
        from craftmaps.models.onnx.converters import register
    except ModuleNotFoundError as error:
        raise ImportError(_MISSING.format("register_converters", error.name)) from error
    register()
