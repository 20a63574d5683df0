"""Images as rows: an endless stream of jittered copies, and deskewed images."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from craftmaps.maps.parts.images import image_shape
from craftmaps.threads import for_each_block
from reproduction.image_loops import deskew_rows, warp_rows

_CELLS = 4  # of the grid that an elastic field is drawn on, per side
# A cubic B-spline surface of independent control values of variance 1 has variance (151 / 315)^2
# on average over the plane, and a value uniform in [-a, a] has variance a^2 / 3.
_CONTROL = 3**0.5 * 315 / 151


def jittered(
    X: Any,
    y: Any,
    n_rows: int | None = None,
    *,
    block_rows: int = 4096,
    seed: int = 0,
    shift: float = 1.0,
    angle: float = 10.0,
    scale: float = 0.1,
    shear: float = 0.1,
    elastic: float = 0.7,
    originals: bool = True,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A stream of blocks (X, y) of square images, the given ones first and then warped copies.

    Each copy is moved, rotated, stretched, sheared and bent at random, all at once by one bilinear
    interpolation. The copies go through the images again and again, in a new random order each
    time. A row depends on `seed` and on its place in the stream, not on blocks or threads.

    Parameters
    ----------
    X : array of shape (n_images, side * side)
        Images on a background of zeros.
    y : array of shape (n_images,)
    n_rows : int or None, default=None
        Length of the stream; None never ends.
    block_rows : int, default=4096
        Rows of a block; the last one may have fewer.
    seed : int, default=0
    shift : float, default=1.0
        Largest move down and right, in pixels.
    angle : float, default=10.0
        Largest rotation, in degrees.
    scale, shear : float, default=0.1
        Largest relative change of height and width (each on its own), and largest shear.
    elastic : float, default=0.7
        Standard deviation of the elastic displacement, in pixels. Its field is a cubic B-spline on
        a grid of a quarter of the side.
    originals : bool, default=True
        Whether the stream begins with the images as they are.

    Yields
    ------
    X : ndarray of shape (block_rows, side * side), float32
    y : ndarray of shape (block_rows,)

    References
    ----------
    P. Simard, D. Steinkraus and J. Platt, "Best Practices for Convolutional Neural Networks Applied
    to Visual Document Analysis", ICDAR 2003.
    G. Loosli, S. Canu and L. Bottou, "Training Invariant Support Vector Machines using Selective
    Sampling", 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from reproduction.images import jittered
    >>> X, y = load_digits(return_X_y=True)
    >>> [block.shape for block, _ in jittered(X, y, 10_000)]
    [(4096, 64), (4096, 64), (1808, 64)]
    """
    X, side = _images(X)
    y = np.asarray(y)
    if len(X) != len(y) or not len(X):
        raise ValueError(f"jittered needs as many labels as images, got {len(y)} for {len(X)}.")
    amounts = np.array([shift, np.deg2rad(angle), scale, shear, elastic * _CONTROL])
    if not (np.isfinite(amounts).all() and (amounts >= 0).all() and scale < 1):
        raise ValueError(
            "shift, angle, scale, shear and elastic must be numbers of at least 0, and scale less "
            f"than 1, got {(shift, angle, scale, shear, elastic)}."
        )
    return _blocks(X, y, n_rows, block_rows, seed, amounts, _splines(side), originals)


def deskew(X: Any) -> np.ndarray:
    """Images moved so that their centre of mass is in the middle, and sheared until upright.

    Parameters
    ----------
    X : array of shape (n_images, side * side)
        Images on a background of zeros; those without any mass stay as they are.

    Returns
    -------
    ndarray of the same shape, float32

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.images import deskew
    >>> slanted = np.zeros((9, 9))
    >>> slanted[[2, 3, 4, 5, 6], [6, 5, 4, 3, 2]] = 1
    >>> deskew(slanted.reshape(1, 81)).reshape(9, 9).sum(axis=0)
    array([0., 0., 0., 0., 5., 0., 0., 0., 0.], dtype=float32)
    """
    X, side = _images(X)
    out = np.empty(X.shape, np.float32)

    def task(start: int, stop: int) -> None:
        deskew_rows(X[start:stop], side, out[start:stop])

    for_each_block(task, len(X), X.strides[0])
    return out


def _blocks(
    X: np.ndarray,
    y: np.ndarray,
    n_rows: int | None,
    block_rows: int,
    seed: int,
    amounts: np.ndarray,
    splines: np.ndarray,
    originals: bool,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    starts = count(0, block_rows) if n_rows is None else range(0, n_rows, block_rows)
    for start in starts:
        stop = start + block_rows if n_rows is None else min(start + block_rows, n_rows)
        places = np.arange(start, stop)
        sources = _sources(places, len(X), seed, originals)
        plain = np.count_nonzero(places < len(X)) if originals else 0
        out = np.empty((len(places), X.shape[1]), np.float32)
        out[:plain] = X[sources[:plain]]
        if plain < len(out):
            _warp(X, sources[plain:], places[plain:], key, amounts, splines, out[plain:])
        yield out, y[sources]


def _warp(
    X: np.ndarray,
    sources: np.ndarray,
    places: np.ndarray,
    key: np.uint64,
    amounts: np.ndarray,
    splines: np.ndarray,
    out: np.ndarray,
) -> None:
    def task(start: int, stop: int) -> None:
        some = slice(start, stop)
        warp_rows(X, sources[some], places[some], key, amounts, splines, out[some])

    for_each_block(task, len(out), X.strides[0])


def _sources(places: np.ndarray, n_images: int, seed: int, originals: bool) -> np.ndarray:
    """Which image each place of the stream shows: every round in an order of its own."""
    rounds, within = np.divmod(places, n_images)
    sources = np.empty_like(places)
    for number in np.unique(rounds):
        here = rounds == number
        if originals and number == 0:
            sources[here] = within[here]
        else:
            order = np.random.default_rng([seed, number]).permutation(n_images)
            sources[here] = order[within[here]]
    return sources


def _splines(side: int) -> np.ndarray:
    """Cubic B-splines on a grid of `_CELLS` cells per side, at the pixels: (_CELLS + 3, side)."""
    place = np.arange(side) * _CELLS / side
    t = np.abs(place - np.arange(-1, _CELLS + 2)[:, None])
    near, far = (4 - 6 * t**2 + 3 * t**3) / 6, np.clip(2 - t, 0, None) ** 3 / 6
    return np.asarray(np.where(t < 1, near, far), dtype=np.float32)


def _images(X: Any) -> tuple[np.ndarray, int]:
    """Rows as float32, and the side of the squares that they are."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    return X, image_shape(X)[0]
