"""Models that leave Python: ONNX files, and converters for pipelines of scikit-learn."""

import os
from typing import Any

_MISSING = "{} needs the package {}; install it with pip install 'craftmaps[onnx]'."


def export_onnx(estimator: Any, path: str | os.PathLike[str], *, return_std: bool = False) -> None:
    """Export a fitted map or learner to an ONNX model, which runs without Python.

    The model takes float32 rows `X` of shape (any number, n_features). A `TableEncoder`, or a
    learner that encodes tables, takes one input of shape (any number, 1) for each column that it
    encodes, under the name of the column: float64 numbers, dates as seconds since 1970, and text.
    A missing value is NaN or an empty string. `TableEncoder.onnx_inputs` makes these arrays from a
    table. The output is `features` for a map, `variable` for a regressor, and `label` and
    `probabilities` for a classifier. The model has only standard operators: transforms are products
    of small matrices, permutations are gathers, folds are sums, and convolutions are Fourier
    transforms.

    Parameters
    ----------
    estimator : fitted map, OnePassClassifier or OnePassRegressor of this library
    path : path of the file
    return_std : bool, default=False
        Whether the model of a regressor also has the output `std`, the standard deviation of each
        prediction. This takes 4 n_components^2 bytes more.

    Notes
    -----
    Rows outside of a kernel's radius of convergence raise an error in this library, but not in an
    ONNX model. To convert a pipeline with steps of scikit-learn, call `register_converters` and use
    skl2onnx.

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
    """Register the maps and learners of this library with skl2onnx, to convert pipelines.

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
