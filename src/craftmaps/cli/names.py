"""Names of kernels and maps in a terminal, derived from the public classes.

A new kernel or map needs no change here. The library is imported only when a name is needed,
because importing it takes longer than commands without names.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import click


def formats() -> dict[str, Any]:
    """Return the file formats that can be read."""
    from craftmaps.scale.files.paths import SUFFIXES

    return SUFFIXES


def scalings() -> dict[str, Any]:
    """Return the scalings of `ScaledMap`."""
    from craftmaps.maps.scaled import COLUMNS

    return dict.fromkeys(COLUMNS)


def losses() -> dict[str, Any]:
    """Return the losses of classifiers and regressors."""
    from craftmaps.learn import kernel_classifier, kernel_regressor

    return dict.fromkeys([*kernel_classifier.LOSSES, *kernel_regressor.LOSSES])


def kernels() -> dict[str, type]:
    """Return public kernels without required arguments, by short names or names of classes."""
    from craftmaps import kernels as room

    classes = [getattr(room, name) for name in room.__all__]
    return {
        one.short_name or _kebab(one.__name__): one
        for one in classes
        if not inspect.isabstract(one) and not _required(one)
    }


def maps() -> dict[str, type]:
    """Return public maps with a kernel and a size, by the names of their classes."""
    from craftmaps import maps as room

    public = [getattr(room, name) for name in room.__all__]
    return {
        _kebab(one.__name__): one
        for one in public
        if inspect.isclass(one)
        and {"kernel", "n_components"} <= inspect.signature(one).parameters.keys()
    }


def maps_for(kernel: Any) -> dict[str, Any]:
    """Return an unfitted map of each public class that takes the kernel, by the class names."""
    import numpy as np

    taken = {}
    for kind in maps().values():
        try:
            kind(kernel, 4, random_state=0).fit(np.eye(4))
        except (TypeError, ValueError):  # the map cannot approximate this kernel
            continue
        taken[kind.__name__] = kind(kernel)
    return taken


class Name(click.ParamType):
    """Choice among names that are looked up when needed; hyphens may be left out.

    `old_names` of earlier releases are accepted, but not shown.
    """

    name = "name"

    def __init__(
        self, names: Callable[[], dict[str, Any]], old_names: tuple[str, ...] = ()
    ) -> None:
        self._names, self._old_names = names, old_names

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self._names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self._old_names:
            return value
        known = {name.replace("-", ""): name for name in self._names()}
        if value.replace("-", "") not in known:
            self.fail(f"{value!r} is not one of {', '.join(known.values())}.", param, ctx)
        return known[value.replace("-", "")]


def _kebab(name: str) -> str:
    """Convert TensorSketch to tensor-sketch, without common parts such as Map and Features."""
    plain = name.removeprefix("Random").removesuffix("Map").removesuffix("Features")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", plain).lower()


def _required(kind: type) -> bool:
    """Whether a class has required arguments."""
    parameters = inspect.signature(kind).parameters.values()
    return any(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in parameters)
