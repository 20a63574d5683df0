"""Oriented gradients of images against a slow version."""

import numpy as np
import pytest
from scipy.ndimage import sobel
from sklearn.datasets import load_digits

from craftmaps.maps.parts.images import gradients

IMAGES, _ = load_digits(return_X_y=True)


def slow_gradients(image, cells, directions):
    """One image in float64: each gradient as a sum of vectors along the two nearest directions."""
    across, down = sobel(image, axis=1, mode="constant"), sobel(image, axis=0, mode="constant")

    def pools(side):
        centres = (np.arange(cells) + 0.5) * side / cells - 0.5
        weights = np.exp(-0.5 * ((np.arange(side) - centres[:, None]) / (0.6 * side / cells)) ** 2)
        return weights / weights.sum(axis=1, keepdims=True)

    parts = np.zeros((directions, *image.shape))
    step = 2 * np.pi / directions
    for i, j in np.ndindex(*image.shape):
        angle = np.arctan2(down[i, j], across[i, j]) % (2 * np.pi)
        first = int(angle // step) % directions
        both = step * np.array([first, first + 1])
        sides = np.array([np.cos(both), np.sin(both)])
        lengths = np.linalg.solve(sides, [across[i, j], down[i, j]])
        parts[first, i, j], parts[(first + 1) % directions, i, j] = lengths
    pooled = np.einsum("ai,kij,bj->kab", pools(len(image)), parts, pools(len(image.T)))
    pooled = pooled.clip(min=0)
    return np.sqrt(pooled / pooled.sum()).ravel()


@pytest.mark.parametrize(("cells", "directions"), [(4, 8), (3, 5), (8, 12), (1, 6)])
def test_gradients_are_those_of_the_slow_version(cells, directions):
    fast = gradients(IMAGES[:40], cells, directions)
    assert fast.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(fast, axis=1), 1, rtol=1e-6)
    for i in range(40):
        expected = slow_gradients(IMAGES[i].reshape(8, 8), cells, directions)
        np.testing.assert_allclose(np.square(fast[i]), np.square(expected), atol=1e-6)


def test_gradients_of_rectangles():
    for shape in ((4, 16), (16, 4), (1, 64), (64, 1)):
        cells = min(3, *shape)
        fast = gradients(IMAGES[:10], cells, shape=shape)
        for i in range(10):
            expected = slow_gradients(IMAGES[i].reshape(shape), cells, 8)
            np.testing.assert_allclose(np.square(fast[i]), np.square(expected), atol=1e-6)
    turned = IMAGES[:10].reshape(-1, 4, 16).transpose(0, 2, 1).reshape(10, 64)
    seen = gradients(IMAGES[:10], 4, shape=(4, 16)).reshape(10, 8, 4, 4)
    other = gradients(turned, 4, shape=(16, 4)).reshape(10, 8, 4, 4)
    mirrored = [2, 1, 0, 7, 6, 5, 4, 3]  # directions, when across and down change places
    np.testing.assert_allclose(other, seen[:, mirrored].transpose(0, 1, 3, 2), atol=1e-3)


def test_gradients_do_not_see_the_contrast():
    np.testing.assert_allclose(gradients(7 * IMAGES[:20]), gradients(IMAGES[:20]), atol=1e-6)
    np.testing.assert_array_equal(gradients(np.zeros((2, 64))), 0)


def test_bad_images():
    with pytest.raises(ValueError, match=r"cells must be an integer from 1 to 8 .* got 9"):
        gradients(IMAGES, cells=9)
    with pytest.raises(ValueError, match="directions must be an integer of at least 5, got 4"):
        gradients(IMAGES, directions=4)
    with pytest.raises(
        ValueError, match="images of 7 x 9 pixels must be rows of 63 of them, got shape"
    ):
        gradients(IMAGES, shape=(7, 9))
