"""Learners as ONNX: features, a matrix product, and the decoding of classes."""

from typing import Any

import numpy as np
from onnx import TensorProto

from craftmaps.learn import KernelPCA, OnePassClassifier, OnePassRegressor
from craftmaps.learn.codes import CodeMatrix, OneBit, OneVsRest
from craftmaps.learn.discriminant import Discriminant
from craftmaps.maps.base import onnx_features
from craftmaps.models.onnx.graph import Graph
from craftmaps.tables import TableEncoder


def outputs(
    g: Graph, x: str, fitted: Any, *, raw_scores: bool = False, return_std: bool = False
) -> dict[str, str]:
    """Add a fitted estimator to the graph, and return its outputs: tensors by their names.

    With `raw_scores`, the scores of decision_function replace probabilities. With
    `return_std`, the standard deviations of a regressor follow its predictions.
    """
    if return_std and not isinstance(fitted, OnePassRegressor):
        raise ValueError(f"return_std is for regressors, got a {type(fitted).__name__}.")
    if isinstance(fitted, OnePassRegressor):
        z = _features(g, x, fitted)
        results = {"variable": _within(g, _linear(g, z, fitted), fitted._limits())}
        return results | {"std": _deviations(g, z, fitted)} if return_std else results
    if isinstance(fitted, OnePassClassifier):
        z = _features(g, x, fitted)
        scores = _scores(g, _linear(g, z, fitted), fitted.decoder_)
        winner = g.add("ArgMax", scores, axis=1, keepdims=0)
        label = g.add("Gather", labels_of(fitted.classes_), winner, axis=0)
        if raw_scores:
            return {"label": label, "probabilities": _decisions(g, scores, fitted)}
        scaled = g.add("Mul", scores, float(fitted.temperature_))
        return {"label": label, "probabilities": g.add("Softmax", scaled, axis=1)}
    if isinstance(fitted, TableEncoder):
        return {"features": x}
    if isinstance(fitted, KernelPCA):
        return {"features": _linear(g, _features(g, x, fitted), fitted)}
    return {"features": onnx_features(g, x, fitted)}


def labels_of(classes: np.ndarray) -> np.ndarray:
    """Convert classes to types that ONNX supports: strings, int64 or float32."""
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float32)
    raise ValueError(f"classes of {classes.dtype} are neither numbers nor strings, as ONNX needs.")


def _features(g: Graph, x: str, fitted: Any) -> str:
    fitted.solve()  # raises an error if it is not fitted
    return onnx_features(g, x, fitted.feature_map_)


def _linear(g: Graph, z: str, fitted: Any) -> str:
    solution = fitted.solution_
    product = g.add("MatMul", z, solution.coef.astype(np.float32))
    return g.add("Add", product, solution.intercept.astype(np.float32))


def _within(g: Graph, predicted: str, limits: tuple[np.ndarray, np.ndarray] | None) -> str:
    """Predictions within their limits, if they have any."""
    if limits is None:
        return predicted
    least, most = (limit.astype(np.float32) for limit in limits)
    return g.add("Min", g.add("Max", predicted, least), most)


def _deviations(g: Graph, z: str, fitted: Any) -> str:
    """Add s sqrt(1 + h) for each row and target, in float64 if terms of h may cancel."""
    posterior, conformal = fitted._uncertainty(single=True)
    posterior = fitted._known(posterior)
    dtype = posterior.root.dtype
    z = g.double(z) if dtype == np.float64 else z
    centred = g.add("Sub", z, posterior.centre.astype(dtype))
    h = _squares(g, g.add("MatMul", centred, posterior.root))
    if posterior.prior:
        outside = g.add("Relu", g.add("Sub", _squares(g, centred), h))
        h = g.add("Mul", outside, np.asarray(posterior.prior, dtype))
    factor = g.add("Sqrt", g.add("Add", h, np.asarray(1 + posterior.base, dtype)))
    return g.add("Mul", g.single(factor), conformal.deviation()[None].astype(np.float32))


def _squares(g: Graph, rows: str) -> str:
    """Add the squared length of each row, as a column."""
    return g.add("ReduceSum", g.add("Mul", rows, rows), [1], keepdims=1)


def _scores(g: Graph, predicted: str, code: OneVsRest | OneBit | CodeMatrix | Discriminant) -> str:
    """Add a score per class; see `CodeMatrix.scores`."""
    if isinstance(code, OneVsRest):
        return predicted
    if isinstance(code, OneBit):
        return g.add("MatMul", predicted, g.floats(np.array([[-0.5, 0.5]])))
    if isinstance(code, Discriminant):
        product = g.add("MatMul", predicted, g.floats(code.matrix))
        return g.add("Add", product, g.floats(code.offset))
    matrix, share = code.matrix.astype(np.float64), 1 / code.n_bits
    if code.decoding == "l2":
        half = np.square(matrix).sum(axis=1) / 2
        product = g.add("MatMul", predicted, g.floats(share * matrix.T))
        return g.add("Sub", product, g.floats(share * half))
    if code.decoding == "hamming":
        product = g.add("MatMul", g.add("Sign", predicted), g.floats(share / 2 * matrix.T))
        return g.add("Sub", product, 0.5)
    if code._inverse is not None:
        return g.add("MatMul", predicted, g.floats(code._inverse))
    if_positive = g.add("Relu", g.add("Sub", 1.0, predicted))
    if_negative = g.add("Relu", g.add("Add", predicted, 1.0))
    losses = [
        g.add("MatMul", loss, g.floats(-share * (matrix == sign).T.astype(float)))
        for loss, sign in ((if_positive, 1), (if_negative, -1))
    ]
    return g.add("Add", *losses)


def _decisions(g: Graph, scores: str, fitted: Any) -> str:
    """Add a column per class; for two classes, these are -decision_function and its negative."""
    if len(fitted.classes_) > 2 or isinstance(fitted.decoder_, OneVsRest):
        return scores
    return g.add("MatMul", scores, g.floats(np.array([[1.0, -1.0], [-1.0, 1.0]])))


def type_of(name: str, fitted: Any) -> int:
    """The ONNX type of an output."""
    if name != "label":
        return int(TensorProto.FLOAT)
    kind = labels_of(fitted.classes_).dtype.kind
    return int({"O": TensorProto.STRING, "i": TensorProto.INT64, "f": TensorProto.FLOAT}[kind])


def width_of(name: str, fitted: Any) -> int | None:
    """Return the number of columns of an output, or None for the vector of labels."""
    if name == "label":
        return None
    if name == "features":
        return int(fitted._n_features_out)
    return len(fitted.classes_) if name == "probabilities" else int(fitted._n_targets)
