"""Kernels that the search tries for prepared rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from craftmaps.kernels import Gaussian, Laplacian, Matern, Polynomial, Sum
from craftmaps.search.preparation import Preparation

# Inverse lengths in units of 1 / median distance. Good rough kernels may be far wider.
_INVERSE_LENGTHS: dict[str, tuple[float, ...]] = {
    "gaussian": (0.25, 1.0, 4.0),
    "matern32": (0.125, 0.5, 2.0),
    "matern12": (1 / 16, 0.25, 1.0, 4.0),
    "laplacian": (0.125, 0.5, 2.0),
}
_DEGREES = (1, 3, 5)
STEP = 2.0  # ratio of neighboring widths
_SAME_WIDTH = 0.98  # ratio of widths above which kernels are the same


@dataclass(frozen=True)
class Candidate:
    """A preparation of rows, and a kernel for prepared rows with a number as gamma.

    `alpha` is the best penalty of this or a similar candidate on fewer rows, or None if unknown.
    """

    preparation: Preparation
    kernel: Any
    alpha: float | None = field(default=None, compare=False)

    @property
    def family(self) -> str:
        """The kernel without its width."""
        if isinstance(self.kernel, Matern):
            return f"Matern(nu={self.kernel.nu:g})"
        return type(self.kernel).__name__

    @property
    def is_linear(self) -> bool:
        """Whether this is a linear model of the columns."""
        linear = isinstance(self.kernel, Polynomial) and self.kernel.degree == 1
        return linear and not self.preparation.unit_norm

    @property
    def key(self) -> tuple[Preparation, str]:
        """A key that is equal for equal candidates."""
        return self.preparation, repr(self.kernel)

    def is_nearly(self, other: "Candidate") -> bool:
        """Whether the other candidate differs only by the rounding of its width, if at all."""
        if self.key == other.key:
            return True
        widths = [getattr(one.kernel, "gamma", 0.0) for one in (self, other)]
        alike = self.preparation == other.preparation and self.family == other.family
        return alike and min(widths) > _SAME_WIDTH * max(widths)

    def gram(self, prepared: Any, others: Any = None) -> np.ndarray:
        """The kernel matrix of prepared rows, or between them and others, in float64."""
        return np.asarray(self.kernel(prepared, others))

    @property
    def kernel_text(self) -> str:
        """The kernel as text on one line, with plus signs between the terms of a sum."""
        terms = self.kernel.kernels if isinstance(self.kernel, Sum) else [self.kernel]
        return " + ".join(map(repr, terms))

    def __str__(self) -> str:
        return f"{self.kernel_text} on {self.preparation}"


def candidates(preparation: Preparation, prepared: Any) -> list[Candidate]:
    """Return kernels of several families and widths for prepared rows."""
    length = 1 / float(Matern(gamma="median").resolved(prepared).gamma)
    taxicab = 1 / float(Laplacian(gamma="median").resolved(prepared).gamma)
    kernels: list[Any] = []
    for name, factors in _INVERSE_LENGTHS.items():
        for factor in factors:
            if name == "gaussian":
                kernels.append(Gaussian(gamma=_rounded((factor / length) ** 2 / 2)))
            elif name == "laplacian":
                kernels.append(Laplacian(gamma=_rounded(factor / taxicab)))
            else:
                nu = 1.5 if name == "matern32" else 0.5
                kernels.append(Matern(nu=nu, gamma=_rounded(factor / length)))
    if preparation.unit_norm:  # polynomials of long rows grow fast outside the training range
        kernels += [Polynomial(degree, gamma=1.0, coef0=1.0) for degree in _DEGREES]
    return [Candidate(preparation, kernel) for kernel in kernels]


def linear(preparation: Preparation) -> Candidate:
    """Return the candidate that is a linear model of the columns."""
    return Candidate(preparation, Polynomial(1, gamma=1.0, coef0=1.0))


def neighbors(candidate: Candidate) -> list[Candidate]:
    """Return the same kernel one step wider and one step narrower, if it has a width."""
    if isinstance(candidate.kernel, Polynomial):
        return []
    return [
        Candidate(candidate.preparation, _widened(candidate.kernel, step), alpha)
        for step, alpha in zip((STEP, 1 / STEP), _alphas(candidate), strict=True)
    ]


def _alphas(candidate: Candidate) -> tuple[float | None, float | None]:
    """Return alphas to start with for a kernel that is one step wider or narrower.

    The spectrum of a kernel of smoothness nu falls with the power -2 nu - d of the frequency, so
    that of a kernel that is s times wider is s^(2 nu) times smaller at high frequencies. Other
    kernels keep alpha. A wide Gaussian kernel with a tiny alpha loses digits.
    """
    if candidate.alpha is None:
        return None, None
    terms = candidate.kernel.kernels if isinstance(candidate.kernel, Sum) else [candidate.kernel]
    power = min(2 * _smoothness(term) for term in terms)
    return candidate.alpha / STEP**power, candidate.alpha * STEP**power


def _smoothness(kernel: Any) -> float:
    if isinstance(kernel, Matern):
        return float(kernel.nu)
    return 0.5 if isinstance(kernel, Laplacian) else 0.0


def _widened(kernel: Any, factor: float) -> Any:
    if isinstance(kernel, Sum):
        return Sum([_widened(term, factor) for term in kernel.kernels])
    step = factor**2 if isinstance(kernel, Gaussian) else factor
    return clone(kernel).set_params(gamma=_rounded(kernel.gamma / step))


def _rounded(gamma: float) -> float:
    """Round to three digits, which are enough for a width and easy to read."""
    return float(f"{gamma:.3g}")
