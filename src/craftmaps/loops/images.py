"""Oriented gradients of images.

A row is an image of `height` x `width` pixels, line by line. Pixels outside the image are zero.
"""

import math

import numpy as np

from craftmaps.loops.compiled import compiled

_LEAST = np.finfo(np.float32).tiny  # smallest gradient, whose inverse is finite
_FRAME = 3  # zeros: one line before the image, two behind it


@compiled
def gradient_rows(
    X: np.ndarray, directions: np.ndarray, down: np.ndarray, across: np.ndarray, out: np.ndarray
) -> None:
    """Compute square roots of histograms of oriented gradients; each result has length 1.

    Each Sobel gradient is split into a sum of two vectors along the neighboring directions. Their
    lengths are pooled by the weights of lines in `down` and of columns in `across`.
    """
    (n_cells, height), width = down.shape, across.shape[1]
    cotangent = directions[1, 0] / directions[1, 1]  # of the angle between two directions
    padded = np.zeros((height + _FRAME) * (width + _FRAME), np.float32)
    part = np.empty(width, np.float32)
    pooled = np.empty((len(directions), n_cells, width), np.float32)
    gradient = np.empty((2, width), np.float32)
    for i in range(len(X)):
        _frame(X[i], height, width, padded)
        pooled[:] = 0
        for line in range(height):
            _sobel(padded, width, line, gradient)
            for k in range(len(directions)):
                to_right, to_below = directions[k]
                for column in range(width):
                    along = to_right * gradient[0, column] + to_below * gradient[1, column]
                    aside = to_right * gradient[1, column] - to_below * gradient[0, column]
                    part[column] = max(along - cotangent * abs(aside), np.float32(0))
                for cell in range(n_cells):
                    for column in range(width):
                        pooled[k, cell, column] += down[cell, line] * part[column]
        _pool_across(pooled, across, out[i])


@compiled
def _sobel(padded: np.ndarray, width: int, line: int, gradient: np.ndarray) -> None:
    """Compute the Sobel differences across and down for a line of a framed image."""
    framed, two = width + _FRAME, np.float32(2)
    above = padded[line * framed : (line + 1) * framed]
    here = padded[(line + 1) * framed : (line + 2) * framed]
    below = padded[(line + 2) * framed : (line + 3) * framed]
    for c in range(width):
        gradient[0, c] = (above[c + 2] + two * here[c + 2] + below[c + 2]) - (
            above[c] + two * here[c] + below[c]
        )
        gradient[1, c] = (below[c] + two * below[c + 1] + below[c + 2]) - (
            above[c] + two * above[c + 1] + above[c + 2]
        )


@compiled
def _pool_across(pooled: np.ndarray, across: np.ndarray, out: np.ndarray) -> None:
    """Pool the columns, and take the square root of each value's share of the sum."""
    n_cells, width = across.shape
    total, at = np.float32(0), 0
    for k in range(len(pooled)):
        for row in range(n_cells):
            for cell in range(n_cells):
                value = np.float32(0)
                for column in range(width):
                    value += across[cell, column] * pooled[k, row, column]
                out[at] = value
                total += value
                at += 1
    scale = np.float32(1) / total if total >= _LEAST else np.float32(0)
    for j in range(at):
        out[j] = math.sqrt(out[j] * scale)


@compiled
def _frame(image: np.ndarray, height: int, width: int, padded: np.ndarray) -> None:
    """Copy an image into the middle of its frame of zeros."""
    for line in range(height):
        start = (line + 1) * (width + _FRAME) + 1
        for j in range(width):
            padded[start + j] = image[line * width + j]
