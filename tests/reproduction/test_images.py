"""Jittered images against a slow version, the law of their displacements, and deskewing."""

from itertools import islice

import numpy as np
import pytest
from scipy import stats
from scipy.ndimage import map_coordinates
from sklearn.datasets import load_digits

from craftmaps.threads import at_most_threads
from reproduction.images import deskew, jittered

IMAGES, LABELS = load_digits(return_X_y=True)
STILL = {"shift": 0, "angle": 0, "scale": 0, "shear": 0, "elastic": 0}
ALL = {"shift": 1.5, "angle": 20, "scale": 0.2, "shear": 0.3, "elastic": 0.6}
MASK = 2**64 - 1


def rows_of(*args, **options):
    X, y = zip(*jittered(*args, **options), strict=True)
    return np.concatenate(X), np.concatenate(y)


def mixed(z):
    """The output function of splitmix64, on whole numbers of Python."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def uniforms(seed, place):
    state = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    state ^= mixed(place + 0x9E3779B97F4A7C15 & MASK)
    while True:
        state = state + 0x9E3779B97F4A7C15 & MASK
        yield (mixed(state) >> 11) * 2.0**-52 - 1


def spline(t):
    t = abs(t)
    return (4 - 6 * t**2 + 3 * t**3) / 6 if t < 1 else max(2 - t, 0) ** 3 / 6


def slow_warp(image, seed, place, shift, angle, scale, shear, elastic):
    """One image in float64, from the words of the docstring."""
    side, draw = len(image), uniforms(seed, place)
    turn = np.deg2rad(angle) * next(draw)
    tall, wide = (1 + scale * next(draw) for _ in range(2))
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    matrix = rotation @ np.array([[tall, 0], [shear * next(draw), wide]])
    move = np.array([shift * next(draw) for _ in range(2)])
    controls = np.array([next(draw) for _ in range(2 * 7 * 7)]).reshape(2, 7, 7)
    controls *= elastic * 3**0.5 * 315 / 151
    splines = np.array([[spline(i * 4 / side - g) for i in range(side)] for g in range(-1, 6)])
    field = np.einsum("agh,gi,hj->aij", controls, splines, splines)
    middle = (side - 1) / 2
    grid = np.indices((side, side)) - middle
    places = middle + np.einsum("ab,bij->aij", matrix, grid) + move[:, None, None] + field
    return map_coordinates(image, places, order=1, mode="grid-constant")


@pytest.mark.parametrize("some", [{}, *({name: ALL[name]} for name in ALL), ALL])
def test_copies_are_those_of_the_slow_version(some):
    amounts = STILL | some
    X, _ = rows_of(IMAGES[:1], LABELS[:1], 12, seed=5, **amounts)
    for place in range(1, 12):
        expected = slow_warp(IMAGES[0].reshape(8, 8), 5, place, **amounts)
        np.testing.assert_allclose(X[place].reshape(8, 8), expected, atol=2e-4)


def test_no_jitter_changes_nothing():
    X, y = rows_of(IMAGES, LABELS, 2 * len(IMAGES), originals=False, **STILL)
    order = np.lexsort(X.T), np.lexsort(np.concatenate([IMAGES, IMAGES]).T)
    np.testing.assert_array_equal(X[order[0]], np.concatenate([IMAGES, IMAGES])[order[1]])
    assert np.bincount(y).tolist() == (2 * np.bincount(LABELS)).tolist()


def test_originals_come_first_and_every_round_shows_each_image_once():
    index = np.arange(50)
    X, y = rows_of(IMAGES[:50], index, 170)
    np.testing.assert_array_equal(X[:50], IMAGES[:50])
    np.testing.assert_array_equal(y[:50], index)
    for start in (50, 100):
        assert not np.array_equal(y[start : start + 50], index)
        np.testing.assert_array_equal(np.sort(y[start : start + 50]), index)
    assert not np.array_equal(y[50:100], y[100:150])
    assert not (X[50:] == IMAGES[y[50:]]).all(axis=1).any()
    warped, _ = rows_of(IMAGES[:50], index, 50, originals=False)
    assert not (warped == IMAGES[:50]).all(axis=1).any()


def test_blocks_and_threads_make_no_difference():
    X, y = rows_of(IMAGES, LABELS, 5000, seed=1)
    for block_rows in (1000, 777, 5000):
        with at_most_threads(1 if block_rows == 777 else 4):
            other, labels = rows_of(IMAGES, LABELS, 5000, block_rows=block_rows, seed=1)
        np.testing.assert_array_equal(X, other)
        np.testing.assert_array_equal(y, labels)
    longer, _ = rows_of(IMAGES, LABELS, 6000, seed=1)
    np.testing.assert_array_equal(longer[:5000], X)
    assert not np.array_equal(rows_of(IMAGES, LABELS, 5000, seed=2)[0][2000:], X[2000:])


def test_a_stream_need_not_end():
    blocks = list(islice(jittered(IMAGES, LABELS, block_rows=100), 60))
    assert [len(X) for X, _ in blocks] == [100] * 60
    np.testing.assert_array_equal(blocks[40][0], rows_of(IMAGES, LABELS, 4100)[0][4000:])


def displacements(elastic, seed, n_copies=2000):
    """Of the pixel in the middle of an image whose value is its column: what it has moved by."""
    ramp = np.tile(np.arange(28.0), (28, 1)).reshape(1, -1)
    options = STILL | {"elastic": elastic}
    X, _ = rows_of(ramp, [0], n_copies, seed=seed, originals=False, **options)
    return X.reshape(-1, 28, 28) - ramp.reshape(28, 28)


def test_elastic_is_the_standard_deviation_of_the_displacement():
    """On average over a cell of 7 x 7 pixels, of which the splines are exactly periodic.

    The mean of a cell over independent copies is tested at a false-alarm rate of 1e-4, and the
    test is shown to see a deviation that is wrong by a tenth.
    """
    squares = np.square(displacements(0.8, seed=3)[:, 7:14, 7:14]).mean(axis=(1, 2))
    assert stats.ttest_1samp(squares, 0.8**2).pvalue > 1e-4
    assert stats.ttest_1samp(squares, (1.1 * 0.8) ** 2).pvalue < 1e-4
    means = displacements(0.8, seed=4)[:, 7:14, 7:14].mean(axis=(1, 2))
    assert stats.ttest_1samp(means, 0).pvalue > 1e-4


def test_neighbouring_places_of_the_stream_are_independent():
    """Rank correlation of the displacements of successive copies; false-alarm rate 1e-4 each."""
    middle = displacements(0.8, seed=7)[:, 14, 14]
    assert stats.spearmanr(middle[1:], middle[:-1]).pvalue > 1e-4
    assert stats.spearmanr(middle[1:], middle[1:] + middle[:-1]).pvalue < 1e-4
    other = displacements(0.8, seed=8)[:, 14, 14]
    assert stats.spearmanr(middle, other).pvalue > 1e-4


def slow_deskew(image):
    side = len(image)
    grid = np.indices((side, side))
    centre = (grid * image).sum(axis=(1, 2)) / image.sum()
    down, right = grid - centre[:, None, None]
    slant = (image * down * right).sum() / (image * down**2).sum()
    lines, columns = grid - (side - 1) / 2
    places = [centre[0] + lines, centre[1] + columns + slant * lines]
    return map_coordinates(image, places, order=1, mode="grid-constant")


def test_deskewing_is_that_of_the_slow_version():
    images = IMAGES[:200]
    fast = deskew(images)
    assert fast.dtype == np.float32
    for i in range(200):
        expected = slow_deskew(images[i].reshape(8, 8))
        np.testing.assert_allclose(fast[i].reshape(8, 8), expected, atol=2e-4)


def test_deskewed_images_are_upright_in_the_middle():
    """Of images that stay within their frame, up to what bilinear interpolation changes."""
    image = np.zeros((28, 28))
    rows = np.arange(6, 20)
    for offset in range(3):
        image[rows, (20 - 0.7 * rows + offset).astype(int)] = 1
    upright = deskew(image.reshape(1, -1)).reshape(28, 28).astype(float)
    grid = np.indices((28, 28))
    centre = (grid * upright).sum(axis=(1, 2)) / upright.sum()
    np.testing.assert_allclose(centre, 13.5, atol=0.01)
    down, right = grid - centre[:, None, None]
    slant = (upright * down * right).sum() / (upright * down**2).sum()
    assert abs(slant) < 0.01
    down, right = grid - ((grid * image).sum(axis=(1, 2)) / image.sum())[:, None, None]
    assert (image * down * right).sum() / (image * down**2).sum() < -0.6


def test_images_that_have_no_slant():
    flat = np.zeros((3, 25), np.float32)
    flat[1, 6] = 2  # a single pixel, which is moved to the middle
    flat[2, 10:15] = 1  # a line
    upright = deskew(flat)
    np.testing.assert_array_equal(upright[0], 0)
    assert upright[1, 12] == 2
    np.testing.assert_array_equal(upright[2], flat[2])


def test_bad_images_and_amounts():
    with pytest.raises(ValueError, match=r"square number of pixels.*got shape \(3, 10\)"):
        deskew(np.ones((3, 10)))
    with pytest.raises(ValueError, match="as many labels as images, got 5 for 6"):
        jittered(IMAGES[:6], LABELS[:5], 10)
    for bad in ({"shift": -1}, {"angle": np.nan}, {"scale": 1.0}, {"elastic": np.inf}):
        with pytest.raises(ValueError, match="must be numbers of at least 0"):
            jittered(IMAGES, LABELS, 10, **bad)
