"""The fields of an object that a file contains, which its class declares.

A class in a file must be decorated with `@storable`. Its fields are

- the fields of a dataclass;
- the parameters of an estimator's constructor;
- the attributes that are annotated in the body of the class or of its bases, as in
  `signs_: np.ndarray`; a value that does not match the annotation is refused;
- the names in the class attribute `_stored`, a dict of names and types, if `__getstate__` does not
  return the attributes of the class.

A field may be missing from a file if the class has a default for it: a class attribute, or the
default of a parameter. An estimator that is not fitted has its parameters only.
`_upgraded(state)`, a class method, may rename what older releases wrote. `_check_stored(self)`
raises ValueError if the fields of a fitted object do not fit together; it must make sure that
compiled loops stay within their arrays.
"""

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

_storable: dict[str, Any] = {}
Part = TypeVar("Part", bound=type)
_REQUIRED = object()
_NOT_STORED = "_metadata_request"  # settings of scikit-learn's metadata routing


@dataclass(frozen=True)
class Field:
    """A declared field: the annotation of its values, and the default if a file lacks it."""

    kind: Any
    default: Any = _REQUIRED
    is_parameter: bool = False


_OF_SCIKIT_LEARN = {  # set by scikit-learn itself on some instances
    "n_features_in_": Field(int, None),
    "feature_names_in_": Field(np.ndarray, None),
    "_sklearn_output_config": Field(dict[str, str], None),
}


def storable(part: Part) -> Part:
    """Allow a class in model files, under its own name; use it as a decorator."""
    name = part.__name__
    if _storable.setdefault(name, part) is not part:
        raise ValueError(f"another storable class is called {name!r}; rename this one.")
    return part


storable(FrozenEstimator)


def is_storable(kind: Any) -> bool:
    return _storable.get(kind.__name__) is kind


def class_named(name: Any) -> Any:
    """Return the storable class with the name."""
    if not isinstance(name, str) or name not in _storable:
        raise ValueError(f"no part of a model is called {name!r}")
    return _storable[name]


@cache
def fields_of(kind: Any) -> Mapping[str, Field]:
    """Return the declared fields of a class."""
    if hasattr(kind, "_stored"):
        stored = kind._stored.items()
        return {name: Field(kind_, getattr(kind, name, _REQUIRED)) for name, kind_ in stored}
    fields: dict[str, Field] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith(("sklearn.", "builtins")):
            for name, annotation in inspect.get_annotations(base, eval_str=True).items():
                if ClassVar not in (annotation, get_origin(annotation)):
                    fields[name] = Field(annotation, getattr(kind, name, _REQUIRED))
    if issubclass(kind, BaseEstimator):
        fields |= _OF_SCIKIT_LEARN
        for name, parameter in inspect.signature(kind.__init__).parameters.items():
            if name != "self":
                empty = parameter.default is inspect.Parameter.empty
                default = _REQUIRED if empty else parameter.default
                fields[name] = Field(Any, default, is_parameter=True)
    elif is_dataclass(kind):
        fields = {field.name: fields[field.name] for field in dataclasses.fields(kind)}
    return {name: field for name, field in fields.items() if not _is_code(kind, name)}


def stored_state(value: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of an object with their values, and the names of its other attributes."""
    kind: Any = type(value)
    # The __getstate__ of an estimator would add the version of scikit-learn.
    state = vars(value) if isinstance(value, BaseEstimator) else value.__getstate__() or {}
    fields = fields_of(kind)
    unknown = [name for name in state if name not in fields and name != _NOT_STORED]
    # Parameters first, then as the class declares. The order of attributes depends on the history
    # of an object, and a model that was resumed must have the same bytes.
    names = sorted(fields, key=lambda name: not fields[name].is_parameter)
    return {name: state[name] for name in names if name in state}, unknown


def restored(kind: Any, state: dict[str, Any]) -> Any:
    """Return an object with these fields, or raise ValueError unless they fit the class.

    The checks are looked up on the class, because a file could hide them on the object.
    """
    if hasattr(kind, "_upgraded"):
        state = kind._upgraded(state)
    fields = fields_of(kind)
    for name, part in state.items():
        if name not in fields:
            raise ValueError(f"{kind.__name__} has no field {name!r}")
        if not matches(part, fields[name].kind):
            raise ValueError(f"{kind.__name__}.{name} has the wrong type {type(part).__name__}")
    parameters = {name: field for name, field in fields.items() if field.is_parameter}
    is_fitted = not issubclass(kind, BaseEstimator) or bool(state.keys() - parameters.keys())
    for name, field in (fields if is_fitted else parameters).items():
        if name not in state and field.default is _REQUIRED:
            raise ValueError(f"{kind.__name__} lacks its field {name!r}")
    value = kind.__new__(kind)
    if issubclass(kind, BaseEstimator):
        defaults = {name: field.default for name, field in parameters.items()}
        value.__dict__.update(defaults | state)
        _check_estimator(value)
    elif hasattr(kind, "__setstate__"):
        kind.__setstate__(value, state)
    else:
        value.__dict__.update(state)
    if is_fitted and hasattr(kind, "_check_stored"):
        kind._check_stored(value)
    return value


def matches(value: Any, kind: Any) -> bool:
    """Whether a value has the type of an annotation."""
    if isinstance(value, np.generic):
        value = value.item()  # files contain Python numbers
    if kind is Any:
        return True
    if kind is None:
        return value is None
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    origin, of = get_origin(kind), get_args(kind)
    if origin is None:
        return isinstance(value, kind)
    if origin in (Union, types.UnionType):
        return any(matches(value, one) for one in of)
    if origin is Callable:
        return callable(value)
    if not isinstance(value, origin):
        return False
    if origin is tuple:
        each = of[:1] * len(value) if of[1:] == (...,) else of
        return len(value) == len(each) and all(map(matches, value, each))
    if origin is dict:
        return all(matches(k, of[0]) and matches(v, of[1]) for k, v in value.items())
    return origin is not list or all(matches(item, of[0]) for item in value)


def _is_code(kind: Any, name: str) -> bool:
    """Whether a name is a method or a property of a class, which a field must not hide."""
    attribute = inspect.getattr_static(kind, name, None)
    return callable(attribute) or hasattr(attribute, "__get__")


def _check_estimator(value: BaseEstimator) -> None:
    """Check the attributes that scikit-learn itself has set."""
    n_features = getattr(value, "n_features_in_", 1)
    names = getattr(value, "feature_names_in_", None)
    output = getattr(value, "_sklearn_output_config", {})
    kind = type(value).__name__
    if n_features < 1:
        raise ValueError(f"{kind} takes rows of {n_features} columns")
    if names is not None and not (
        names.shape == (n_features,) and all(isinstance(name, str) for name in names.tolist())
    ):
        raise ValueError(f"{kind} has names of columns that are not {n_features} strings")
    if not set(output) <= {"transform"} or not set(output.values()) <= {
        "default",
        "pandas",
        "polars",
    }:
        raise ValueError(f"{kind} has an unknown setting of set_output")
