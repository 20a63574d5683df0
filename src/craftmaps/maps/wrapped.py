"""What maps with another map inside have in common."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from craftmaps.maps.base import FeatureMap

_INNER = ("n_components", "random_state")


class WrappedMap(FeatureMap):
    """A map that changes rows, by what `_learn` found, and gives them to the map inside.

    It defines `_learn`, which ends with `_fit_inside`, and `_changed`.
    """

    feature_map: Any
    feature_map_: FeatureMap

    @property
    def n_components(self) -> int:  # type: ignore[override]
        """Of the map."""
        return int(self.feature_map.n_components)

    @property
    def random_state(self) -> Any:
        """Of the map."""
        return self.feature_map.random_state

    @property
    def kernel(self) -> Any:
        """Of the map."""
        return self.feature_map.kernel

    def _fit(self, X: Any, y: Any) -> None:
        if not isinstance(self.feature_map, FeatureMap):
            raise ValueError(
                f"feature_map must be a map of this package, such as CraftMap(Polynomial(3)), got "
                f"{self.feature_map!r}."
            )
        super()._fit(X, y)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; n_components and random_state are those of the map inside."""
        inner = {f"feature_map__{name}": params.pop(name) for name in _INNER if name in params}
        super().set_params(**params)
        super().set_params(**inner)
        return self

    @abstractmethod
    def _changed(self, X: Any) -> Any:
        """The rows that the map inside is given."""

    def _fit_inside(self, X: Any, y: Any) -> None:
        changed = self._changed(X).astype(X.dtype, copy=False)
        self.feature_map_ = clone(self.feature_map).fit(changed, y)
        self._n_features_out = int(self.feature_map_._n_features_out)

    def _smaller(self, n_components: int) -> Self:
        inside = self.feature_map._smaller(n_components)
        smaller: Self = clone(self).set_params(feature_map=inside)
        return smaller

    def _draw(self, X: Any, rng: np.random.Generator) -> None:
        """All is done with the targets at hand."""

    def _fill(self, X: Any, out: np.ndarray) -> None:
        self.feature_map_.transform_into(self._changed(X).astype(out.dtype, copy=False), out)

    def _n_changed(self) -> int:
        """Columns of the rows that the map inside is given."""
        return int(self.n_features_in_)

    def is_sound(self) -> bool:
        inner = self.feature_map_
        return (
            isinstance(inner, FeatureMap)
            and inner.n_features_in_ == self._n_changed()
            and inner._n_features_out == self._n_features_out
        )

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        return float(self.feature_map_._expected_error(self._changed(X), rng))

    @available_if(lambda self: hasattr(self.feature_map_, "penalty"))
    def penalty(self) -> np.ndarray:
        """That of the map, if it has one."""
        return np.asarray(self.feature_map_.penalty())
