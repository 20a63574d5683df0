"""The rows of an experiment: split and scaled as the papers do it."""

import functools
from dataclasses import dataclass, replace

import numpy as np
from sklearn.preprocessing import MinMaxScaler, normalize

from reproduction.datasets import Dataset, load, split
from reproduction.spec import Run

_COIL_TRAIN = 3600  # half of COIL-100: CRAFT Table 1-d has no Exact entry above 2^11
_NURSERY = (3, 5, 4, 4, 3, 2, 3, 3)  # values of its columns
_SHARE = 0.6  # of the rows for training, unless fewer are asked for (KK s.6.3)


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


@dataclass(frozen=True)
class Rows:
    """Rows of KK and PP, scaled; `n_tested` would be tested if all were."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    n_tested: int


def rows_of(run: Run) -> Rows:
    """The rows of a run that compares with support vector machines.

    It says how many train and test at most (`train_rows`, `test_rows`), how lengths are set
    ("constant", KK, or "unit", PP) and what the classes are ("two", KK, or "all", PP).
    """
    names = ("data", "seed", "train_rows", "test_rows", "lengths", "classes")
    return _rows(*(run[name] for name in names))


@functools.lru_cache(maxsize=1)
def _rows(
    name: str, seed: int, train_rows: int, test_rows: int, lengths: str, classes: str
) -> Rows:
    data = load(name)
    n_rows = len(data.y_train) + (0 if data.y_test is None else len(data.y_test))
    parts = split(data, min(int(_SHARE * n_rows), train_rows), seed, pool=True)
    assert parts.X_test is not None
    assert parts.y_test is not None
    y = regrouped(np.concatenate([parts.y_train, parts.y_test]), name, classes, seed)
    y_train, y_test = np.split(y, [len(parts.y_train)])
    X_train, X_test = parts.X_train, parts.X_test[:test_rows]
    if name == "nursery":
        X_train, X_test = codes(X_train), codes(X_test)
    X_train, X_test = scaled(X_train, X_test, lengths)
    return Rows(X_train, y_train, X_test, y_test[:test_rows], len(y_test))


def codes(onehot: np.ndarray) -> np.ndarray:
    """The 8 columns of Nursery from its 27 indicators: KK have d = 8."""
    groups = np.split(onehot, np.cumsum(_NURSERY)[:-1], axis=1)
    return np.stack([group.argmax(axis=1) for group in groups], axis=1)


def regrouped(y: np.ndarray, name: str, classes: str, seed: int) -> np.ndarray:
    """Labels 0, 1, ...: of two random groups of the classes if classes is "two", else of all.

    Covertype is taken as in LIBSVM's collection, class 2 against the others.
    """
    if name == "covertype":
        return np.asarray(y == 2, dtype=int)
    found, labels = np.unique(y, return_inverse=True)
    if classes == "all" or len(found) == 2:
        return np.asarray(labels)
    chosen = np.random.default_rng(seed).permutation(len(found))[: len(found) // 2]
    return np.isin(labels, chosen).astype(int)


def scaled(train: np.ndarray, test: np.ndarray, lengths: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns to [0, 1] and the longest row to length 1, as learned from the training rows.

    With lengths "unit" every row gets length 1.
    """
    columns = MinMaxScaler().fit(train.astype(float))
    parts = [columns.transform(X.astype(float)) for X in (train, test)]
    if lengths == "unit":
        return normalize(parts[0]), normalize(parts[1])
    longest = np.linalg.norm(parts[0], axis=1).max()
    return parts[0] / longest, parts[1] / longest
