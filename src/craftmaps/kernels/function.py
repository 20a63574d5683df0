"""Kernels given by functions: scikit-learn's kernels by name, and user-defined functions."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.kernels import pairs
from craftmaps.kernels.base import Kernel
from craftmaps.kernels.shift_invariant import ShiftInvariantKernel
from craftmaps.storage.packing import storable

_DIAGONAL_ROWS = 64  # the diagonal is taken from Gram matrices of this many rows


@storable
class FunctionKernel(Kernel):
    """Kernel given by a name of scikit-learn or by a function.

    Parameters
    ----------
    function : str or callable
        Name of a kernel of scikit-learn, or function of two matrices that returns a Gram matrix.
    parameters : dict or None, default=None
        Keyword arguments of the function.
    """

    threads = False  # the function may not be thread-safe

    def __init__(
        self, function: str | Callable[..., Any], parameters: dict[str, Any] | None = None
    ) -> None:
        self.function = function
        self.parameters = parameters

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        Y = X if Y is None else Y
        parameters = self.parameters or {}
        if isinstance(self.function, str):
            from sklearn.metrics.pairwise import pairwise_kernels  # slow to import

            try:
                gram = pairwise_kernels(X, Y, metric=self.function, **parameters)
            except (TypeError, OverflowError) as error:
                raise ValueError(
                    f"kernel_params={parameters!r} do not fit {self.function!r}: {error}."
                ) from error
        else:
            gram = self.function(X, Y, **parameters)
        gram = gram.toarray() if sparse.issparse(gram) else np.asarray(gram)
        if gram.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"the kernel function must return an array of shape {(X.shape[0], Y.shape[0])} for "
                f"two matrices of {X.shape[0]} and {Y.shape[0]} rows, got shape {gram.shape}; for "
                f"a function f of two rows use lambda X, Y: pairwise_kernels(X, Y, metric=f)."
            )
        return gram

    def check(self) -> None:
        functions = scikit_learn_kernels()
        named = isinstance(self.function, str) and self.function in functions
        if isinstance(self.function, type) or not (callable(self.function) or named):
            raise ValueError(
                f"a kernel function must be a function of two matrices or the name of a "
                f"scikit-learn kernel, got {self.function!r}."
            )
        parameters = self.parameters or {}
        if not isinstance(parameters, dict) or not all(isinstance(n, str) for n in parameters):
            raise ValueError(f"kernel_params must be a dict with str keys, got {parameters!r}.")
        if named:
            try:
                inspect.signature(functions[self.function]).bind(None, None, **parameters)
            except TypeError as error:
                raise ValueError(
                    f"kernel_params={parameters!r} do not fit {self.function!r}: {error}."
                ) from None

    def against(self, Y: Any, dtype: np.dtype) -> pairs.Fill:
        def fill(X: Any, out: np.ndarray) -> None:
            out[:] = self(X, Y)

        return fill

    def diagonal(self, X: Any) -> np.ndarray:
        starts = range(0, X.shape[0], _DIAGONAL_ROWS)
        blocks = (X[start : start + _DIAGONAL_ROWS] for start in starts)
        return np.concatenate([self(block).diagonal() for block in blocks])


def scikit_learn_kernels() -> dict[Any, Callable[..., Any]]:
    """Return scikit-learn's kernel functions by name."""
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS  # slow to import

    return dict(PAIRWISE_KERNEL_FUNCTIONS)


@storable
class ShiftInvariant(ShiftInvariantKernel):
    """User-defined kernel E cos<w, gamma (x - y)>, given by a function that draws w.

    Parameters
    ----------
    draw : callable
        `draw(n, d, rng)` returns n independent frequencies in d dimensions as an array of shape
        (n, d); rng is a `numpy.random.Generator`.
    value : callable or None, default=None
        `value(differences)` returns the kernel for an array of differences of shape (..., d). It
        is needed for exact Gram matrices, but not for `FourierFeatures`.
    isotropic : bool, default=False
        Whether the distribution of w is rotation invariant. If True, frequencies can be drawn
        orthogonal to each other, which lowers the error.
    gamma : float, "scale" or "median", default=1.0
        Inverse length scale, as in `Cauchy`.

    Examples
    --------
    The product of sin(d_i) / d_i, whose frequencies are uniform on a cube:

    >>> import numpy as np
    >>> from craftmaps import FourierFeatures
    >>> from craftmaps.kernels import ShiftInvariant
    >>> kernel = ShiftInvariant(
    ...     lambda n, d, rng: rng.uniform(-1, 1, (n, d)),
    ...     value=lambda differences: np.sinc(differences / np.pi).prod(axis=-1),
    ... )
    >>> X = np.random.default_rng(0).random((10, 3))
    >>> Z = FourierFeatures(kernel, n_components=4096, random_state=0).fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - kernel(X)).max() < 0.05)
    True
    """

    threads = False

    def __init__(
        self,
        draw: Callable[[int, int, np.random.Generator], Any],
        value: Callable[[np.ndarray], Any] | None = None,
        isotropic: bool = False,
        gamma: float | str = 1.0,
    ) -> None:
        self.draw = draw
        self.value = value
        self.isotropic = isotropic
        self.gamma = gamma

    def lengths(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray | None:
        if not self.isotropic:
            return None
        return np.asarray(np.linalg.norm(self.frequencies(n, d, rng), axis=1))

    def _check(self) -> None:
        for name, needed in (("draw", True), ("value", False)):
            given = getattr(self, name)
            if not callable(given) and (needed or given is not None):
                raise ValueError(f"ShiftInvariant: {name} must be a function, got {given!r}.")

    def _draw(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        drawn = np.asarray(self.draw(n, d, rng), dtype=float)
        if drawn.shape != (n, d) or not np.isfinite(drawn).all():
            raise ValueError(
                f"ShiftInvariant: draw({n}, {d}, rng) must return finite numbers of shape "
                f"({n}, {d}), got shape {drawn.shape}."
            )
        return drawn

    def against(self, Y: Any, dtype: np.dtype) -> pairs.Fill:
        if self.value is None:
            raise ValueError(
                "ShiftInvariant has no exact values, because it was given no `value` function."
            )
        value, gamma = self.value, float(self.gamma)
        return pairs.of_differences(Y, lambda differences: value(gamma * differences))
