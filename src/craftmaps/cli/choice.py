"""From options to a learner and its feature map."""

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
)
from craftmaps.cli import names
from craftmaps.cli.rows import Survey
from craftmaps.diagnose.recommend import candidates
from craftmaps.diagnose.recommend.advice import Advice
from craftmaps.diagnose.recommend.budget import Budget
from craftmaps.diagnose.recommend.preparation import image_cells
from craftmaps.diagnose.recommend.recommend import recommend
from craftmaps.kernels import DotProductKernel
from craftmaps.maps.parts.images import image_shape
from craftmaps.tables.table import is_table

SEARCH_ROWS = 26_000  # that a search takes


def learner(seen: Survey, **given: Any) -> tuple[Any, dict[str, Any]]:
    """The learner that the options of `fit` ask for, unfitted, and facts about it."""
    loss = _loss(given["loss"], seen.classes is not None, given["checkpoint"] is not None)
    encoder = TableEncoder(columns=given["kinds"] or None) if is_table(seen.X) else None
    X = seen.X
    if encoder is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the learner says it too
            X = clone(encoder).fit_transform(seen.X)
    feature_map, alpha, facts = _map(replace(seen, X=X), encoder is not None, **given)
    kind = KernelRegressor if seen.classes is None else KernelClassifier
    facts = {
        "rows": seen.n_rows,
        "columns": seen.X.shape[1],
        "task": "regression" if seen.classes is None else "classification",
        "classes": None if seen.classes is None else len(seen.classes),
        "loss": loss,
        "map": " ".join(repr(feature_map).split()),
    } | facts
    options: dict[str, Any] = {"loss": loss, "encoder": encoder, "map_rows": given["map_rows"]}
    alpha = alpha if given["alpha"] is None else given["alpha"]
    return kind(feature_map, alpha=alpha, **options), facts


def _map(seen: Survey, encoded: bool, **given: Any) -> tuple[Any, Any, dict[str, Any]]:
    """The map, unfitted, alpha, and facts about the search if there was one."""
    if given["auto"] or given["budget"]:
        budget = given["budget"] or given["components"] or 1024
        feature_map, alpha, advice = searched(seen, budget, given["seed"], images=given["images"])
        squared = given["loss"] == "squared"
        return feature_map, alpha if squared else "auto", {"expected_error": advice.best.error}
    options = {name: given[name] for name in ("degree", "gamma", "coef0")}
    kernel = kernel_of(given["kernel"], **options)
    size = given["components"] or 1024
    inner = named_map(kernel, given["map_name"], size, seen, given["seed"])
    if given["images"]:
        return of_images(inner, seen.X, metric=given["metric"]), "auto", {}
    scale = "none" if encoded and given["scale"] is None else given["scale"]
    feature_map = scaled(inner, scale, given["unit_norm"], seen.X, metric=given["metric"])
    return feature_map, "auto", {}


def _loss(given: str | None, classification: bool, checkpoint: bool) -> str:
    if given is None:
        return "log" if classification and not checkpoint else "squared"
    if given == "log" and not classification:
        raise click.UsageError("--loss log is for classes, and the target is measured numbers.")
    if given in ("huber", "quantile") and classification:
        raise click.UsageError(
            f"--loss {given} is for measured numbers, and the target is classes."
        )
    return given


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
    """The map of a name, or the best data-independent one for a kernel."""
    if name is None:
        return candidates.independent_map(kernel, n_components, seen.X.shape[1], seed)
    kind = names.maps()[name]
    few = min(n_components, seen.n_rows) if kind is Nystroem else n_components
    return kind(kernel, few, random_state=seed)


def scaled(
    feature_map: Any, scale: str | None, unit_norm: bool | None, X: Any, *, metric: bool = False
) -> ScaledMap:
    """The map of rows scaled as asked for, or as its kernel needs them, and then by a metric.

    A polynomial of an inner product wants rows of length 1; a function of a distance wants columns
    of equal weight.
    """
    dot_product = isinstance(feature_map.kernel, DotProductKernel)
    if scale is None:
        sparse = hasattr(X, "tocsr")
        scale = "none" if dot_product else "std" if sparse else "standard"
    norm = dot_product if unit_norm is None else unit_norm
    if metric:
        feature_map = MetricMap(feature_map, unit_norm=norm)
    return ScaledMap(feature_map, columns=scale, unit_norm=norm)


def of_images(feature_map: Any, X: Any, *, metric: bool = False) -> ImageMap:
    """The map of oriented gradients of square images, perhaps seen through a metric."""
    cells = image_cells(image_shape(X))
    return ImageMap(MetricMap(feature_map) if metric else feature_map, cells=cells)


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
