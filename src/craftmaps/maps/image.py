"""A map of the oriented gradients of images."""

from typing import Any

import numpy as np

from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.parts.images import gradient_cells, gradients, image_shape
from craftmaps.maps.wrapped import WrappedMap
from craftmaps.storage.packing import storable
from craftmaps.validation import is_integer


@storable
class ImageMap(WrappedMap):
    """Features of gray images, computed from their oriented gradients.

    A kernel of pixels sees a stroke that moved by its own width as an entirely different stroke.
    This map passes the strength of each direction in each cell of a grid to the inner map instead.
    The values are square roots of shares of all gradients, so rows have length 1 and contrast makes
    no difference. Pixels outside the image count as 0. Nothing is learned from data.

    Parameters
    ----------
    feature_map : map of this package
        The inner map, which gets the gradients.
    cells : int, default=5
        Number of overlapping grid cells per side, at most the number of pixels of the shorter side.
    directions : int, default=8
        Number of directions, at least 5.
    shape : (height, width) or None, default=None
        Shape of the images. The pixels of an image are one row of X, line by line. One side may be
        -1 and is then inferred from the number of columns. None means square images.

    Attributes
    ----------
    feature_map_ : map
        The inner map, fitted on gradients.

    See Also
    --------
    MetricMap : As the inner map, it learns from targets which gradients matter.

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

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        return self._fitted_inside(self._prepared(X), y, X.dtype)

    def _prepared(self, X: Any) -> np.ndarray:
        return gradients(X, self.cells, self.directions, image_shape(X, self.shape))

    def grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return unit vectors of the directions, and the weights of lines and columns per cell."""
        shape = image_shape(np.empty((0, self.n_features_in_)), self.shape)
        return gradient_cells(shape, self.cells, self.directions)

    def _n_prepared(self) -> int:
        return int(self.directions * self.cells * self.cells)

    def _check_stored(self) -> None:
        check_facts(self, cells=is_integer(self.cells), directions=is_integer(self.directions))
        super()._check_stored()

    def _onnx(self, g: Any, x: str) -> str:
        """Compute Sobel differences and their parts along the directions by convolutions."""
        around, down, across = self.grid()
        height, width = down.shape[1], across.shape[1]
        sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
        pixels = g.reshape(x, -1, 1, height, width)
        slopes = g.add("Conv", pixels, np.stack([sobel, sobel.T])[:, None], pads=[1, 1, 1, 1])
        along = g.add("Conv", slopes, around[:, :, None, None])
        crossed = np.column_stack([-around[:, 1], around[:, 0]])
        aside = g.add("Abs", g.add("Conv", slopes, crossed[:, :, None, None]))
        cotangent = float(around[1, 0] / around[1, 1])
        part = g.add("Relu", g.add("Sub", along, g.add("Mul", aside, cotangent)))
        pooled = g.add("MatMul", down, g.add("MatMul", part, np.ascontiguousarray(across.T)))
        shares = g.reshape(pooled, -1, self._n_prepared())
        total = g.add("ReduceSum", shares, [1], keepdims=1)
        least = float(np.finfo(np.float32).tiny)  # images without gradients stay rows of 0
        prepared = g.add("Sqrt", g.add("Div", shares, g.add("Max", total, least)))
        return self._onnx_inside(g, prepared)
