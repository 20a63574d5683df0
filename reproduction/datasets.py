"""Named data sets, from archives in a folder of your own, from OpenML, or from scikit-learn.

Only "digits" is always there, because scikit-learn contains it. The other sets are read from `.npz`
archives in the folder that the environment variable CRAFTMAPS_DATA names. `data_sources` says for
each of them where its rows come from and how to make the archive. Some sets are fetched from OpenML
if the archive is missing; for the others `load` raises `Missing`, with what to do.
"""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse
from sklearn.datasets import fetch_openml, load_digits
from sklearn.preprocessing import OneHotEncoder

from reproduction.data_sources import SOURCES, Source

__all__ = ["NAMES", "Dataset", "Missing", "checksum", "load", "split"]


class Missing(LookupError):
    """A data set that is known but missing; the message says how to get it."""


@dataclass(frozen=True)
class Dataset:
    """Rows and labels.

    Attributes
    ----------
    name : str
    X_train : ndarray of shape (n_train, n_columns), float32
    y_train : ndarray of shape (n_train,)
    X_test, y_test : ndarray or None
        None where there is no customary test set: all rows are in X_train. See `split`.
    sha256 : str
        `checksum` of rows and labels.
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray | None
    y_test: np.ndarray | None
    sha256: str


_ALIASES = {"adult": "a9a"}
NAMES = ("digits", *SOURCES)


def load(name: str) -> Dataset:
    """Load a data set by its name: the rows as float32, the labels as they are.

    Nothing is scaled. USPS is in [-1, 1]: add 1 before rows get unit norm. Nursery is one-hot.

    Parameters
    ----------
    name : str
        One of `NAMES`; "adult" is another name of "a9a".

    Raises
    ------
    Missing
        If the set is neither in the folder nor at OpenML. The message says how to supply it.
    ValueError
        If there is no such name, or if the archive holds other rows or labels than it should.

    Notes
    -----
    Fetching from OpenML is tested with a local cache only, never against its server. Its sets may
    differ from the archives: labels are as OpenML writes them, letter has no test rows, and mnist,
    usps, pendigits and a9a are assumed to have their training rows first. The checksum of what was
    used is recorded with every result.

    Examples
    --------
    >>> from reproduction import datasets
    >>> digits = datasets.load("digits")
    >>> digits.X_train.shape, digits.X_train.dtype, digits.X_test
    ((1797, 64), dtype('float32'), None)
    >>> datasets.split(digits, train=1000, seed=0).X_test.shape
    (797, 64)
    """
    name = _ALIASES.get(name, name)
    if name == "digits":
        return _of_arrays(name, *load_digits(return_X_y=True))
    if name not in SOURCES:
        raise ValueError(f"there is no data set {name!r}; known are {', '.join(NAMES)}.")
    source = SOURCES[name]
    folder = os.environ.get("CRAFTMAPS_DATA")
    path = Path(folder, source.file) if folder else None
    if path is not None and path.is_file():
        return _of_file(name, path, source)
    if source.openml is not None:
        return _of_openml(name, source)
    raise Missing(_way_to_get(name))


def split(dataset: Dataset, train: float = 0.6, seed: int = 0, *, pool: bool = False) -> Dataset:
    """Divide the rows of a data set at random into training and test rows.

    Parameters
    ----------
    dataset : Dataset
    train : float or int, default=0.6
        The share of the training rows, below 1, or their number.
    seed : int, default=0
    pool : bool, default=False
        What happens to the test rows of a set that has some: False leaves them out, so that a
        choice made on the new test rows has not seen them; True divides them too.
    """
    X, y = dataset.X_train, dataset.y_train
    if pool and dataset.X_test is not None and dataset.y_test is not None:
        X, y = np.concatenate([X, dataset.X_test]), np.concatenate([y, dataset.y_test])
    share = 0 < train < 1
    n_train = round(train * len(X)) if share else int(train)
    if (not share and n_train != train) or not 0 < n_train < len(X):
        raise ValueError(
            f"train must be a share between 0 and 1 or a number of rows from 1 to {len(X) - 1}, "
            f"got {train!r}."
        )
    order = np.random.default_rng(seed).permutation(len(X))
    ours, theirs = order[:n_train], order[n_train:]
    return replace(dataset, X_train=X[ours], y_train=y[ours], X_test=X[theirs], y_test=y[theirs])


def _of_file(name: str, path: Path, source: Source) -> Dataset:
    parts = _read(path)
    if "onehot" in parts:
        parts["X"] = parts["onehot"]
    if "X" in parts:
        parts = {"X_train": parts["X"], "y_train": parts["y"]}
    X, y, y_test = _rows(parts["X_train"]), parts["y_train"], parts.get("y_test")
    X_test = _rows(parts["X_test"]) if "X_test" in parts else None
    digest = checksum(X, y, X_test, y_test)
    if source.sha256 not in (None, digest):
        raise ValueError(
            f"{path} does not hold the rows and labels that are known as {name!r} "
            f"({source.contents}): their checksum is {digest}, not {source.sha256}."
        )
    return Dataset(name, X, y, X_test, y_test, digest)


def checksum(
    X: np.ndarray,
    y: np.ndarray,
    X_test: np.ndarray | None = None,
    y_test: np.ndarray | None = None,
) -> str:
    """SHA-256 of the rows as float32 and the labels as float64, or of labels that are words.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.eye(2, dtype=np.uint8)
    >>> checksum(rows, [0, 1]) == checksum(rows.astype(float), np.array([0.0, 1.0]))
    True
    """
    digest = hashlib.sha256()
    for rows, labels in ((X, y), (X_test, y_test)):
        if rows is not None and labels is not None:
            digest.update(np.ascontiguousarray(rows, dtype="<f4").data)
            words = np.asarray(labels).dtype.kind == "U"
            digest.update(
                "\n".join(labels).encode() if words else np.asarray(labels, dtype="<f8").tobytes()
            )
    return digest.hexdigest()


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            wanted = {"X_train", "y_train", "X_test", "y_test", "X", "y", "onehot"}
            parts = {key: archive[key] for key in archive.files if key in wanted}
    except (ValueError, OSError, BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as an npz file of plain arrays: {error}") from None
    pairs = [("X_train", "y_train"), ("X_test", "y_test"), ("X", "y")]
    whole = all((rows in parts) == (labels in parts) for rows, labels in pairs)
    if not whole or not ("X" in parts or "X_train" in parts):
        raise ValueError(
            f"{path} must hold X_train, y_train, X_test and y_test, or X and y; it has "
            f"{sorted(parts)}."
        )
    for rows, labels in pairs:
        if rows in parts and len(parts[rows]) != len(parts[labels]):
            raise ValueError(
                f"{path} has {len(parts[rows])} rows in {rows} and {len(parts[labels])} labels in "
                f"{labels}."
            )
    return parts


def _of_openml(name: str, source: Source) -> Dataset:
    try:
        X, y = fetch_openml(
            data_id=source.openml, return_X_y=True, as_frame=False, parser="liac-arff"
        )
    except OSError as error:  # no network, or a server that does not answer
        raise Missing(f"{_way_to_get(name)} OpenML has it too, but: {error}") from error
    if source.n_rows not in (None, X.shape[0]):
        raise ValueError(
            f"{name} should have {source.n_rows} rows, and OpenML's data set {source.openml} has "
            f"{X.shape[0]}."
        )
    if name == "nursery":
        X = OneHotEncoder().fit_transform(X)
    return _of_arrays(name, X, _labels(y), source.n_train)


def _of_arrays(name: str, X: Any, y: np.ndarray, n_train: int | None = None) -> Dataset:
    X = _rows(X.toarray() if sparse.issparse(X) else X)
    if n_train is None:
        return Dataset(name, X, y, None, None, checksum(X, y))
    parts = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    return Dataset(name, *parts, checksum(*parts))


def _rows(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float32)


def _labels(y: np.ndarray) -> np.ndarray:
    """Numbers where OpenML's words are numbers."""
    try:
        numbers = y.astype(np.float64)
    except ValueError:
        return y.astype(str)
    whole = np.array_equal(numbers, np.rint(numbers))
    return numbers.astype(np.int64) if whole else numbers.astype(np.float32)


def _way_to_get(name: str) -> str:
    source = SOURCES[name]
    return (
        f"{name} is missing: save its rows ({source.contents}) as {source.file} in the folder that "
        f"CRAFTMAPS_DATA names. They come from {source.home}; reproduction/data_sources.py shows "
        f"how to make the file."
    )
