"""Every random map is unbiased, by few seeds: a bias of 10 % of the kernel is seen.

The tests marked `slow` in the files of the maps see smaller ones, for every option. The false-alarm
rate is the one that unbiased.py states for the whole suite. `Nystroem` draws rows rather than
estimates; test_nystroem.py checks the law of what it draws. `MetricMap` draws nothing itself.
"""

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from craftmaps import (
    Composed,
    CompositionalMap,
    CraftMap,
    FourierFeatures,
    Gaussian,
    ImageMap,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
    TensorSketch,
)
from craftmaps.maps.parts.images import gradients
from unbiased import Biased, check_unbiased, kernel_estimates

ROWS = normalize(np.random.default_rng(0).random((3, 9)))
PAIRS = [(0, 1), (0, 2), (1, 1)]
CUBE, COMPOSED = Polynomial(3), Composed(Polynomial(2), Gaussian(0.5))
MAPS = {  # the map for a seed, its kernel, and the rows that the kernel is of
    "RandomMaclaurin": (lambda s: RandomMaclaurin(CUBE, 1024, random_state=s), CUBE, ROWS),
    "TensorSketch": (lambda s: TensorSketch(CUBE, 4096, random_state=s), CUBE, ROWS),
    "CraftMap": (lambda s: CraftMap(CUBE, 128, n_up=1024, random_state=s), CUBE, ROWS),
    "FourierFeatures": (
        lambda s: FourierFeatures(Gaussian(0.5), 256, random_state=s),
        Gaussian(0.5),
        ROWS,
    ),
    "CompositionalMap": (
        lambda s: CompositionalMap(COMPOSED, 2048, random_state=s),
        COMPOSED,
        ROWS,
    ),
    "ScaledMap": (
        lambda s: ScaledMap(RandomMaclaurin(CUBE, 1024, random_state=s), columns="maxabs"),
        CUBE,
        normalize(ROWS / ROWS.max(axis=0)),
    ),
    "ImageMap": (
        lambda s: ImageMap(RandomMaclaurin(CUBE, 1024, random_state=s), cells=2),
        CUBE,
        gradients(ROWS, 2, 8, (3, 3)),
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_unbiased(name):
    """And features that are too long by 5 % are noticed, by the same check."""
    make_map, kernel, rows = MAPS[name]
    expected = kernel(rows)[tuple(np.transpose(PAIRS))]
    estimates = kernel_estimates(make_map, ROWS, PAIRS, range(50))
    check_unbiased(estimates, expected, smallest=0.1)
    with pytest.raises(Biased):
        check_unbiased(1.05**2 * estimates, expected, smallest=0.11)
