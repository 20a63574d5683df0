"""Tables as ONNX: one named input for each column, encoded as `TableEncoder` does."""

from typing import Any

from onnx import TensorProto, ValueInfoProto, helper
from sklearn.utils.validation import check_is_fitted

from craftmaps.models.onnx.graph import Graph
from craftmaps.tables import TableEncoder

_TYPES = {"double": TensorProto.DOUBLE, "string": TensorProto.STRING}


def encoder_of(fitted: Any) -> TableEncoder | None:
    """Return the encoder of a fitted estimator, which may be the estimator itself, or None."""
    encoder: Any = fitted if isinstance(fitted, TableEncoder) else None
    encoder = getattr(fitted, "encoder_", encoder)
    if encoder is None:
        return None
    check_is_fitted(encoder, "columns_")
    return None if encoder.is_sparse_ else encoder


def table_input(g: Graph, encoder: TableEncoder) -> tuple[str, list[ValueInfoProto]]:
    """Add the encoding of a table; return the encoded rows and the inputs of the graph."""
    encoded: list[str] = []
    inputs = []
    for column in encoder.columns_:
        kind = _TYPES[column.onnx_type]
        inputs.append(helper.make_tensor_value_info(column.name, kind, [None, 1]))
        encoded += column.onnx(g, column.name)
    return g.concat(encoded, axis=1), inputs
