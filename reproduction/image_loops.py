"""Loops over images: warped at random, and made upright.

A row is an image of `side` x `side` pixels, line by line. Outside of it everything is zero.
"""

import math

import numpy as np

from craftmaps.loops.compiled import compiled

_FRAME = 3  # zeros: one line before the image, two behind it


@compiled
def warp_rows(
    X: np.ndarray,
    sources: np.ndarray,
    places: np.ndarray,
    seed: np.uint64,
    amounts: np.ndarray,
    splines: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[i] = the image X[sources[i]], warped as the place `places[i]` in the stream says.

    amounts are the largest shift (pixels), angle (radians), change of scale and of shear, and the
    largest control value of the elastic field, whose columns of `splines` are the B-splines at the
    pixels of a line. All is drawn from seed and place alone. float32.
    """
    side, n_controls = splines.shape[1], splines.shape[0]
    state = np.empty(1, np.uint64)
    padded = np.zeros((side + _FRAME) * (side + _FRAME), np.float32)
    controls = np.empty((2, n_controls, n_controls), np.float32)
    moved = np.empty((2, side), np.float32)
    for i in range(len(sources)):
        _begin(state, seed, np.uint64(places[i]))
        matrix = _random_matrix(state, amounts)
        down, right = amounts[0] * _uniform(state), amounts[0] * _uniform(state)
        for axis in range(2):
            for g in range(n_controls):
                for h in range(n_controls):
                    controls[axis, g, h] = amounts[4] * _uniform(state)
        _frame(X[sources[i]], side, padded)
        for line in range(side):
            _place_line(moved, line, matrix, (down, right))
            _add_field(moved, line, controls, splines)
            _sample_line(padded, side, moved, out[i, line * side : (line + 1) * side])


@compiled
def deskew_rows(X: np.ndarray, side: int, out: np.ndarray) -> None:
    """Move the centre of mass of each image to the middle, and shear it until it stands upright.

    A line at height y is moved by y mu_xy / mu_yy, where mu are the central second moments.
    """
    padded = np.zeros((side + _FRAME) * (side + _FRAME), np.float32)
    moved = np.empty((2, side), np.float32)
    middle = 0.5 * (side - 1)
    for i in range(len(X)):
        mass, down, right, slant = _moments(X[i], side)
        if mass <= 0.0:  # an empty image
            out[i] = X[i]
            continue
        _frame(X[i], side, padded)
        for line in range(side):
            _place_line(moved, line, (1.0, 0.0, slant, 1.0), (down - middle, right - middle))
            _sample_line(padded, side, moved, out[i, line * side : (line + 1) * side])


@compiled
def _moments(image: np.ndarray, side: int) -> tuple[float, float, float, float]:
    """Mass, centre of mass (down, right), and mu_xy / mu_yy."""
    mass = down = right = both = square = 0.0
    for line in range(side):
        total = across = 0.0
        for column in range(side):
            value = np.float64(image[line * side + column])
            total += value
            across += value * column
        mass += total
        right += across
        down += total * line
        both += across * line
        square += total * line * line
    if mass <= 0.0:
        return 0.0, 0.0, 0.0, 0.0
    down, right = down / mass, right / mass
    spread = square / mass - down * down
    slant = (both / mass - down * right) / spread if spread > 1e-6 else 0.0
    return mass, down, right, slant


@compiled
def _begin(state: np.ndarray, seed: np.uint64, place: np.uint64) -> None:
    """A state for this place of the stream that is unlike those of its neighbours."""
    state[0] = seed ^ _mixed(place + np.uint64(0x9E3779B97F4A7C15))


@compiled
def _mixed(z: np.uint64) -> np.uint64:
    """The output function of splitmix64 (Steele, Lea and Flood, 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _uniform(state: np.ndarray) -> float:
    """The next number in [-1, 1)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.int64(_mixed(state[0]) >> np.uint64(11)) * 2.0**-52 - 1.0


@compiled
def _random_matrix(state: np.ndarray, amounts: np.ndarray) -> tuple[float, float, float, float]:
    """A rotation after a change of scale of either axis and a shear along the lines."""
    angle = amounts[1] * _uniform(state)
    tall, wide = 1.0 + amounts[2] * _uniform(state), 1.0 + amounts[2] * _uniform(state)
    shear = amounts[3] * _uniform(state)
    c, s = math.cos(angle), math.sin(angle)
    return c * tall + s * shear, s * wide, c * shear - s * tall, c * wide


@compiled
def _place_line(
    moved: np.ndarray,
    line: int,
    matrix: tuple[float, float, float, float],
    shift: tuple[float, float],
) -> None:
    """Where the pixels of a line come from, about the middle of the image."""
    side = moved.shape[1]
    middle = 0.5 * (side - 1)
    for axis in range(2):
        by_line, by_column = matrix[2 * axis], matrix[2 * axis + 1]
        first = middle + shift[axis] + by_line * (line - middle) - by_column * middle
        start, step = np.float32(first), np.float32(by_column)
        for column in range(side):
            moved[axis, column] = start + step * np.float32(column)


@compiled
def _add_field(moved: np.ndarray, line: int, controls: np.ndarray, splines: np.ndarray) -> None:
    """Add a smooth random field: the tensor product of B-splines with these control values."""
    n_controls, side = splines.shape
    for axis in range(2):
        for h in range(n_controls):
            value = np.float32(0)
            for g in range(n_controls):
                value += splines[g, line] * controls[axis, g, h]
            for column in range(side):
                moved[axis, column] += value * splines[h, column]


@compiled
def _frame(image: np.ndarray, side: int, padded: np.ndarray) -> None:
    """Copy an image into the middle of its frame of zeros."""
    for line in range(side):
        start = (line + 1) * (side + _FRAME) + 1
        padded[start : start + side] = image[line * side : (line + 1) * side]


@compiled
def _sample_line(padded: np.ndarray, side: int, moved: np.ndarray, out: np.ndarray) -> None:
    """The framed image at places between pixels, bilinearly."""
    zero, one, last = np.float32(0), np.float32(1), np.float32(side + 1)
    width = np.uint32(side + _FRAME)
    for column in range(side):
        y = min(max(moved[0, column] + one, zero), last)
        x = min(max(moved[1, column] + one, zero), last)
        row, place = np.uint32(y), np.uint32(x)
        v, u = y - np.float32(row), x - np.float32(place)
        at = np.uint64(row * width + place)
        under = at + np.uint64(width)
        above = padded[at] + u * (padded[at + np.uint64(1)] - padded[at])
        below = padded[under] + u * (padded[under + np.uint64(1)] - padded[under])
        out[column] = above + v * (below - above)
