"""From options to a feature map."""

from typing import Any

import click

from craftmaps import ImageMap, MetricMap, Nystroem, ScaledMap, feature_map
from craftmaps.cli import names
from craftmaps.cli.rows import Survey
from craftmaps.diagnose.recommend.advice import Advice
from craftmaps.diagnose.recommend.budget import Budget
from craftmaps.diagnose.recommend.preparation import image_cells
from craftmaps.diagnose.recommend.recommend import recommend
from craftmaps.kernels import DotProductKernel
from craftmaps.maps.parts.images import image_shape
from craftmaps.maps.scaled import scaled_rows


def kernel_of(name: str | None, **options: Any) -> Any:
    """The kernel of a name, with those of its parameters that were given."""
    kernel = names.kernels()[name or "poly"]()
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in kernel.get_params():
            raise click.UsageError(f"--{option} is no parameter of the kernel {name}.")
    if "gamma" in given:
        given["gamma"] = _number_or_name(given["gamma"])
    return kernel.set_params(**given)


def named_map(kernel: Any, name: str | None, n_components: int, seen: Survey, seed: int = 0) -> Any:
    """The map of a name, or the best data-independent one for rows scaled as the kernel needs."""
    if name is None:
        rows = scaled_rows(seen.X, *_scaling(kernel, None, None, seen.X))
        return feature_map(kernel, rows, n_components, random_state=seed)
    kind = names.maps()[name]
    few = min(n_components, seen.n_rows) if kind is Nystroem else n_components
    return kind(kernel, few, random_state=seed)


def scaled(
    inner: Any, scale: str | None, unit_norm: bool | None, X: Any, *, metric: bool = False
) -> ScaledMap:
    """The map of rows scaled as asked for, or as its kernel needs them, and then by a metric.

    A polynomial of an inner product wants rows of length 1; a function of a distance wants columns
    of equal weight.
    """
    columns, norm = _scaling(inner.kernel, scale, unit_norm, X)
    if metric:
        inner = MetricMap(inner, unit_norm=norm)
    return ScaledMap(inner, columns=columns, unit_norm=norm)


def _scaling(kernel: Any, scale: str | None, unit_norm: bool | None, X: Any) -> tuple[str, bool]:
    dot_product = isinstance(kernel, DotProductKernel)
    if scale is None:
        sparse = hasattr(X, "tocsr")
        scale = "none" if dot_product else "std" if sparse else "standard"
    return scale, dot_product if unit_norm is None else unit_norm


def of_images(inner: Any, X: Any, *, metric: bool = False) -> ImageMap:
    """The map of oriented gradients of square images, perhaps seen through a metric."""
    cells = image_cells(image_shape(X))
    return ImageMap(MetricMap(inner) if metric else inner, cells=cells)


def searched(
    seen: Survey, budget: str | int, seed: int = 0, *, images: bool = False
) -> tuple[ScaledMap | ImageMap, Any, Advice]:
    """Map and alpha that a search on the sample finds, and the advice itself."""
    limit = Budget.parse(budget)
    share = len(seen.y) / seen.n_rows
    if limit.kind == "training" and share < 1:
        budget = f"{limit.amount * share:.6f}s"  # that the sample may take
    task = "regression" if seen.classes is None else "classification"
    advice = recommend(seen.X, seen.y, budget, task=task, images=images, random_state=seed)
    alpha = advice.learner.alpha if share == 1 else "auto"
    return advice.feature_map, alpha, advice


def _number_or_name(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
