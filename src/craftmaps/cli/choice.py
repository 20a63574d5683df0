"""Build a learner and its feature map from the options of a command."""

import warnings
from dataclasses import replace
from typing import Any

import click
from sklearn.base import clone

from craftmaps import (
    ImageMap,
    KernelClassifier,
    KernelRegressor,
    MetricMap,
    Nystroem,
    ScaledMap,
    TableEncoder,
    feature_map,
)
from craftmaps.cli import names
from craftmaps.cli.options import PARTS_OF_A_MAP
from craftmaps.cli.rows import Survey
from craftmaps.diagnose import recommend
from craftmaps.kernels import DotProductKernel
from craftmaps.learn import kernel_classifier, kernel_regressor
from craftmaps.maps.parts.images import image_shape
from craftmaps.maps.scaled import scaled_rows
from craftmaps.search.budget import Budget
from craftmaps.search.preparation import image_cells
from craftmaps.tables.table import is_table

SEARCH_ROWS = 26_000  # rows for a search among maps of images
_DEFAULT_COMPONENTS = 1024  # size of a map that is named


def learner(seen: Survey, **given: Any) -> Any:
    """Return the unfitted learner for the options of `fit`.

    It searches for a map unless the options name one. Rows of a table are encoded first.
    """
    kinds = {name: kind for name, kind in given["kinds"].items() if kind != "drop"}
    encoder = TableEncoder(columns=kinds or None) if is_table(seen.X) else None
    alpha = "auto" if given["alpha"] is None else given["alpha"]
    loss = _loss(given["loss"], seen.classes is not None)
    shared = {"loss": loss, "alpha": alpha, "encoder": encoder, "map_rows": given["map_rows"]}
    kind = KernelRegressor if seen.classes is None else KernelClassifier
    if given["images"] and is_table(seen.X):
        raise click.UsageError("--images takes only columns of numbers without missing values.")
    if given["images"] and given["auto"]:
        budget = _budget(given) or _DEFAULT_COMPONENTS
        return kind(searched_images(seen, budget, given["seed"]), **shared)
    if names_a_map(given) or given["images"]:
        return kind(_named(seen, encoder, **given), **shared)
    return kind(budget=_budget(given), random_state=given["seed"], **shared)


def names_a_map(given: dict[str, Any]) -> bool:
    """Whether the options of `fit` define a part of the map, so that there is no search."""
    return bool(given["metric"]) or any(given[name] is not None for name in PARTS_OF_A_MAP)


def _named(seen: Survey, encoder: TableEncoder | None, **given: Any) -> Any:
    """Return the unfitted map that the options name."""
    X = seen.X
    if encoder is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the learner repeats these warnings
            X = clone(encoder).fit_transform(X)
    options = {name: given[name] for name in ("degree", "gamma", "coef0")}
    kernel = kernel_of(given["kernel"], **options)
    size = given["components"] or _DEFAULT_COMPONENTS
    inner = named_map(kernel, given["map_name"], size, replace(seen, X=X), given["seed"])
    if given["images"]:
        return of_images(inner, X, metric=given["metric"])
    scale = "none" if encoder is not None and given["scale"] is None else given["scale"]
    return scaled(inner, scale, given["unit_norm"], X, metric=given["metric"])


def _loss(given: str | None, classification: bool) -> str:
    if given is None:
        return "auto" if classification else "squared"
    if given not in (kernel_classifier.LOSSES if classification else kernel_regressor.LOSSES):
        tasks = ["classes", "measured numbers"]
        there, here = tasks[::-1] if classification else tasks
        raise click.UsageError(f"--loss {given} is for {there}, and the target is {here}.")
    return given


def kernel_of(name: str | None, **options: Any) -> Any:
    """Return the named kernel, with the parameters that were given."""
    kernel = names.kernels()[name or "poly"]()
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in kernel.get_params():
            raise click.UsageError(f"--{option} is not a parameter of the kernel {name}.")
    if "gamma" in given:
        given["gamma"] = _number_or_name(given["gamma"])
    return kernel.set_params(**given)


def named_map(kernel: Any, name: str | None, n_components: int, seen: Survey, seed: int = 0) -> Any:
    """Return the named map, or the best data-independent map, for rows scaled for the kernel."""
    if name is None:
        rows = scaled_rows(seen.X, *_scaling(kernel, None, None, seen.X))
        return feature_map(kernel, rows, n_components, random_state=seed)
    kind = names.maps()[name]
    few = min(n_components, seen.n_rows) if kind is Nystroem else n_components
    return kind(kernel, few, random_state=seed)


def scaled(
    inner: Any, scale: str | None, unit_norm: bool | None, X: Any, *, metric: bool = False
) -> ScaledMap:
    """Put a map into a ScaledMap with the given scaling, or the scaling that suits its kernel.

    A polynomial of an inner product needs rows of length 1, and a function of a distance needs
    columns of equal weight. With `metric`, a MetricMap follows the scaling.
    """
    columns, norm = _scaling(inner.kernel, scale, unit_norm, X)
    if metric:
        inner = MetricMap(inner, unit_norm=norm)
    return ScaledMap(inner, columns=columns, unit_norm=norm)


def _scaling(kernel: Any, scale: str | None, unit_norm: bool | None, X: Any) -> tuple[str, bool]:
    dot_product = isinstance(kernel, DotProductKernel)
    if scale is None:
        scale = "none" if dot_product else standard_scaling(X)
    return scale, dot_product if unit_norm is None else unit_norm


def standard_scaling(X: Any) -> str:
    """Return the scaling that makes columns comparable and keeps sparse rows sparse."""
    return "std" if hasattr(X, "tocsr") else "standard"


def of_images(inner: Any, X: Any, *, metric: bool = False) -> ImageMap:
    """Put a map into an ImageMap for square images, with a MetricMap between them if requested."""
    cells = image_cells(image_shape(X))
    return ImageMap(MetricMap(inner) if metric else inner, cells=cells)


def _budget(given: dict[str, Any]) -> str | int | None:
    """Return the budget of the search; a number in --budget means components."""
    budget: str | None = given["budget"]
    if budget is not None and budget.isdecimal():
        return int(budget)
    return budget or given["components"]


def searched_images(seen: Survey, budget: str | int, seed: int = 0) -> Any:
    """Search for a map for square images, on the sample."""
    limit = Budget.parse(budget)
    share = len(seen.y) / seen.n_rows
    if limit.kind == "training" and share < 1:
        budget = f"{limit.amount * share:.6f}s"  # the share of the time for the sample
    task = "regression" if seen.classes is None else "classification"
    return recommend(seen.X, seen.y, budget, task=task, images=True, random_state=seed).feature_map


def _number_or_name(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
