"""An ONNX graph under construction: nodes in the order of computation, and their constants."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy.linalg import hadamard

OPSET = 18  # the default version of the operators
LEAST_OPSET = 17  # the first with DFT
OPSET_OF_TABLES = 20  # the first with RegexFullMatch, which finds n-grams in text


@dataclass(frozen=True)
class Node:
    """One operator with one output."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


@dataclass
class Graph:
    """Nodes and constants; every method adds some and returns the name of a tensor.

    Unless stated otherwise, tensors are float32, and their first dimension is the number of rows of
    a batch. All names begin with `prefix`.
    """

    opset: int = OPSET
    prefix: str = ""
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node. Inputs are names of tensors, or arrays and numbers to make constants of."""
        names = tuple(x if isinstance(x, str) else self.constant(x) for x in inputs)
        output = f"{self.prefix}{operator}_{len(self.nodes)}"
        self.nodes.append(Node(operator, names, output, attributes))
        return output

    def constant(self, value: Any) -> str:
        """Add a constant. Python's numbers become float32, and lists become shapes (int64)."""
        array = np.asarray(value, dtype=np.float32 if type(value) is float else None)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants[name] = array
        return name

    def floats(self, array: np.ndarray) -> str:
        """Add float32 constants; small whole numbers such as signs take a byte in the file."""
        small = array.astype(np.int8)
        if array.size > 64 and np.array_equal(small, array):
            return self.cast(self.constant(small), TensorProto.FLOAT)
        return self.constant(array.astype(np.float32))

    def indices(self, array: np.ndarray) -> str:
        """Add int32 indices, which take two bytes each in the file if they fit."""
        if array.size and array.max() < 1 << 16:
            return self.cast(self.constant(array.astype(np.uint16)), TensorProto.INT32)
        return self.constant(array.astype(np.int32))

    def cast(self, x: str, to: int) -> str:
        return self.add("Cast", x, to=to)

    def double(self, x: str) -> str:
        """Convert x to float64."""
        return self.cast(x, TensorProto.DOUBLE)

    def single(self, x: str) -> str:
        """Convert x to float32."""
        return self.cast(x, TensorProto.FLOAT)

    def integer(self, x: str) -> str:
        """Convert x to 64-bit integers."""
        return self.cast(x, TensorProto.INT64)

    def gather(self, x: str, indices: np.ndarray, axis: int) -> str:
        """Take x[..., indices, ...] along an axis."""
        return self.add("Gather", x, self.indices(indices), axis=axis)

    def reshape(self, x: str, *shape: int) -> str:
        """Change the shape of x; 0 keeps a dimension, and -1 is inferred."""
        return self.add("Reshape", x, list(shape))

    def transpose(self, x: str) -> str:
        """Transpose a matrix."""
        return self.add("Transpose", x, perm=[1, 0])

    def concat(self, tensors: list[str], axis: int) -> str:
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=axis)

    def product(self, tensors: list[str]) -> str:
        """Multiply tensors entry by entry."""
        whole = tensors[0]
        for tensor in tensors[1:]:
            whole = self.add("Mul", whole, tensor)
        return whole

    def complex_product(self, real: list[str], imaginary: list[str]) -> list[str]:
        """Multiply complex tensors entry by entry; return the real and the imaginary part."""
        re, im = real[0], imaginary[0]
        for a, b in zip(real[1:], imaginary[1:], strict=True):
            re, im = (
                self.add("Sub", self.add("Mul", re, a), self.add("Mul", im, b)),
                self.add("Add", self.add("Mul", re, b), self.add("Mul", im, a)),
            )
        return [re, im]

    def scatter(self, out: str, values: str, column: np.ndarray) -> str:
        """Add each column j of `values` to the column `column[j]` of `out`."""
        where = self.repeated(column, values)
        return self.add("ScatterElements", out, where, values, axis=1, reduction="add")

    def dft(self, x: str, size: int, inverse: int) -> str:
        """Apply the Fourier transform over axis 1 of a tensor of shape (rows, size, 1 or 2)."""
        if self.opset < 20:
            return self.add("DFT", x, axis=1, inverse=inverse)
        return self.add("DFT", x, np.int64(size), np.int64(1), inverse=inverse)

    def total(self, x: str, axis: int) -> str:
        """Sum over an axis, and remove it."""
        return self.add("ReduceSum", x, [axis], keepdims=0)

    def repeated(self, row: np.ndarray, like: str) -> str:
        """Repeat a constant row for each row of the tensor `like`."""
        rows = self.add("Shape", like, start=0, end=1)
        shape = self.add("Concat", rows, [len(row)], axis=0)
        constant = self.indices(row) if row.dtype.kind in "iu" else self.floats(row)
        return self.add("Expand", constant, shape)

    def padded(self, x: str, width: int, wanted: int) -> str:
        """Add columns of zeros to a matrix of `width` columns, up to `wanted` columns."""
        if width == wanted:
            return x
        return self.add("Pad", x, [0, 0, 0, wanted - width])

    def hadamard(self, x: str, copies: int, size: int) -> str:
        """Compute H x over the last axis of (rows, copies, size), with H as a Kronecker product."""
        b = 1 << (size.bit_length() // 2)
        a = size // b
        t = self.reshape(x, 0, copies, a, b)
        t = self.add("MatMul", t, self.floats(hadamard(b)))
        t = self.add("MatMul", self.floats(hadamard(a)), t)
        return self.reshape(t, 0, copies, size)
