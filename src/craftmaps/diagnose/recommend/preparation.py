"""How rows are prepared for a map: the parameters of `ScaledMap`, or those of `ImageMap`."""

from dataclasses import dataclass
from typing import Any

from scipy import sparse

from craftmaps.kernels import Polynomial
from craftmaps.maps import ImageMap, ScaledMap, TensorSketch

_CELLS = 5  # per side of the grid of gradients, the default of ImageMap


@dataclass(frozen=True)
class Scaling:
    """A scaling of rows, by the parameters of `ScaledMap`."""

    columns: str = "none"
    unit_norm: bool = True

    def around(self, feature_map: Any) -> ScaledMap:
        """The map of rows that are scaled in this way."""
        return ScaledMap(feature_map, columns=self.columns, unit_norm=self.unit_norm)

    def __str__(self) -> str:
        return f"columns={self.columns!r}, unit_norm={self.unit_norm}"


@dataclass(frozen=True)
class Gradients:
    """Gray images of a shape (height, width), seen as oriented gradients by `ImageMap`."""

    shape: tuple[int, int]

    def around(self, feature_map: Any) -> ImageMap:
        """The map of the gradients of images."""
        return ImageMap(feature_map, cells=image_cells(self.shape), shape=self.shape)

    def __str__(self) -> str:
        return "oriented gradients"


Preparation = Scaling | Gradients


def preparations(X: Any, shape: tuple[int, int] | None = None) -> list[Preparation]:
    """All preparations to try for rows like X; sparse rows stay sparse when they are scaled.

    Rows that are images of a given shape may be seen as gradients too.
    """
    scalings: list[Preparation] = [Scaling("none", True)]
    if sparse.issparse(X):
        scalings += [
            Scaling("maxabs", False),
            Scaling("maxabs", True),
            Scaling("std", False),
        ]
    else:
        scalings += [
            Scaling("minmax", False),
            Scaling("minmax", True),
            Scaling("center", True),
            Scaling("standard", False),
            Scaling("standard", True),
        ]
    return scalings if shape is None else [*scalings, Gradients(shape)]


def image_cells(shape: tuple[int, int]) -> int:
    """Cells per side for `ImageMap`: its default, unless images have fewer pixels per side."""
    return min(_CELLS, *shape)


def fit_preparation(preparation: Preparation, X: Any) -> Any:
    """The function that prepares rows, with statistics of the columns of X.

    It is what the wrapping map does to rows before it gives them to the map inside, so the search
    prepares rows exactly as the recommended learner will. Which map is inside does not matter.
    """
    smallest = TensorSketch(Polynomial(degree=1), n_components=1, random_state=0)
    return preparation.around(smallest).fit(X)._prepared
