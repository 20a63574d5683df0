"""The base class of maps that prepare rows and pass them to another map."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from craftmaps.maps.base import FeatureMap, onnx_features
from craftmaps.maps.parts.base import check_facts

_PARAMETERS_OF_THE_MAP_INSIDE = ("n_components", "random_state")


class WrappedMap(FeatureMap):
    """Base class of maps that prepare rows and pass them to an inner map.

    A subclass defines `_prepared` and `_draw`; `_draw` includes the result of `_fitted_inside`.
    """

    feature_map: Any
    feature_map_: FeatureMap

    @property
    def n_components(self) -> int:
        """Number of output columns of the inner map."""
        n_components: int = self.feature_map.n_components
        return n_components

    @n_components.setter
    def n_components(self, value: int) -> None:
        self.feature_map.n_components = value

    @property
    def random_state(self) -> Any:
        """Random state of the inner map."""
        return self.feature_map.random_state

    @random_state.setter
    def random_state(self, value: Any) -> None:
        self.feature_map.random_state = value

    @property
    def kernel(self) -> Any:
        """Kernel of the inner map."""
        return self.feature_map.kernel

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how to prepare rows, and fit the inner map to the prepared rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets, for maps that learn from them; other maps ignore them.

        Returns
        -------
        self
        """
        if not isinstance(self.feature_map, FeatureMap):
            raise TypeError(
                f"feature_map must be a map of this package, such as CraftMap(Polynomial(3)), got "
                f"{self.feature_map!r}."
            )
        return super().fit(X, y)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; n_components and random_state are passed to the inner map."""
        inner = {
            f"feature_map__{name}": params.pop(name)
            for name in _PARAMETERS_OF_THE_MAP_INSIDE
            if name in params
        }
        super().set_params(**params)
        super().set_params(**inner)
        return self

    @abstractmethod
    def _prepared(self, X: Any) -> Any:
        """Return the rows in the form that the inner map takes."""

    def _fitted_inside(self, prepared: Any, y: Any, dtype: np.dtype) -> dict[str, Any]:
        """Fit the inner map, and return the fitted attributes that belong to it."""
        fitted = clone(self.feature_map).fit(prepared.astype(dtype, copy=False), y)
        return {"feature_map_": fitted, "_n_features_out": int(fitted._n_features_out)}

    def _smaller(self, n_components: int) -> Self:
        inside = self.feature_map._smaller(n_components)
        smaller: Self = clone(self).set_params(feature_map=inside)
        return smaller

    def _fill(self, X: Any, out: np.ndarray) -> None:
        self.feature_map_.transform_into(self._prepared(X).astype(out.dtype, copy=False), out)

    def _n_prepared(self) -> int:
        """Return the number of columns of the prepared rows."""
        return int(self.n_features_in_)

    def _check_stored(self) -> None:
        super()._check_stored()
        inner = self.feature_map_
        check_facts(
            self,
            feature_map_=isinstance(inner, FeatureMap)
            and inner.n_features_in_ == self._n_prepared()
            and inner._n_features_out == self._n_features_out,
        )

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        return float(self.feature_map_._expected_error(self._prepared(X), rng))

    def _onnx_inside(self, g: Any, prepared: str) -> str:
        """Add the features of prepared rows, which may be float64, to an ONNX graph."""
        return onnx_features(g, g.single(prepared), self.feature_map_)

    @available_if(lambda self: hasattr(self.feature_map_, "penalty"))
    def penalty(self) -> np.ndarray:
        """Return the penalty matrix of the inner map, if it has one."""
        penalty: Any = self.feature_map_.penalty
        return np.asarray(penalty())


def onnx_unit_rows(g: Any, x: str) -> str:
    """Add rows divided by their lengths to an ONNX graph, in float64; zero rows stay zero."""
    square = g.add("ReduceSum", g.add("Mul", x, x), np.array([1]), keepdims=1)
    length = g.add("Max", g.add("Sqrt", square), np.array(1e-300))
    return str(g.add("Div", x, length))
