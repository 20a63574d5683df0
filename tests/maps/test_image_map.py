"""ImageMap: gradients of images in front of any map."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import (
    CraftMap,
    Gaussian,
    ImageMap,
    MetricMap,
    Nystroem,
    OnePassClassifier,
    Polynomial,
)
from craftmaps.maps.parts.images import gradients

INNER = CraftMap(Polynomial(3), 64, random_state=0)
IMAGES, LABELS = load_digits(return_X_y=True)


def test_one_side_may_be_inferred():
    expected = ImageMap(INNER, cells=4, shape=(4, 16)).fit_transform(IMAGES)
    for shape in ((4, -1), (-1, 16)):
        found = ImageMap(INNER, cells=4, shape=shape).fit_transform(IMAGES)
        np.testing.assert_array_equal(found, expected)
    for shape in ((-1, -1), (-1, 5), (-2, 4)):
        with pytest.raises(ValueError, match=r"images"):
            ImageMap(INNER, cells=4, shape=shape).fit(IMAGES)


@pytest.mark.parametrize("options", [{}, {"cells": 3, "directions": 6}, {"shape": (4, 16)}])
def test_the_map_inside_is_given_gradients(options):
    options = {"cells": 4} | options
    found = ImageMap(INNER, **options).fit(IMAGES)
    seen = gradients(IMAGES, **options)
    expected = clone(INNER).fit(seen.astype(np.float64)).transform(seen.astype(np.float64))
    np.testing.assert_allclose(found.transform(IMAGES), expected, rtol=1e-12)
    assert found.feature_map_.n_features_in_ == seen.shape[1]
    wrong = clone(INNER).fit(IMAGES).transform(IMAGES)
    assert np.abs(wrong - expected).max() > 0.1


def moved(X, by):
    """Images moved to the right, with what leaves them lost."""
    images = np.zeros((len(X), 8, 8))
    images[:, :, by:] = X.reshape(-1, 8, 8)[:, :, : 8 - by]
    return images.reshape(len(X), 64)


def test_predictions_are_better_than_of_pixels():
    """With few rows to learn from, and more so for strokes that are not quite where they were."""
    train, test = slice(300), slice(300, None)
    pixels = OnePassClassifier(INNER).fit(normalize(IMAGES[train]), LABELS[train])
    strokes = OnePassClassifier(ImageMap(INNER)).fit(IMAGES[train], LABELS[train])
    for by in (0, 1):
        X, y = moved(IMAGES[test], by), LABELS[test]
        assert 1 - strokes.score(X, y) < 0.7 * (1 - pixels.score(normalize(X), y))


def test_brightness_and_contrast_make_no_difference():
    """But for the frame, outside of which everything is zero."""
    images = np.zeros((100, 12, 12))
    images[:, 2:10, 2:10] = IMAGES[:100].reshape(-1, 8, 8)
    images = images.reshape(100, 144)
    found = ImageMap(INNER).fit(images)
    Z = found.transform(images)
    np.testing.assert_allclose(found.transform(0.1 * images), Z, atol=1e-4 * np.abs(Z).max())
    np.testing.assert_array_equal(found.transform(np.zeros((1, 144))).shape, (1, 64))


def test_sparse_and_single_rows():
    dense = ImageMap(INNER).fit(IMAGES)
    Z = dense.transform(IMAGES)
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix):
        np.testing.assert_array_equal(dense.transform(make(IMAGES)), Z)
        np.testing.assert_array_equal(ImageMap(INNER).fit(make(IMAGES)).transform(IMAGES), Z)
    single = dense.transform(IMAGES.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=1e-4 * np.abs(Z).max())
    into = np.empty((len(IMAGES), 64))
    np.testing.assert_array_equal(dense.transform_into(IMAGES, into), Z)


def test_maps_that_learn_may_be_inside():
    few = slice(None, None, 3)
    for inner in (
        MetricMap(INNER),
        CraftMap(Polynomial(5), 64, down="principal", random_state=0),
        Nystroem(Gaussian("median"), 64, landmarks="kmeans", random_state=0),
        Nystroem(Gaussian("median"), 64, whiten=False, random_state=0),
    ):
        model = OnePassClassifier(ImageMap(inner)).fit(IMAGES[few], LABELS[few])
        assert model.score(IMAGES[1::3], LABELS[1::3]) > 0.9


def test_a_stream_of_images():
    model = OnePassClassifier(ImageMap(INNER))
    for start in range(0, 1000, 250):
        block = slice(start, start + 250)
        model.partial_fit(IMAGES[block], LABELS[block], classes=range(10))
    assert model.score(IMAGES[1000:], LABELS[1000:]) > 0.9


def test_gradients_too_small_for_an_inverse_are_none():
    found = ImageMap(INNER).fit(IMAGES)
    faint = found.transform(1e-42 * IMAGES[:5])
    np.testing.assert_array_equal(faint, found.transform(np.zeros((5, 64))))


def test_complaints():
    with pytest.raises(ValueError, match=r"square number of pixels.*got shape \(5, 10\)"):
        ImageMap(INNER).fit(np.ones((5, 10)))
    with pytest.raises(ValueError, match=r"images of 3 x 5 pixels must be rows of 15 of them"):
        ImageMap(INNER, shape=(3, 5)).fit(IMAGES)
    for shape in (8, (8,), (8.0, 8), "square", (8, 8, 1), (-8, -8)):
        with pytest.raises(ValueError, match="shape of images must be their height and width"):
            ImageMap(INNER, shape=shape).fit(IMAGES)
    for cells in (9, 0, 5.5):
        words = f"from 1 to 8 for images of 8 x 8 pixels, got {cells}"
        with pytest.raises(ValueError, match=words):
            ImageMap(INNER, cells=cells).fit(IMAGES)
    for directions in (4, 5.5):
        with pytest.raises(ValueError, match=f"an integer of at least 5, got {directions}"):
            ImageMap(INNER, directions=directions).fit(IMAGES)
