"""Names of kernels and maps in a terminal, derived from the public classes.

A new kernel or map needs no edit here. The library is imported when a name is asked for, because
that takes longer than the commands that need none.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import click


def formats() -> dict[str, Any]:
    """Formats of files that can be read."""
    from craftmaps.scale.files.paths import SUFFIXES

    return SUFFIXES


def scalings() -> dict[str, Any]:
    """Scalings of columns that a `ScaledMap` knows."""
    from craftmaps.maps.scaled import COLUMNS

    return dict.fromkeys(COLUMNS)


def losses() -> dict[str, Any]:
    """Losses of classifiers and regressors."""
    from craftmaps.learn import kernel_classifier, kernel_regressor

    return dict.fromkeys([*kernel_classifier.LOSSES, *kernel_regressor.LOSSES])


def kernels() -> dict[str, type]:
    """Public kernels that need no argument, by their short names or the names of their classes."""
    from craftmaps import kernels as room

    classes = [getattr(room, name) for name in room.__all__]
    return {
        one.short_name or _kebab(one.__name__): one
        for one in classes
        if not inspect.isabstract(one) and not _required(one)
    }


def maps() -> dict[str, type]:
    """Public maps that have a kernel and a size, by the names of their classes."""
    from craftmaps import maps as room

    classes = [getattr(room, name) for name in room.__all__]
    return {
        _kebab(one.__name__): one
        for one in classes
        if {"kernel", "n_components"} <= inspect.signature(one).parameters.keys()
    }


def maps_for(kernel: Any) -> dict[str, Any]:
    """One unfitted map for each public class that takes the kernel, by the name of the class."""
    import numpy as np

    taken = {}
    for kind in maps().values():
        try:
            kind(kernel, 4, random_state=0).fit(np.eye(4))
        except (TypeError, ValueError):  # what a map says to a kernel that it cannot approximate
            continue
        taken[kind.__name__] = kind(kernel)
    return taken


class Name(click.ParamType):
    """One of some names that are found when they are needed; hyphens may be left out.

    `old_names` of earlier releases are understood, and not shown.
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
    """TensorSketch is tensor-sketch; what many names begin or end with is left out."""
    plain = name.removeprefix("Random").removesuffix("Map").removesuffix("Features")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", plain).lower()


def _required(kind: type) -> bool:
    """Whether a class cannot be made without arguments."""
    parameters = inspect.signature(kind).parameters.values()
    return any(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in parameters)
