"""The tables of the league, in the order of their sizes, each with one fixed split."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CLASSIFICATION, REGRESSION = "classification", "regression"
MAX_RANDOM_TEST_ROWS = 10_000
SPLIT_SEED = 0

Loaded = tuple[Any, np.ndarray, np.ndarray]  # all rows, their targets, the mask of the test rows


@dataclass(frozen=True)
class Dataset:
    """A table: its file in the data folder, what is predicted, and how the file is read."""

    name: str
    task: str
    file: str
    load: Callable[[Path], Loaded]


@dataclass(frozen=True)
class Rows:
    """Training and test rows. Classes are numbered, and -1 is a class that training lacks."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    n_classes: int | None
    capped: bool

    @classmethod
    def of(cls, dataset: Dataset, folder: Path, max_rows: int | None) -> "Rows":
        X, y, test = dataset.load(folder / dataset.file)
        train, test = np.flatnonzero(~test), np.flatnonzero(test)
        capped = max_rows is not None and len(train) > max_rows
        if capped:
            train = np.sort(np.random.default_rng(SPLIT_SEED).permutation(train)[:max_rows])
        y, y_test, n_classes = y[train], y[test], None
        if dataset.task == CLASSIFICATION:
            classes, y = np.unique(y, return_inverse=True)
            n_classes = len(classes)
            places = np.minimum(np.searchsorted(classes, y_test), n_classes - 1)
            y_test = np.where(classes[places] == y_test, places, -1)
        else:
            y, y_test = y.astype(float), y_test.astype(float)
        take = X.iloc if isinstance(X, pd.DataFrame) else X
        return cls(take[train], y, take[test], y_test, n_classes, capped)


def archive(path: Path) -> Loaded:
    """A NumPy archive with a split, with masks of test rows, or without any of them."""
    with np.load(path, allow_pickle=False) as data:
        if "X_train" in data:
            X = np.concatenate([data["X_train"], data["X_test"]])
            y = np.concatenate([data["y_train"], data["y_test"]])
            test = np.arange(len(y)) >= len(data["y_train"])
        else:
            X, y = data["X"], data["y"]
            if "test" in data:
                test = data["test"][0]
            elif "test_masks" in data:
                test = data["test_masks"][:, 0]
            else:
                test = random_test_rows(len(y))
    return X if X.dtype == np.float64 else X.astype(np.float32), y, test


def codes(path: Path) -> Loaded:
    """A NumPy archive all of whose columns are numbers of categories."""
    X, y, test = archive(path)
    frame = pd.DataFrame(X.astype(int)).rename(columns=lambda column: f"c{column}")
    return frame.astype("category"), y, test


def table(target: str, dates: tuple[str, ...] = ()) -> Callable[[Path], Loaded]:
    """A file of named columns, without the rows that have no target."""

    def load(path: Path) -> Loaded:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        frame = frame.dropna(subset=[target]).reset_index(drop=True)
        X, y = frame.drop(columns=target), frame[target].to_numpy()
        for name in dates:
            X[name] = pd.to_datetime(X[name])
        return X, y, random_test_rows(len(y))

    return load


def random_test_rows(n: int) -> np.ndarray:
    """The mask of a random third of the rows, or of 10,000 if that is less."""
    test = np.zeros(n, dtype=bool)
    size = min(n // 3, MAX_RANDOM_TEST_ROWS)
    test[np.random.default_rng(SPLIT_SEED).permutation(n)[:size]] = True
    return test


CARS, CARS_DATES = "cars.csv", ("Year",)

DATASETS = (
    Dataset("cars_mpg", REGRESSION, CARS, table("Miles_per_Gallon", CARS_DATES)),
    Dataset("cars_origin", CLASSIFICATION, CARS, table("Origin", CARS_DATES)),
    Dataset("crx", CLASSIFICATION, "crx.parquet", table("target")),
    Dataset("german", CLASSIFICATION, "german.parquet", table("target")),
    Dataset("concrete", REGRESSION, "concrete.npz", archive),
    Dataset("airfoil", REGRESSION, "airfoil.npz", archive),
    Dataset("seattle", CLASSIFICATION, "seattle_weather.csv", table("weather", ("date",))),
    Dataset("wine", REGRESSION, "wine.npz", archive),
    Dataset("spambase", CLASSIFICATION, "spambase.npz", archive),
    Dataset("phoneme", CLASSIFICATION, "phoneme.npz", archive),
    Dataset("mushroom", CLASSIFICATION, "mushroom.parquet", table("target")),
    Dataset("kin8nm", REGRESSION, "uci_kin8nm.npz", archive),
    Dataset("pendigits", CLASSIFICATION, "pendigits.npz", archive),
    Dataset("nursery", CLASSIFICATION, "nursery.npz", codes),
    Dataset("elevators", REGRESSION, "elevators.npz", archive),
    Dataset("magic", CLASSIFICATION, "magic.npz", archive),
    Dataset("california", REGRESSION, "california_housing_raw.npz", archive),
    Dataset("letter", CLASSIFICATION, "letter.npz", archive),
    Dataset("usps", CLASSIFICATION, "usps.npz", archive),
    Dataset("coil100", CLASSIFICATION, "coil100_gray32.npz", archive),
    Dataset("protein", REGRESSION, "uci_protein.npz", archive),
    Dataset("a9a", CLASSIFICATION, "a9a.npz", archive),
    Dataset("ijcnn1", CLASSIFICATION, "ijcnn1.npz", archive),
    Dataset("cod-rna", CLASSIFICATION, "cod-rna.npz", archive),
    Dataset("covertype", CLASSIFICATION, "covertype.npz", archive),
    Dataset("mnist", CLASSIFICATION, "mnist.npz", archive),
)
