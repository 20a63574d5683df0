"""Convert the value of a `kernel` parameter to a validated kernel object."""

from typing import Any

from sklearn.base import clone

from craftmaps.kernels.base import Kernel
from craftmaps.kernels.dot_product import DotProductKernel
from craftmaps.kernels.function import FunctionKernel, scikit_learn_kernels
from craftmaps.kernels.shift_invariant import Gaussian, ShiftInvariantKernel


def dot_product_kernel(kernel: Any) -> DotProductKernel:
    """Return a validated copy of the `kernel` parameter of a dot-product map."""
    what = "a dot-product kernel such as Polynomial(degree=3)"
    checked: DotProductKernel = _checked_copy(kernel, DotProductKernel, what)
    return checked


def series_kernel(kernel: Any) -> DotProductKernel | Gaussian:
    """Return a validated copy of a kernel with a Maclaurin series.

    This is a dot-product kernel or a Gaussian, which is an exponential kernel times a function of
    each row.
    """
    if isinstance(kernel, str) and kernel == Gaussian.short_name:
        return Gaussian()
    what = "a dot-product kernel such as Polynomial(degree=3), or a Gaussian"
    kind = Gaussian if isinstance(kernel, Gaussian) else DotProductKernel
    checked: DotProductKernel | Gaussian = _checked_copy(kernel, kind, what)
    return checked


def shift_invariant_kernel(kernel: Any) -> ShiftInvariantKernel:
    """Return a validated copy of the `kernel` parameter of a Fourier map."""
    what = "a shift-invariant kernel such as Gaussian(gamma=0.5)"
    checked: ShiftInvariantKernel = _checked_copy(kernel, ShiftInvariantKernel, what)
    return checked


def any_kernel(kernel: Any, parameters: dict[str, Any] | None = None) -> Kernel:
    """Return a validated copy of any kind of kernel.

    A name that both this library and scikit-learn use selects the kernel of this library.
    `parameters` are keyword arguments for scikit-learn's kernels and for functions.
    """
    own_names = _short_names(Kernel)
    if not isinstance(kernel, Kernel) and not (isinstance(kernel, str) and kernel in own_names):
        if isinstance(kernel, type) or not (callable(kernel) or _is_scikit_learn_name(kernel)):
            known = sorted({*own_names, *scikit_learn_kernels()})
            raise ValueError(
                f"kernel must be a kernel such as Gaussian(gamma=0.5), a function of two matrices "
                f"or one of {known}, got {kernel!r}."
            )
        function = FunctionKernel(kernel, parameters)
        function.check()
        return function
    if parameters:
        name = type(kernel).__name__ if isinstance(kernel, Kernel) else own_names[kernel].__name__
        raise ValueError(
            f"kernel_params={parameters!r} are only for scikit-learn's kernels and for functions; "
            f"set the parameters of {name} itself."
        )
    checked: Kernel = _checked_copy(kernel, Kernel, "a kernel")
    return checked


def _checked_copy(kernel: Any, kind: type[Any], what: str) -> Any:
    names = _short_names(kind)
    if isinstance(kernel, str) and kernel in names:
        kernel = names[kernel]()
    if not isinstance(kernel, kind):
        raise ValueError(f"kernel must be {what}, or one of {sorted(names)}, got {kernel!r}.")
    kernel.check()
    return clone(kernel)  # a fitted map does not change with its parameters


def _short_names(kind: type[Any]) -> dict[str, type[Any]]:
    """Map short names to the subclasses of `kind` (a subclass does not inherit a name)."""
    names: dict[str, type[Any]] = {}
    for subclass in kind.__subclasses__():
        names = _short_names(subclass) | names
        name = vars(subclass).get("short_name")
        if name is not None:
            names.setdefault(name, subclass)
    return names


def _is_scikit_learn_name(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel in scikit_learn_kernels()
