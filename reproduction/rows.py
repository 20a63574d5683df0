"""The rows of an experiment: split and scaled as the papers do it."""

import functools
from dataclasses import replace

import numpy as np
from sklearn.preprocessing import normalize

from reproduction.datasets import Dataset, load, split

_COIL_TRAIN = 3600  # half of COIL-100: CRAFT Table 1-d has no Exact entry above 2^11


def raw_rows(name: str, seed: int = 0) -> Dataset:
    """A data set as it is; where it has no split of its own, a random one."""
    data = load(name)
    if data.X_test is None:
        data = split(data, _COIL_TRAIN if name == "coil100" else 0.6, seed)
    return data


@functools.lru_cache(maxsize=2)
def unit_rows(name: str, seed: int = 0) -> Dataset:
    """The same with rows of length 1 (CRAFT s.5). USPS is brought from [-1, 1] to [0, 2] before."""
    data = raw_rows(name, seed)
    shift = np.float32(1 if name == "usps" else 0)
    X_train, X_test = (
        normalize(np.asarray(X) + shift, copy=False) for X in (data.X_train, data.X_test)
    )
    return replace(data, X_train=X_train, X_test=X_test)
