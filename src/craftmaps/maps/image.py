"""A map of images seen as oriented gradients, as one transformer."""

from typing import Any

import numpy as np

from craftmaps.maps.parts.images import gradient_cells, gradients, image_shape
from craftmaps.maps.wrapped import WrappedMap
from craftmaps.storage.packing import storable
from craftmaps.validation import is_integer


@storable
class ImageMap(WrappedMap):
    """Features of gray images: z(g(x)), g the oriented gradients of the image x.

    A kernel of pixels takes a stroke that moved by its own width for another one. Here the map
    inside is told how much of which direction there is in each cell of a grid: square roots of
    shares of all gradients, so that rows have length 1 and contrast makes no difference. Outside of
    an image everything is 0. Nothing is learnt.

    Parameters
    ----------
    feature_map : map of this package
        What the gradients are given to.
    cells : int, default=5
        Cells per side of the grid, which overlap; at most as many as the shorter side has pixels.
    directions : int, default=8
        At least 5.
    shape : (height, width) or None, default=None
        Of the images, whose pixels a row has line by line; None takes them to be square.

    Attributes
    ----------
    feature_map_ : the map, fitted on gradients

    See Also
    --------
    MetricMap : put inside, learns from targets which of the gradients matter.

    References
    ----------
    C.-L. Liu, K. Nakashima, H. Sako and H. Fujisawa, "Handwritten digit recognition: benchmarking
    of state-of-the-art techniques", Pattern Recognition 36, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from craftmaps import CraftMap, ImageMap, OnePassClassifier, Polynomial
    >>> X, y = load_digits(return_X_y=True)
    >>> inner = CraftMap(Polynomial(degree=5), n_components=256, random_state=0)
    >>> model = OnePassClassifier(ImageMap(inner)).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.96
    True
    """

    def __init__(
        self,
        feature_map: Any,
        *,
        cells: int = 5,
        directions: int = 8,
        shape: tuple[int, int] | None = None,
    ) -> None:
        self.feature_map = feature_map
        self.cells = cells
        self.directions = directions
        self.shape = shape

    def _learn(self, X: Any, y: Any, rng: np.random.Generator) -> None:
        self._fit_inside(X, y)

    def _changed(self, X: Any) -> np.ndarray:
        return gradients(X, self.cells, self.directions, self._image_shape(X))

    def _image_shape(self, X: Any) -> tuple[int, int]:
        return image_shape(X, self.shape)

    def grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Directions as unit vectors, and each cell's weights of lines and of columns."""
        shape = self._image_shape(np.empty((0, self.n_features_in_)))
        return gradient_cells(shape, self.cells, self.directions)

    def _n_changed(self) -> int:
        return int(self.directions * self.cells * self.cells)

    def is_sound(self) -> bool:
        return all(map(is_integer, (self.cells, self.directions))) and super().is_sound()
