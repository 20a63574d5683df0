"""Images as rows: their shape, and their oriented gradients."""

from math import isqrt
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.loops.images import gradient_rows
from craftmaps.threads import for_each_block

_CELL_WIDTH = 0.6  # standard deviation of a cell, relative to the distance between centers


def gradients(
    X: Any, cells: int = 5, directions: int = 8, shape: tuple[int, int] | None = None
) -> np.ndarray:
    """Compute square roots of histograms of the gradient directions in each part of an image.

    The gradient of each pixel is split into parts along the two nearest directions. These are added
    up in a grid of overlapping Gaussian cells. Rows have length 1.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_images, height * width)
    cells : int, default=5
        Number of cells per side of the grid.
    directions : int, default=8
        Number of directions, at least 5.
    shape : (height, width) or None, default=None
        Shape of the images. None means square images.

    Returns
    -------
    ndarray of shape (n_images, directions * cells * cells), float32

    References
    ----------
    C.-L. Liu, K. Nakashima, H. Sako and H. Fujisawa, "Handwritten digit recognition: benchmarking
    of state-of-the-art techniques", Pattern Recognition 36, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from craftmaps.maps.parts.images import gradients
    >>> X, _ = load_digits(return_X_y=True)
    >>> gradients(X, cells=4).shape
    (1797, 128)
    """
    X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float32)
    around, down, across = gradient_cells(image_shape(X, shape), cells, directions)
    out = np.empty((len(X), directions * cells * cells), np.float32)

    def task(start: int, stop: int) -> None:
        gradient_rows(X[start:stop], around, down, across, out[start:stop])

    for_each_block(task, len(X), X.strides[0])
    return out


def gradient_cells(
    shape: tuple[int, int], cells: int, directions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return unit vectors of the directions, and the weights of lines and columns per cell."""
    (height, width), most = shape, min(shape)
    if not isinstance(cells, Integral) or not 1 <= cells <= most:
        raise ValueError(
            f"cells must be an integer from 1 to {most} for images of {height} x {width} pixels, "
            f"got {cells!r}."
        )
    if not isinstance(directions, Integral) or directions < 5:
        raise ValueError(f"directions must be an integer of at least 5, got {directions!r}.")
    angles = 2 * np.pi * np.arange(directions) / directions
    around = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    return around, _pools(height, cells), _pools(width, cells)


def _pools(length: int, cells: int) -> np.ndarray:
    """Return the Gaussian weights of pixels along one side, which add up to 1 for each cell."""
    centres = (np.arange(cells) + 0.5) * length / cells - 0.5
    width = _CELL_WIDTH * length / cells
    pools = np.exp(-0.5 * np.square((np.arange(length) - centres[:, None]) / width))
    return np.asarray(pools / pools.sum(axis=1, keepdims=True), dtype=np.float32)


def image_shape(X: Any, shape: Any = None) -> tuple[int, int]:
    """Return the height and width of the images in the rows of X, which are square by default."""
    if shape is None:
        side = isqrt(X.shape[1]) if X.ndim == 2 else 0
        if side < 1 or side * side != X.shape[1]:
            raise ValueError(
                f"images must be rows of a square number of pixels, such as 784 = 28 x 28, got "
                f"shape {X.shape}."
            )
        return side, side
    sides: list[Any] = list(shape) if isinstance(shape, list | tuple) else []
    known = [side for side in sides if side != -1]
    whole = all(isinstance(side, Integral) and int(side) > 0 for side in known)
    if len(sides) != 2 or not known or not whole:
        raise ValueError(
            f"the shape of images must be their height and width, such as (28, 28), or (28, -1) to "
            f"infer one of them, got {shape!r}."
        )
    height, width = (X.shape[-1] // int(known[0]) if side == -1 else int(side) for side in sides)
    if X.ndim != 2 or height * width != X.shape[1]:
        raise ValueError(
            f"images of {height} x {width} pixels must be rows of {height * width} of them, got "
            f"shape {X.shape}."
        )
    return height, width
