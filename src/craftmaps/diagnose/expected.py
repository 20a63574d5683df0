"""The error to expect of a map on given rows, and the size for a given error.

Variance formulas of the maps answer both from a sample of pairs of rows. No feature is computed.
"""

import math
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array

from craftmaps.kernels import DotProductKernel, ShiftInvariantKernel
from craftmaps.maps import CraftMap, FourierFeatures
from craftmaps.validation import generator

_MAX_COMPONENTS = 1 << 20
_START_SIZE = 64  # first size of the search


def expected_error(
    feature_map: Any, X: Any, n_components: int | None = None, *, random_state: Any = 0
) -> float:
    """Compute the expected error of a map from its variance formula on a sample of pairs of rows.

    The result is the root mean square error over pairs of different rows, relative to the root mean
    square kernel value. `gram_error(..., "frobenius")` measures the same error.

    Parameters
    ----------
    feature_map : RandomMaclaurin, TensorSketch, CraftMap, FourierFeatures, or a kernel
        The map may be inside a `ScaledMap` or another wrapping map. A kernel stands for `CraftMap`
        or `FourierFeatures` of that kernel. If a map draws the degrees of its features, the
        error is for the degrees that were drawn. The formula for Fourier features assumes
        independent frequencies. Other samplings have a lower error, except for "fastfood", whose
        error may be a little higher. The error of a fitted CraftMap is the error on the rows that
        it was fitted on.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    n_components : int, default=None
        The number of components. None uses the size of the map.
    random_state : int, RandomState instance, Generator or None, default=0
        Seed for the sample, and for the map if it has no random_state.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Polynomial, TensorSketch
    >>> from craftmaps.diagnose import expected_error
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
    formula = getattr(fitted, "_expected_error", None)
    error = math.nan if formula is None else float(formula(X, rng))
    if math.isnan(error):
        raise ValueError(
            f"there is no formula for the error of {feature_map!r}; measure it with gram_error."
        )
    return error


def components_for(error: float, feature_map: Any, X: Any, *, random_state: Any = 0) -> int:
    """Compute the smallest size, within a few percent, with a given `expected_error`.

    Parameters
    ----------
    error : float
        The error to reach, relative to the root mean square kernel value.
    feature_map : as for `expected_error`
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    random_state : int, RandomState instance, Generator or None, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Polynomial
    >>> from craftmaps.diagnose import components_for, expected_error
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> size = components_for(0.05, Polynomial(3), X)
    >>> bool(expected_error(Polynomial(3), X, size) <= 0.05)
    True
    """
    if not error > 0:
        raise ValueError(f"error must be above 0, got {error!r}.")
    low, high = 0, _START_SIZE
    while expected_error(feature_map, X, high, random_state=random_state) > error:
        low, high = high, 2 * high
        if high > _MAX_COMPONENTS:
            raise ValueError(
                f"an error of {error:g} takes more than {_MAX_COMPONENTS} components on these "
                f"rows; allow more, lower the degree of the kernel, or use Nystroem."
            )
    while high - low > max(1, high // 32):
        middle = (low + high) // 2
        if expected_error(feature_map, X, middle, random_state=random_state) > error:
            low = middle
        else:
            high = middle
    return high


def _fitted(feature_map: Any, X: Any, n_components: int | None, random_state: Any) -> Any:
    """Return the map if it is fitted and has the right size, otherwise a fitted clone."""
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
