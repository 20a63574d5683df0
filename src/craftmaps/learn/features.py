"""Features of rows, computed by any kind of transformer."""

from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.learn.block_sums import check_finite
from craftmaps.maps.base import FeatureMap


def fill_features(feature_map: Any, X: Any, out: np.ndarray) -> None:
    """Write the features of validated rows X into `out`."""
    if isinstance(feature_map, FeatureMap) and _fits(feature_map, X, out):
        feature_map._fill(X, out)  # transform_into would check every row for NaN again
        return
    if hasattr(feature_map, "transform_into"):
        feature_map.transform_into(X, out)
        return
    Z = X if feature_map is None else feature_map.transform(X)
    out[:] = Z.toarray() if sparse.issparse(Z) else Z


def check_features(Z: np.ndarray) -> None:
    """Raise ValueError if features are not finite, before they are mixed with others."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(Z.sum())
    if suspicious:
        check_finite(Z, Z)


def _fits(feature_map: FeatureMap, X: Any, out: np.ndarray) -> bool:
    return (feature_map.n_features_in_, feature_map._n_features_out) == (X.shape[1], out.shape[1])
