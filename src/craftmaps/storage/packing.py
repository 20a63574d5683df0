"""Convert objects of the library to JSON and arrays, and back.

A file names classes that are marked `@storable`, and contains the values of their declared fields
(see `craftmaps.storage.fields`). A file cannot name anything else, so opening it runs no other
code.
"""

import math
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from craftmaps.storage.array_file import NUMBER_TYPES
from craftmaps.storage.expect import expect, expect_array, expect_indices
from craftmaps.storage.fields import (
    class_named,
    fields_of,
    is_storable,
    matches,
    restored,
    storable,
    stored_state,
)

__all__ = ["Packer", "Unpacker", "storable"]

_SMALLER = (np.int8, np.uint8, np.int16, np.uint16, np.float16, np.int32, np.uint32, np.float32)
_SAMPLE_OF_ARRAY = 256  # entries that are tried before a whole array is shrunk
_FUNCTIONS_OF_0_1_0 = {"_as_floats": "Unchanged"}  # functions, and classes that replace them


class Packer:
    """Convert values to types that JSON supports, and collect their arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._seen: dict[int, Any] = {}  # objects that occur twice are written once
        self._alive: list[Any] = []  # keeps objects alive, so that no id is used again

    def pack(self, value: Any, where: str) -> Any:
        """Convert a value; error messages contain `where`, the path of attributes to the value."""
        if isinstance(value, np.generic) and not isinstance(value, str):
            value = value.item()
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return {type(value).__name__: items}
        if isinstance(value, dict):
            pairs = value.items()
            return {
                "dict": [[self.pack(k, where), self.pack(v, f"{where}[{k!r}]")] for k, v in pairs]
            }
        if isinstance(value, np.dtype) or (
            isinstance(value, type) and issubclass(value, np.generic)
        ):
            return {"dtype": np.dtype(value).name}
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # the drawn numbers are in the arrays
        return self._reference(value, where)

    def _reference(self, value: Any, where: str) -> Any:
        if id(value) not in self._seen:
            if isinstance(value, np.ndarray):
                packed = self._array(value, where)
            elif sparse.issparse(value):
                rows = value.tocsr()
                parts = {
                    name: getattr(rows, name) for name in ("data", "indices", "indptr", "shape")
                }
                packed = {
                    "csr": [self.pack(part, f"{where}.{name}") for name, part in parts.items()]
                }
            else:
                packed = self._object(value, where)
            self._alive.append(value)
            self._seen[id(value)] = {"same": len(self._seen)}
            return packed
        return self._seen[id(value)]

    def _array(self, array: np.ndarray, where: str) -> Any:
        if array.dtype.kind == "U":
            return {"strings": array.tolist()}
        if array.dtype.kind == "O" and array.ndim == 1:
            return {"objects": [self.pack(item, f"{where}[{i}]") for i, item in enumerate(array)]}
        if array.dtype.kind not in "biuf":
            raise TypeError(
                f"{where} is an array of {array.dtype}, which a model file cannot contain; convert "
                f"it to text or numbers before the fit."
            )
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        name = where.partition(".")[2]
        assert name not in self.arrays
        self.arrays[name] = _shrunk(array.T if fortran else array)
        return {"array": name, "dtype": array.dtype.name, "fortran": fortran}

    def _object(self, value: Any, where: str) -> Any:
        kind: Any = type(value)
        if not is_storable(kind):
            raise TypeError(_complaint(value, where))
        state, unknown = stored_state(value)
        if unknown:
            warnings.warn(
                f"{where}.{unknown[0]} is not stored, because {kind.__name__} does not declare it.",
                UserWarning,
                stacklevel=2,
            )
        fields = fields_of(kind)
        for name, part in state.items():
            if not matches(part, fields[name].kind):
                raise TypeError(
                    f"{where}.{name} is a {type(part).__name__}, and {kind.__name__} declares it "
                    f"as {fields[name].kind}."
                )
        return {
            "class": kind.__name__,
            "state": {name: self.pack(part, f"{where}.{name}") for name, part in state.items()},
        }


class Unpacker:
    """The inverse of `Packer`, which checks everything it reads."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._seen: list[Any] = []

    def unpack(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        if "same" in tree:
            return self._seen[tree["same"]]
        for name in ("list", "tuple"):
            if name in tree:
                items = [self.unpack(item) for item in tree[name]]
                return tuple(items) if name == "tuple" else items
        if "dict" in tree:
            return {self.unpack(key): self.unpack(value) for key, value in tree["dict"]}
        if "float" in tree:
            return float(tree["float"])
        if "dtype" in tree and "array" not in tree:
            return _number_type(tree["dtype"])
        value = self._reference(tree)
        self._seen.append(value)
        return value

    def _reference(self, tree: dict[str, Any]) -> Any:
        if "array" in tree:
            array = self._arrays[tree["array"]].astype(_number_type(tree["dtype"]))
            return array.T if tree["fortran"] else array
        if "strings" in tree:
            return np.array(tree["strings"], dtype=str)
        if "objects" in tree:
            objects = np.empty(len(tree["objects"]), dtype=object)
            objects[:] = [self.unpack(item) for item in tree["objects"]]
            return objects
        if "csr" in tree:
            return _sparse_rows(*(self.unpack(part) for part in tree["csr"]))
        if "method" in tree:  # version 0.1.0 stored a method of the code instead of the code
            if tree["method"] != "encode":
                raise ValueError(f"the method {tree['method']!r} is not allowed")
            return self.unpack(tree["of"])
        if "function" in tree:
            if tree["function"] not in _FUNCTIONS_OF_0_1_0:
                raise ValueError(f"the function {tree['function']!r} is not allowed")
            return class_named(_FUNCTIONS_OF_0_1_0[tree["function"]])()
        kind = class_named(tree["class"])
        return restored(kind, {name: self.unpack(part) for name, part in tree["state"].items()})


def _sparse_rows(data: Any, indices: Any, indptr: Any, shape: Any) -> sparse.csr_matrix:
    """Return a checked CSR matrix; SciPy's own check ends early if `indptr` ends with 0."""
    if not matches(shape, tuple[int, int]):
        raise ValueError(f"a sparse matrix has the shape {shape}")
    expect_array("data of a sparse matrix", data, "biuf", (None,))
    expect_indices("columns of a sparse matrix", indices, shape[1], (len(data),))
    expect_indices("rows of a sparse matrix", indptr, len(data) + 1, (shape[0] + 1,))
    ends = indptr.astype(np.int64)
    expect(ends[0] == 0 and ends[-1] == len(data), "that rows take all entries")
    expect(bool((np.diff(ends) >= 0).all()), "that a row ends behind its beginning")
    return sparse.csr_matrix((data, indices, indptr), shape=shape)


def _number_type(name: Any) -> np.dtype:
    if name not in NUMBER_TYPES:
        raise ValueError(f"arrays of {name!r} are not allowed")
    dtype: np.dtype = np.dtype(name)
    return dtype


def _shrunk(array: np.ndarray) -> np.ndarray:
    """Return the same numbers in the smallest type that represents all of them exactly."""
    if array.dtype.kind == "b":
        return array
    sample = array.reshape(-1)[:_SAMPLE_OF_ARRAY]
    for smaller in _SMALLER:
        dtype = np.dtype(smaller)
        fits = dtype.itemsize < array.itemsize and (array.dtype.kind == "f" or dtype.kind != "f")
        if fits and _survives(sample, smaller) and _survives(array, smaller):
            return array.astype(smaller)
    return array


def _survives(array: np.ndarray, smaller: Any) -> bool:
    with np.errstate(all="ignore"):
        again = array.astype(smaller).astype(array.dtype)
    same = np.array_equal(again, array)
    return same and (
        array.dtype.kind != "f" or np.array_equal(np.signbit(again), np.signbit(array))
    )


def _complaint(value: Any, where: str) -> str:
    if callable(value) and not isinstance(value, BaseEstimator):
        return (
            f"{where} is the function {getattr(value, '__name__', value)!r}, and model files "
            f"contain no code; joblib.dump stores its name, and joblib.load imports it."
        )
    return (
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}, and a model file can "
        f"contain only maps and learners of craftmaps and classes marked "
        f"@craftmaps.storage.storable; use one of these, or joblib.dump."
    )
