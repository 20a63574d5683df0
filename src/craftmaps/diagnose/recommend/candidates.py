"""What `recommend` chooses from: preprocessing, kernels for rows so prepared, maps of a kernel."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import (
    DotProductKernel,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    ShiftInvariantKernel,
)
from craftmaps.maps import CraftMap, FourierFeatures, Nystroem
from craftmaps.maps.parts.images import gradients

GRADIENTS = "oriented gradients"  # what ImageMap gives to the map inside
_DEGREES = (2, 3, 5, 7)


def preparations(X: Any, shape: tuple[int, int] | None = None) -> dict[str, Pipeline]:
    """Unfitted pipelines that prepare rows like X, by name; sparse rows stay sparse.

    Rows that are images of a shape may be seen as gradients too.
    """
    found = _scalings(X)
    if shape is not None:
        first = [step for _, step in found["unit norm"].steps[:-1]]
        seen = {"cells": cells_of(shape), "shape": shape}
        found[GRADIENTS] = make_pipeline(
            *first, FunctionTransformer(gradients, accept_sparse=True, kw_args=seen)
        )
    return found


def cells_of(shape: tuple[int, int]) -> int:
    """Those of ImageMap, as far as images have so many pixels."""
    return min(5, *shape)


def _scalings(X: Any) -> dict[str, Pipeline]:
    if sparse.issparse(X):
        return {
            "unit norm": make_pipeline(Normalizer()),
            "columns to [-1, 1]": make_pipeline(MaxAbsScaler()),
            "columns to [-1, 1], unit norm": make_pipeline(MaxAbsScaler(), Normalizer()),
            "unit variance": make_pipeline(StandardScaler(with_mean=False)),
        }
    # a column without a value in the sample is kept: it may have some elsewhere, or be a pixel
    first = [SimpleImputer(keep_empty_features=True)] if np.isnan(X).any() else []
    return {
        "unit norm": make_pipeline(*first, Normalizer()),
        "columns to [0, 1]": make_pipeline(*first, MinMaxScaler()),
        "columns to [0, 1], unit norm": make_pipeline(*first, MinMaxScaler(), Normalizer()),
        "centred, unit norm": make_pipeline(*first, StandardScaler(with_std=False), Normalizer()),
        "standardised": make_pipeline(*first, StandardScaler()),
        "standardised, unit norm": make_pipeline(*first, StandardScaler(), Normalizer()),
    }


def kernels(X: Any) -> list[Any]:
    """Kernels of several families, at the scale of prepared rows X."""
    size = _round(1 / (float(row_norms(X, squared=True).mean()) or 1.0))
    found: list[Any] = [Polynomial(degree, gamma=size) for degree in _DEGREES]
    found += [Exponential(gamma=factor * size) for factor in (1, 4)]
    for family, factors in (
        (Gaussian, (0.5, 2, 8)),
        (Laplacian, (0.5, 2)),
        (Matern, (1, 3)),
    ):
        base = float(family(gamma="median").resolved(X).gamma)
        found += [family(gamma=_round(factor * base)) for factor in factors]
    return found


def neighbours(kernel: Any) -> list[Any]:
    """Kernels of the same family, one step to either side."""
    steps: list[dict[str, Any]]
    if isinstance(kernel, Polynomial):
        steps = [{"degree": kernel.degree + step} for step in (-1, 1) if kernel.degree + step > 1]
        steps += [{"gamma": 2 * kernel.gamma}]
    else:
        steps = [{"gamma": _round(kernel.gamma * factor)} for factor in (0.5, 2)]
    return [clone(kernel).set_params(**step) for step in steps]


def maps(kernel: Any, n_components: int, n_rows: int, n_columns: int, seed: int) -> list[Any]:
    """Unfitted maps for a kernel: Nyström, and the best kind of data-independent one."""
    few = min(n_components, n_rows)
    found: list[Any] = [Nystroem(kernel, few, landmarks="rpcholesky", random_state=seed)]
    if isinstance(kernel, DotProductKernel):
        found.append(CraftMap(kernel, n_components, random_state=seed))
    elif isinstance(kernel, ShiftInvariantKernel):
        sampling = "orthogonal"
        if isinstance(kernel, Laplacian):
            sampling = "qmc" if n_columns <= 1000 else "iid"
        elif n_columns > 256:
            sampling = "structured"
        found.append(FourierFeatures(kernel, n_components, sampling=sampling, random_state=seed))
    return found


def costly_map(kernel: Any, n_components: int, n_rows: int, seed: int) -> Nystroem:
    """A map that is often better and takes longer to fit: tried for one kernel only."""
    return Nystroem(kernel, min(n_components, n_rows), landmarks="kmeans", random_state=seed)


def probe(kernel: Any, n_components: int, seed: int) -> Nystroem:
    """The map with which kernels are told apart: it takes every kernel and costs little."""
    return Nystroem(kernel, n_components, random_state=seed)


def defaults(X: Any, n_components: int, seed: int) -> list[tuple[str, Any]]:
    """Preprocessing and map of somebody who does not choose; advice must not be worse."""
    found: list[tuple[str, Any]] = [
        ("unit norm", CraftMap("poly", n_components=n_components, random_state=seed))
    ]
    if not sparse.issparse(X):
        fourier = FourierFeatures("rbf", n_components=n_components, random_state=seed)
        found.append(("standardised", fourier))
    return found


def _round(value: float) -> float:
    """Three digits are enough for a bandwidth, and can be read."""
    return float(f"{value:.3g}")
