"""From options to a feature map."""

from typing import Any

import click

from craftmaps import (
    Cauchy,
    CraftMap,
    Exponential,
    FourierFeatures,
    Gaussian,
    ImageMap,
    Laplacian,
    Matern,
    MetricMap,
    Nystroem,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
    TensorSketch,
)
from craftmaps.cli.rows import Survey
from craftmaps.diagnose.recommend import candidates
from craftmaps.diagnose.recommend.advice import Advice
from craftmaps.diagnose.recommend.budget import Budget
from craftmaps.diagnose.recommend.recommend import recommend
from craftmaps.kernels import DotProductKernel
from craftmaps.maps.parts.images import image_shape

_KERNELS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "poly": (Polynomial, ("degree", "gamma", "coef0")),
    "exp": (Exponential, ("gamma",)),
    "rbf": (Gaussian, ("gamma",)),
    "laplacian": (Laplacian, ("gamma",)),
    "cauchy": (Cauchy, ("gamma",)),
    "matern": (Matern, ("gamma",)),
}
_MAPS: dict[str, Any] = {
    "craft": CraftMap,
    "maclaurin": RandomMaclaurin,
    "tensorsketch": TensorSketch,
    "fourier": FourierFeatures,
    "nystroem": Nystroem,
}
PREPARATIONS = {  # of an advice, as ScaledMap knows them: columns, unit_norm
    "unit norm": ("none", True),
    "columns to [0, 1]": ("minmax", False),
    "columns to [0, 1], unit norm": ("minmax", True),
    "centred, unit norm": ("center", True),
    "standardised": ("standard", False),
    "standardised, unit norm": ("standard", True),
    "columns to [-1, 1]": ("maxabs", False),
    "columns to [-1, 1], unit norm": ("maxabs", True),
    "unit variance": ("std", False),
}


def kernel_of(name: str | None, **options: Any) -> Any:
    """The kernel of a name, with those of its parameters that were given."""
    kind, known = _KERNELS[name or "poly"]
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in known:
            raise click.UsageError(f"--{option} is no parameter of the kernel {name}.")
    if "gamma" in given:
        given["gamma"] = _number_or_name(given["gamma"])
    return kind(**given)


def named_map(kernel: Any, name: str | None, n_components: int, seen: Survey, seed: int = 0) -> Any:
    """The map of a name, or the best data-independent one for a kernel."""
    if name is None:
        columns = seen.X.shape[1]
        return candidates.maps(kernel, n_components, seen.n_rows, columns, seed)[-1]
    few = min(n_components, len(seen.y)) if name == "nystroem" else n_components
    return _MAPS[name](kernel, few, random_state=seed)


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
    cells = candidates.cells_of(image_shape(X))
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
    learner = advice.estimator[-1]
    alpha = learner.alpha if share == 1 else "gcv"
    if advice.best.preparation == candidates.GRADIENTS:
        return learner.feature_map, alpha, advice
    columns, unit_norm = PREPARATIONS[advice.best.preparation]
    return ScaledMap(learner.feature_map, columns=columns, unit_norm=unit_norm), alpha, advice


def _number_or_name(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
