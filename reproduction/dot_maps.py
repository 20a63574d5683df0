"""Kernels and maps of KK (Kar and Karnick 2012) and PP (Pham and Pagh 2013), by their names."""

import re
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from craftmaps.kernels import DotProductKernel, Exponential, Polynomial
from craftmaps.maps import CraftMap, RandomMaclaurin, TensorSketch

MAPS = ("RF", "RM", "RF of one degree", "H0/1", "TS", "CRAFT", "RM v2")
_POLYNOMIAL = re.compile(r"(\(1 \+ <x,y>\)|<x,y>)\^(\d+)")
_PAIRED_ROWS = 1000


def kernel_of(name: str, X: np.ndarray | None = None) -> DotProductKernel:
    """The kernel that is written so.

    Parameters
    ----------
    name : str
        "(1 + <x,y>)^p", "<x,y>^p", "exp(<x,y>)", or "exp(<x,y>/s^2)" with s the mean distance
        between rows of X.
    X : ndarray or None, default=None
        Training rows; up to 1,000 of them are paired.

    Examples
    --------
    >>> kernel_of("(1 + <x,y>)^10")
    Polynomial(degree=10)
    """
    if name == "exp(<x,y>)":
        return Exponential()
    if name == "exp(<x,y>/s^2)" and X is not None:
        rows = X[:: -(-len(X) // _PAIRED_ROWS)]
        distances = pairwise_distances(rows)[np.triu_indices(len(rows), k=1)]
        return Exponential(1 / float(distances.mean()) ** 2)
    found = _POLYNOMIAL.fullmatch(name)
    if found is None:
        raise ValueError(f"no kernel is written {name!r}; write (1 + <x,y>)^2 or <x,y>^2.")
    return Polynomial(int(found[2]), coef0=0.0 if found[1] == "<x,y>" else 1.0)


def map_of(
    name: str, kernel: DotProductKernel, size: int, *, n_columns: int, seed: int | None
) -> Any:
    """The map of that name.

    RF, which PP call RM, is Algorithm 1 of KK as printed: degrees by the geometric law with p = 2,
    signs. With H0/1 `size` counts the random features alone, which stand beside 1 + n_columns exact
    ones (KK s.6.2); so it does with RM v2, which is H0/1 with structured projections and degrees in
    proportion to the kernel's terms. CRAFT is the library's map with its own choices.
    """
    same: dict[str, Any] = {"n_components": size, "random_state": seed}
    printed: dict[str, Any] = {"allocation": "geometric", "projection": "rademacher"}
    if name in ("RF", "RM"):
        return RandomMaclaurin(kernel, **printed, **same)
    if name == "RF of one degree":  # of <x,y>^p: no feature is spent on the other degrees
        return RandomMaclaurin(kernel, **printed | {"allocation": "proportional"}, **same)
    if name in ("H0/1", "RM v2"):
        same["n_components"] = size + 1 + n_columns
        ours = {"allocation": "proportional"}  # at few features it learns better than "optimized"
        return RandomMaclaurin(kernel, h01="append", **printed if name == "H0/1" else ours, **same)
    if name == "TS":
        return TensorSketch(kernel, **same)
    if name == "CRAFT":
        return CraftMap(kernel, **same)
    raise ValueError(f"there is no map {name!r}; there are {', '.join(MAPS)}.")
