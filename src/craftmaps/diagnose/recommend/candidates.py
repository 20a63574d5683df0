"""Kernels and maps that `recommend` chooses from."""

from typing import Any

from scipy import sparse
from sklearn.base import clone
from sklearn.utils.extmath import row_norms

from craftmaps.diagnose.recommend.preparation import Scaling
from craftmaps.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
)
from craftmaps.maps import CraftMap, FourierFeatures, Nystroem, feature_map

_DEGREES = (2, 3, 5, 7)
_GAMMA_FACTORS = {Gaussian: (0.5, 2, 8), Laplacian: (0.5, 2), Matern: (1, 3)}


def kernels(X: Any) -> list[Any]:
    """Kernels of several families whose gamma suits the size of the prepared rows X."""
    gamma = _three_digits(1 / (float(row_norms(X, squared=True).mean()) or 1.0))
    tried: list[Any] = [Polynomial(degree, gamma=gamma) for degree in _DEGREES]
    tried += [Exponential(gamma=factor * gamma) for factor in (1, 4)]
    for family, factors in _GAMMA_FACTORS.items():
        median = float(family(gamma="median").resolved(X).gamma)
        tried += [family(gamma=_three_digits(factor * median)) for factor in factors]
    return tried


def neighbors(kernel: Any) -> list[Any]:
    """Kernels of the same family, one step to either side."""
    steps: list[dict[str, Any]]
    if isinstance(kernel, Polynomial):
        steps = [{"degree": kernel.degree + step} for step in (-1, 1) if kernel.degree + step > 1]
        steps += [{"gamma": 2 * kernel.gamma}]
    else:
        steps = [{"gamma": _three_digits(kernel.gamma * factor)} for factor in (0.5, 2)]
    return [clone(kernel).set_params(**step) for step in steps]


def maps(kernel: Any, n_components: int, X: Any, seed: int) -> list[Any]:
    """Unfitted maps for a kernel: Nyström features, and a map that does not depend on the rows."""
    landmarks = min(n_components, X.shape[0])
    return [
        Nystroem(kernel, landmarks, landmarks="rpcholesky", random_state=seed),
        feature_map(kernel, X, n_components, random_state=seed),
    ]


def costly_map(kernel: Any, n_components: int, n_rows: int, seed: int) -> Nystroem:
    """A map that is often better and takes longer to fit, so it is tried for one kernel only."""
    return Nystroem(kernel, min(n_components, n_rows), landmarks="kmeans", random_state=seed)


def probe(kernel: Any, n_components: int, seed: int) -> Nystroem:
    """The map by which kernels are compared: it takes every kernel and costs little."""
    return Nystroem(kernel, n_components, random_state=seed)


def defaults(X: Any, n_components: int, seed: int) -> list[tuple[Scaling, Any]]:
    """Plain defaults, each with the usual scaling; the advice must not be worse than these."""
    craft = CraftMap("poly", n_components=n_components, random_state=seed)
    if sparse.issparse(X):
        return [(Scaling("none", True), craft)]
    fourier = FourierFeatures("rbf", n_components=n_components, random_state=seed)
    return [(Scaling("none", True), craft), (Scaling("standard", False), fourier)]


def _three_digits(value: float) -> float:
    """Three digits are enough for a bandwidth, and are easy to read."""
    return float(f"{value:.3g}")
