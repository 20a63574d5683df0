"""Write an ONNX graph to a file."""

import os
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from craftmaps.models.onnx.graph import OPSET_OF_TABLES, Graph
from craftmaps.models.onnx.learners import outputs, type_of, width_of
from craftmaps.models.onnx.tables import encoder_of, table_input
from craftmaps.storage.atomic import write_whole

_PREFIX = "craftmaps/"  # prefix of inner names, which columns do not have
_OPSET_OF_ML = 3


def onnx_model(fitted: Any, return_std: bool = False) -> onnx.ModelProto:
    """Return the ONNX model of a fitted map or learner."""
    encoder = encoder_of(fitted)
    if encoder is None:
        g = Graph()
        results = outputs(g, "X", fitted, return_std=return_std)
        shape = [None, fitted.n_features_in_]
        given = [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)]
    else:
        g = Graph(OPSET_OF_TABLES, _PREFIX)
        x, given = table_input(g, encoder)
        results = outputs(g, x, fitted, return_std=return_std)
    _check_names({info.name for info in given} & {*results})
    nodes = [
        helper.make_node(node.operator, node.inputs, [node.output], **node.attributes)
        for node in g.nodes
    ]
    nodes += [helper.make_node("Identity", [tensor], [name]) for name, tensor in results.items()]
    graph = helper.make_graph(
        nodes,
        type(fitted).__name__,
        given,
        [_described(name, fitted) for name in results],
        [tensor_of(name, array) for name, array in g.constants.items()],
    )
    opsets = [helper.make_opsetid("", g.opset)]
    if any("domain" in node.attributes for node in g.nodes):
        opsets.append(helper.make_opsetid("ai.onnx.ml", _OPSET_OF_ML))
    return helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="craftmaps",
        producer_version=version("craftmaps"),
    )


def write(fitted: Any, path: str | os.PathLike[str], return_std: bool = False) -> None:
    """Check the ONNX model of a fitted map or learner, and write it to a file."""
    model = onnx_model(fitted, return_std)
    onnx.checker.check_model(model, full_check=True)
    serialized = model.SerializeToString()
    write_whole(path, lambda file: file.write(serialized))


def _check_names(twice: set[str]) -> None:
    if twice:
        raise ValueError(
            f"column {min(twice)!r} has the name of an output of the ONNX model; give the column "
            f"another name."
        )


def tensor_of(name: str, array: np.ndarray) -> onnx.TensorProto:
    """Return a constant as ONNX stores it."""
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def _described(name: str, fitted: Any) -> onnx.ValueInfoProto:
    width = width_of(name, fitted)
    shape = [None] if width is None else [None, width]
    return helper.make_tensor_value_info(name, type_of(name, fitted), shape)
