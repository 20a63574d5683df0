"""From what a `kernel` parameter may be to a kernel whose parameters are valid."""

from typing import Any

from sklearn.base import clone

from craftmaps.kernels.base import Kernel
from craftmaps.kernels.dot_product import DotProductKernel
from craftmaps.kernels.function import FunctionKernel, scikit_learn_kernels
from craftmaps.kernels.shift_invariant import Gaussian, ShiftInvariantKernel


def dot_product_kernel(kernel: Any) -> DotProductKernel:
    """A checked copy of the kernel that the `kernel` parameter of a dot-product map names."""
    what = "a dot-product kernel such as Polynomial(degree=3)"
    checked: DotProductKernel = _checked_copy(kernel, DotProductKernel, what)
    return checked


def series_kernel(kernel: Any) -> DotProductKernel | Gaussian:
    """A checked copy of a kernel with a Maclaurin series: of dot products, or a Gaussian.

    A Gaussian kernel is an exponential one times a function of each row.
    """
    if isinstance(kernel, str) and kernel == Gaussian.short_name:
        return Gaussian()
    what = "a dot-product kernel such as Polynomial(degree=3), or a Gaussian"
    kind = Gaussian if isinstance(kernel, Gaussian) else DotProductKernel
    checked: DotProductKernel | Gaussian = _checked_copy(kernel, kind, what)
    return checked


def shift_invariant_kernel(kernel: Any) -> ShiftInvariantKernel:
    """A checked copy of the kernel that the `kernel` parameter of a Fourier map names."""
    what = "a shift-invariant kernel such as Gaussian(gamma=0.5)"
    checked: ShiftInvariantKernel = _checked_copy(kernel, ShiftInvariantKernel, what)
    return checked


def any_kernel(kernel: Any, parameters: dict[str, Any] | None = None) -> Kernel:
    """A checked copy of the kernel that a `kernel` parameter names, whatever its kind.

    A name that this library and scikit-learn share means the kernel of this library. `parameters`
    are keyword arguments for kernels of scikit-learn and for functions.
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
            f"kernel_params={parameters!r} are for kernels of scikit-learn and for functions; "
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
    """The classes of a kind by their short names; a subclass does not inherit the name."""
    names: dict[str, type[Any]] = {}
    for subclass in kind.__subclasses__():
        names = _short_names(subclass) | names
        name = vars(subclass).get("short_name")
        if name is not None:
            names.setdefault(name, subclass)
    return names


def _is_scikit_learn_name(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel in scikit_learn_kernels()
