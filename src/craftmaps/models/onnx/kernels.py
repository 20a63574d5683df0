"""Kernels between rows and landmarks as ONNX, in float64 as the library computes the close ones."""

from typing import Any

import numpy as np

from craftmaps.kernels import (
    Cauchy,
    Composed,
    DotProductKernel,
    Exponential,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    VovkInfinite,
    any_kernel,
    dot_product_kernel,
)
from craftmaps.models.onnx.graph import Graph

_LARGEST_DEGREE = 100  # of a series that is evaluated term by term


def gram(g: Graph, x: str, kernel: Any, landmarks: np.ndarray) -> str:
    """k(x, l) for rows x and landmarks l, in float64; x is float64 too."""
    if isinstance(kernel, DotProductKernel):
        return _of_products(g, g.add("MatMul", x, landmarks.T), kernel)
    if isinstance(kernel, Composed):
        outer = dot_product_kernel(kernel.outer)
        return _of_products(g, gram(g, x, any_kernel(kernel.inner), landmarks), outer)
    if isinstance(kernel, Gaussian):
        factor = np.float64(-float(kernel.gamma))
        return g.add("Exp", g.add("Mul", _squared(g, x, landmarks), factor))
    if isinstance(kernel, Matern) and kernel.nu in (0.5, 1.5, 2.5):
        return _matern(g, g.add("Sqrt", _squared(g, x, landmarks)), kernel)
    if isinstance(kernel, Laplacian | Cauchy):
        between = g.add("Sub", g.add("Unsqueeze", x, [1]), landmarks)
        scaled = g.add("Mul", between, np.float64(kernel.gamma))
        if isinstance(kernel, Laplacian):
            logarithm = g.total(g.add("Abs", scaled), axis=2)
        else:
            square = g.add("Add", g.add("Mul", scaled, scaled), np.float64(1))
            logarithm = g.total(g.add("Log", square), axis=2)
        return g.add("Exp", g.add("Neg", logarithm))
    raise ValueError(
        f"{kernel!r} has no form in ONNX's operators; Nystroem maps are exported with the kernels "
        f"of dot products, Gaussian, Laplacian, Cauchy, and Matern of nu 0.5, 1.5 or 2.5."
    )


def _squared(g: Graph, x: str, landmarks: np.ndarray) -> str:
    """|x - l|^2, of rows about the mean of the landmarks."""
    mean = landmarks.mean(axis=0)
    moved, others = g.add("Sub", x, mean), landmarks - mean
    norms = g.add("ReduceSum", g.add("Mul", moved, moved), [1], keepdims=1)
    sums = g.add("Add", norms, np.square(others).sum(axis=1))
    products = g.add("MatMul", moved, -2 * others.T)
    return g.add("Relu", g.add("Add", sums, products))


def _matern(g: Graph, distance: str, kernel: Matern) -> str:
    scale = np.sqrt(2 * kernel.nu) * float(kernel.gamma)
    s = g.add("Mul", distance, np.float64(scale))
    decay = g.add("Exp", g.add("Neg", s))
    terms = {0.5: [1.0], 1.5: [1.0, 1.0], 2.5: [1.0, 1.0, 1 / 3]}[kernel.nu]
    return decay if len(terms) == 1 else g.add("Mul", decay, _series(g, s, terms))


def _of_products(g: Graph, t: str, kernel: DotProductKernel) -> str:
    """f(t) of a dot-product kernel."""
    scaled = g.add("Mul", t, np.float64(kernel.gamma))
    if isinstance(kernel, Polynomial):
        whole = g.add("Add", scaled, np.float64(kernel.coef0))
        return g.product([whole] * int(kernel.degree))
    if isinstance(kernel, Exponential):
        return g.add("Exp", scaled)
    if isinstance(kernel, VovkInfinite):
        return g.add("Reciprocal", g.add("Sub", np.float64(1), scaled))
    if kernel.highest_degree > _LARGEST_DEGREE:
        raise ValueError(f"{kernel!r} has more than {_LARGEST_DEGREE} terms, too many for ONNX.")
    return _series(g, t, list(kernel.maclaurin(int(kernel.highest_degree))))


def _series(g: Graph, t: str, coefficients: list[float]) -> str:
    """sum_n a_n t^n by Horner's rule."""
    value = g.add("Mul", t, np.float64(0))
    for a in reversed(coefficients):
        value = g.add("Add", g.add("Mul", value, t), np.float64(a))
    return value


def _onnx(self: Kernel, g: Any, x: str, landmarks: np.ndarray) -> str:
    return gram(g, x, self, landmarks)


Kernel.onnx = _onnx  # type: ignore[attr-defined]
