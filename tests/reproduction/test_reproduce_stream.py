"""Errors along one pass are those of learners that saw as many rows and no more."""

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
from reproduction.datasets import load, split
from reproduction.images import jittered
from reproduction.stream import stream_errors

DIGITS = split(load("digits"), 1000, seed=0)
JITTER = {"shift": 0.5, "angle": 5.0, "scale": 0.05, "shear": 0.05, "elastic": 0.2}


def feature_map():
    return RandomMaclaurin(Polynomial(4), n_components=300, random_state=0)


@pytest.mark.parametrize("codes", ["one-vs-rest", "random"])
def test_errors_are_those_of_separate_fits(codes):
    """Marks within a block, at the end of one (4096) and in another."""
    rows = [500, 1000, 4096, 5000]
    options = {"codes": codes, "n_bits": 40 if codes == "random" else None, "alpha": 0.1}
    errors = stream_errors(feature_map(), DIGITS, rows, seed=3, **options, **JITTER)
    X, y = zip(*jittered(DIGITS.X_train, DIGITS.y_train, 5000, seed=3, **JITTER), strict=True)
    X, y = normalize(np.concatenate(X)), np.concatenate(y)
    for n_rows, error in zip(rows, errors, strict=True):
        model = OnePassClassifier(feature_map(), random_state=3, **options)
        model.fit(X[:n_rows], y[:n_rows])
        expected = 100 * (1 - model.score(normalize(DIGITS.X_test), DIGITS.y_test))
        assert error == pytest.approx(expected, abs=0.26)  # two of 797 rows may be ties


def test_more_rows_help():
    errors = stream_errors(feature_map(), DIGITS, [100, 8000], **JITTER)
    assert errors[0] > 2 * errors[1]


def test_bad_input():
    with pytest.raises(ValueError, match="digits has no test rows"):
        stream_errors(feature_map(), load("digits"), [100])
    for rows in ([], [0, 5], [7, 5], [5, 5]):
        with pytest.raises(ValueError, match="ascending numbers of at least 1"):
            stream_errors(feature_map(), DIGITS, rows)
