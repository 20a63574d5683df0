"""The error to expect of a map on given rows, and the size for a given error.

Variance formulas on a sample of pairs of rows answer both without computing a feature.
"""

import math
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array

from craftmaps.kernels import DotProductKernel, Polynomial, ShiftInvariantKernel
from craftmaps.maps import CraftMap, FourierFeatures, RandomMaclaurin, TensorSketch
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.maps.planning.allocation import expected_variance
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments, tensor_sketch_variance
from craftmaps.validation import generator

_LARGEST = 1 << 20
_SAMPLE_ROWS = 256


def expected_error(
    feature_map: Any, X: Any, n_components: int | None = None, *, random_state: Any = 0
) -> float:
    """Root mean square error over pairs of rows, relative to the root mean square kernel value.

    What `gram_error(..., "frobenius")` measures on pairs of different rows, from the variance
    formulas of the map on a sample of pairs.

    Parameters
    ----------
    feature_map : RandomMaclaurin, TensorSketch, CraftMap, FourierFeatures or a kernel
        A kernel stands for `CraftMap` or `FourierFeatures` of that kernel. Where the map draws
        the degrees of its features, the error is that of the degrees it drew. For Fourier
        features the formula is that of independent frequencies; other samplings have less, but
        for "fastfood", which may have a little more. Of a CraftMap that is fitted, it is the error
        on the rows it was fitted on.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    n_components : int, default=None
        The size, if not that of the map.
    random_state : int, RandomState instance, Generator or None, default=0
        Draws the sample, and the map if it has no random_state.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Polynomial, TensorSketch
    >>> from craftmaps.diagnose.bounds import expected_error
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> errors = [expected_error(TensorSketch(Polynomial(3), size), X) for size in (256, 1024)]
    >>> round(errors[0] / errors[1], 2)
    2.0
    """
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    fitted = _fitted(feature_map, X, n_components, random_state)
    rng = generator(random_state)
    if X.shape[1] != fitted.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} columns, and the map was fitted on {fitted.n_features_in_}."
        )
    if isinstance(fitted, CraftMap) and math.isfinite(fitted.expected_error_):
        return float(fitted.expected_error_)
    if isinstance(fitted, FourierFeatures):
        return _fourier(fitted, X, rng)
    if isinstance(fitted, TensorSketch | RandomMaclaurin):
        moments = PairMoments.of_sample(X, rng)
        if isinstance(fitted, TensorSketch):
            assert isinstance(fitted.kernel_, Polynomial)
            variance = tensor_sketch_variance(fitted.kernel_, moments) / fitted.n_components
        else:
            variance = _maclaurin(fitted, moments, X.shape[1])
        return _relative(variance, fitted.kernel_.value(moments.inner))
    raise ValueError(
        f"there is no formula for the error of {feature_map!r}; measure it with gram_error."
    )


def components_for(error: float, feature_map: Any, X: Any, *, random_state: Any = 0) -> int:
    """The least size, within a few per cent, whose `expected_error` is at most `error`.

    Parameters
    ----------
    error : float
        Relative to the root mean square kernel value.
    feature_map : as for `expected_error`
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    random_state : int, RandomState instance, Generator or None, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Polynomial
    >>> from craftmaps.diagnose.bounds import components_for, expected_error
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> size = components_for(0.05, Polynomial(3), X)
    >>> bool(expected_error(Polynomial(3), X, size) <= 0.05)
    True
    """
    if not error > 0:
        raise ValueError(f"error must be above 0, got {error!r}.")
    low, high = 0, 64
    while expected_error(feature_map, X, high, random_state=random_state) > error:
        low, high = high, 2 * high
        if high > _LARGEST:
            raise ValueError(
                f"an error of {error:g} takes more than {_LARGEST} components on these rows; "
                f"allow more, lower the degree of the kernel, or use Nystroem."
            )
    while high - low > max(1, high // 32):
        middle = (low + high) // 2
        if expected_error(feature_map, X, middle, random_state=random_state) > error:
            low = middle
        else:
            high = middle
    return high


def _fitted(feature_map: Any, X: Any, n_components: int | None, random_state: Any) -> Any:
    """The map if it is fitted and of the size asked for, else a fitted clone."""
    if isinstance(feature_map, DotProductKernel):
        feature_map = CraftMap(feature_map)
    elif isinstance(feature_map, ShiftInvariantKernel):
        feature_map = FourierFeatures(feature_map)
    if not hasattr(feature_map, "n_components"):
        raise ValueError(f"expected a feature map or a kernel, got {feature_map!r}.")
    if hasattr(feature_map, "_n_features_out") and n_components in (
        None,
        feature_map.n_components,
    ):
        return feature_map
    fresh = clone(feature_map)
    if n_components is not None:
        fresh.set_params(n_components=n_components)
    if fresh.random_state is None:
        fresh.set_params(random_state=random_state)
    return fresh.fit(X)


def _maclaurin(fitted: RandomMaclaurin, moments: PairMoments, n_columns: int) -> float:
    """Mean over pairs of the expected squared error, given the features of each degree.

    The expectation of the estimate differs from the kernel where degrees were drawn, or cut off.
    """
    kernel, counts, weights = fitted.kernel_, fitted.counts_, fitted.weights_
    statistics = DegreeStatistics.measure(
        kernel,
        moments,
        len(counts) - 1,
        fitted.projection,
        fitted.complex_to_real,
        padded_length(n_columns),
    )
    variance = expected_variance(statistics, counts, weights)
    if fitted.complex_to_real:
        variance /= 2  # a feature is a pair of columns
    series = counts * weights
    a0, a1 = kernel.maclaurin(1)
    if fitted.h01 in (True, "append"):
        series[:2] = a0, a1
    bias = np.polynomial.polynomial.polyval(moments.inner, series) - kernel.value(moments.inner)
    return variance + float(np.mean(bias**2))


def _fourier(fitted: FourierFeatures, X: Any, rng: np.random.Generator) -> float:
    """Var cos<w, x - y> = (1 + k(2(x - y))) / 2 - k(x - y)^2, over the number of frequencies."""
    rows = X[np.sort(rng.choice(X.shape[0], min(X.shape[0], _SAMPLE_ROWS), replace=False))]
    pairs = np.triu_indices(rows.shape[0], k=1 if rows.shape[0] > 1 else 0)
    value, doubled = fitted.kernel_(rows)[pairs], fitted.kernel_(2 * rows)[pairs]
    # of an odd number of columns the last is sqrt(2) cos(<w, x> + b), with a variance of its own
    halves, alone = -(-fitted.n_components // 2), fitted.n_components % 2
    variance = float(np.mean((1 + doubled) / 2 - value**2)) / halves + alone / 2 / halves**2
    return _relative(variance, value)


def _relative(variance: float, values: np.ndarray) -> float:
    scale = float(np.mean(values**2))
    return math.sqrt(max(0.0, variance) / scale) if scale else 0.0
