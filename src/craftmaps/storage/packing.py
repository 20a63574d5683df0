"""Objects of the library as JSON and arrays, and back: what a model file holds.

A file names classes that are marked `@storable` where they are written, and gives the contents of
their instances. Nothing else can be named, so opening a file runs no other code.
"""

import math
from types import FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

_storable: dict[str, Any] = {"FrozenEstimator": FrozenEstimator}
Part = TypeVar("Part", bound=Any)
_METHODS = ("encode",)
_SMALLER = (np.int8, np.uint8, np.int16, np.uint16, np.float16, np.int32, np.uint32, np.float32)
_SAMPLE = 256  # entries that show whether an array is worth trying to shrink


def storable(part: Part) -> Part:
    """Allow a class, or a function, in model files, under its own name."""
    name = part.__name__
    if _storable.setdefault(name, part) is not part:
        raise ValueError(f"another part of models is called {name!r} already; rename this one.")
    return part


class Packer:
    """Turns values into what JSON knows, and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._seen: dict[int, Any] = {}  # objects that occur twice are written once
        self._alive: list[Any] = []  # so that no identity is used again

    def pack(self, value: Any, where: str) -> Any:
        """`where` is the path of attributes to the value, for complaints."""
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
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # what was drawn is in the arrays
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
                f"{where} is an array of {array.dtype}, which a model file does not hold."
            )
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        name = where.partition(".")[2]
        assert name not in self.arrays
        self.arrays[name] = _shrunk(array.T if fortran else array)
        return {"array": name, "dtype": array.dtype.name, "fortran": fortran}

    def _object(self, value: Any, where: str) -> Any:
        if isinstance(value, MethodType) and value.__name__ in _METHODS:
            return {"method": value.__name__, "of": self.pack(value.__self__, where)}
        if isinstance(value, FunctionType) and _is_known(value):
            return {"function": value.__name__}
        kind = type(value)
        if not _is_known(kind):
            raise TypeError(_complaint(value, where))
        state = vars(value) if isinstance(value, BaseEstimator) else value.__getstate__()
        return {
            "class": kind.__name__,
            "state": {name: self.pack(part, f"{where}.{name}") for name, part in state.items()},
        }


class Unpacker:
    """The inverse of `Packer`, with no trust in what it is given."""

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
            data, indices, indptr, shape = (self.unpack(part) for part in tree["csr"])
            rows = sparse.csr_matrix((data, indices, indptr), shape=shape)
            rows.check_format(full_check=True)
            return rows
        if "method" in tree:
            if tree["method"] not in _METHODS:
                raise TypeError(f"the method {tree['method']!r} is not allowed")
            return getattr(self.unpack(tree["of"]), tree["method"])
        if "function" in tree:
            return _known(tree["function"])
        return self._object(tree)

    def _object(self, tree: dict[str, Any]) -> Any:
        kind = _known(tree["class"])
        value = kind.__new__(kind)
        state = {name: self.unpack(part) for name, part in tree["state"].items()}
        if hasattr(kind, "_upgraded"):  # names of attributes may have changed since
            state = kind._upgraded(state)
        if hasattr(kind, "__setstate__") and not issubclass(kind, BaseEstimator):
            value.__setstate__(state)
        else:
            value.__dict__.update(state)
        if hasattr(kind, "_check_stored") and hasattr(value, "_n_features_out"):
            kind._check_stored(value)  # of the class: a file may give the instance anything
        return value


def _known(name: Any) -> Any:
    """A class, or the function, that a file may name."""
    if name not in _storable:
        raise TypeError(f"no part of a model is called {name!r}")
    return _storable[name]


def _is_known(part: Any) -> bool:
    return _storable.get(part.__name__) is part


def _number_type(name: Any) -> np.dtype:
    dtype = np.dtype(str(name))
    if dtype.kind not in "biuf":
        raise TypeError(f"arrays of {dtype} are not allowed")
    return dtype


def _shrunk(array: np.ndarray) -> np.ndarray:
    """The same numbers in the smallest type that holds all of them exactly."""
    if array.dtype.kind == "b":
        return array
    sample = array.reshape(-1)[:_SAMPLE]
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
            f"{where} is the function {getattr(value, '__name__', value)!r}, and a model file has "
            f"no code in it; joblib.dump keeps its name, and loads where it can be imported."
        )
    return (
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}, and a model file holds "
        f"maps and learners of craftmaps only; use joblib.dump, or one of its maps."
    )
