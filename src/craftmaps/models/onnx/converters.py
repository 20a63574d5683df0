"""Converters of maps and learners for skl2onnx, which writes pipelines of scikit-learn as ONNX."""

from inspect import isabstract
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
    guess_proto_type,
)

from craftmaps.learn import OnePassClassifier, OnePassRegressor
from craftmaps.learn.base import Learner
from craftmaps.maps import FeatureMap
from craftmaps.models.onnx.export import tensor_of
from craftmaps.models.onnx.graph import LEAST_OPSET, Graph
from craftmaps.models.onnx.learners import labels_of, outputs, width_of

_OPTIONS = {  # skl2onnx itself takes care of all but the first
    "raw_scores": [True, False],
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [True, False],
}


def register() -> None:
    """Register every map and learner; it may be called more than once."""
    for kind in (*_defined(FeatureMap), *_defined(Learner)):
        options = _OPTIONS if issubclass(kind, OnePassClassifier) else None
        update_registered_converter(
            kind, f"Craftmaps{kind.__name__}", _set_types, _convert, options=options
        )


def _defined(base: Any) -> list[type]:
    """Return all maps or learners that are defined so far, inside or outside of this package."""
    known = [kind for below in base.__subclasses__() for kind in (below, *_defined(below))]
    return [kind for kind in dict.fromkeys(known) if not isabstract(kind)]


def _set_types(operator: Any) -> None:
    """Set output types: the precision of the input, but float32 for probabilities (for ZipMap)."""
    fitted = operator.raw_operator
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    real = DoubleTensorType if double else FloatTensorType
    if not isinstance(fitted, OnePassClassifier):
        name = "variable" if isinstance(fitted, OnePassRegressor) else "features"
        operator.outputs[0].type = real([None, width_of(name, fitted)])
        return
    types = {"O": StringTensorType, "i": Int64TensorType, "f": FloatTensorType}
    operator.outputs[0].type = types[labels_of(fitted.classes_).dtype.kind]([None])
    probability = real if _raw_scores(operator.scope_inst, fitted) else FloatTensorType
    operator.outputs[1].type = probability([None, len(fitted.classes_)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    if container.target_opset < LEAST_OPSET:
        raise ValueError(
            f"maps of craftmaps need target_opset >= {LEAST_OPSET}, got {container.target_opset}."
        )
    if getattr(operator.raw_operator, "encoder_", None) is not None:
        raise ValueError(
            "skl2onnx does not convert a learner that encodes tables; export it alone, with "
            "craftmaps.export_onnx."
        )
    g = Graph(container.target_opset, f"{scope.get_unique_variable_name('craftmaps')}_")
    x = g.cast(operator.inputs[0].full_name, TensorProto.FLOAT)
    raw_scores = _raw_scores(container, operator.raw_operator)
    results = outputs(g, x, operator.raw_operator, raw_scores=raw_scores)
    for output, tensor in zip(operator.outputs, results.values(), strict=True):
        to = guess_proto_type(output.type)
        last = "Identity" if to == TensorProto.STRING else "Cast"
        container.add_node(
            last,
            [tensor],
            [output.full_name],
            name=scope.get_unique_operator_name(last),
            **({"to": to} if last == "Cast" else {}),
        )
    for name, array in g.constants.items():
        _add_constant(container, name, array)
    for node in g.nodes:
        name = scope.get_unique_operator_name(node.operator)
        container.add_node(
            node.operator, list(node.inputs), [node.output], name=name, **node.attributes
        )


def _raw_scores(given: Any, fitted: Any) -> bool:
    """Whether to return scores instead of probabilities, as CalibratedClassifierCV requires."""
    if not isinstance(fitted, OnePassClassifier):
        return False
    return bool(given.get_options(fitted, {"raw_scores": False})["raw_scores"])


def _add_constant(container: Any, name: str, array: np.ndarray) -> None:
    if array.dtype == object:
        strings = [text.encode() for text in array]
        container.add_initializer(name, TensorProto.STRING, array.shape, strings)
    else:
        container.add_initializer(name, None, array.shape, tensor_of(name, array))
