"""Whole tables: kernel machines with an encoder beside boosted trees that take tables."""

import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks.harness import DATA, table
from craftmaps import FourierFeatures, KernelClassifier, KernelRegressor, TableEncoder

SPLITS = 3
COMPONENTS = 512
BLOCK_ROWS = 100_000
Fit = Callable[[pd.DataFrame, np.ndarray, bool], Any]


def report() -> str:
    if not DATA:
        return "## Tables\n\nSkipped: CRAFTMAPS_DATA is not set."
    sets = {name: load(Path(DATA)) for name, load in SETS.items()}
    lines = [line(name, *rows) for name, rows in sets.items()]
    names = [*METHODS]
    return (
        "## Tables\n\n"
        f"Mean of {SPLITS} random splits, two thirds of the rows learned: share of wrong labels / "
        "log-loss for classes, and root mean square error / standard deviation of the target for "
        f"numbers. The kernel machine has {COMPONENTS} Fourier features, and auto searches for its "
        "map. All methods have their defaults otherwise. They take the table as it is, or with "
        "dates as numbers and text as categories where they must (LightGBM, CatBoost).\n\n"
        f"{table(['table', 'rows x columns', *names], lines)}\n"
        f"Time to encode 1,000,000 rows of 10 columns (5 numbers, 3 categories, 1 date, 1 text of "
        f"100,000 levels), fitted on 10,000 rows: {encoding_seconds():.1f} s of one core.\n\n"
        f"{streamed()}\n"
    )


def line(name: str, frame: pd.DataFrame, y: np.ndarray, is_label: bool) -> list[str]:
    scores: dict[str, list[Any]] = {method: [] for method in METHODS}
    for seed in range(SPLITS):
        parts = train_test_split(
            frame, y, test_size=1 / 3, random_state=seed, stratify=y if is_label else None
        )
        X, X_test, y_train, y_test = parts
        for method, fit in METHODS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores[method].append(score(fit(X, y_train, is_label), X_test, y_test, is_label))
    means = {method: np.mean(values, axis=0).round(3) for method, values in scores.items()}
    print(name, means, flush=True)
    cells = [
        " / ".join(f"{value:.3f}" for value in np.mean(values, axis=0))
        for values in scores.values()
    ]
    return [name, f"{frame.shape[0]:,} x {frame.shape[1]}", *cells]


def score(model: Any, X: pd.DataFrame, y: np.ndarray, is_label: bool) -> list[float]:
    if not is_label:
        error = np.asarray(model.predict(X)).ravel() - y
        return [float(np.sqrt(np.mean(error**2)) / y.std())]
    probabilities = model.predict_proba(X)
    classes = np.asarray(model.classes_)
    wrong = float(np.mean(classes[probabilities.argmax(axis=1)] != y))
    return [wrong, float(log_loss(y, probabilities, labels=classes))]


def kernel_machine(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Any:
    feature_map = FourierFeatures(n_components=COMPONENTS, random_state=0)
    return (KernelClassifier if is_label else KernelRegressor)(feature_map).fit(X, y)


def searched(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Any:
    return (KernelClassifier if is_label else KernelRegressor)(random_state=0).fit(X, y)


def trees_of_skrub(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Any:
    from skrub import TableVectorizer

    trees = HistGradientBoostingClassifier if is_label else HistGradientBoostingRegressor
    return make_pipeline(TableVectorizer(), trees(random_state=0)).fit(X, y)


def lightgbm(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if is_label else LGBMRegressor
    known = plain(X, as_categories=True)
    categories = {name: known[name].dtype for name in known if known[name].dtype == "category"}
    model = kind(random_state=0, verbose=-1, n_jobs=1).fit(known, y)
    return Prepared(model, lambda new: plain(new, as_categories=True).astype(categories))


def catboost(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if is_label else CatBoostRegressor
    known = plain(X, as_categories=False)
    text = [name for name in known if not pd.api.types.is_numeric_dtype(known[name].dtype)]
    model = kind(random_seed=0, verbose=False, thread_count=1, allow_writing_files=False)
    model.fit(known, y, cat_features=text)
    return Prepared(model, lambda new: plain(new, as_categories=False))


class Prepared:
    """A model behind a preparation of its rows."""

    def __init__(self, model: Any, prepare: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        self._model, self._prepare = model, prepare

    @property
    def classes_(self) -> Any:
        return self._model.classes_

    def predict(self, X: pd.DataFrame) -> Any:
        return self._model.predict(self._prepare(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self._model.predict_proba(self._prepare(X))


def plain(X: pd.DataFrame, as_categories: bool) -> pd.DataFrame:
    """Dates as days, and text as categories or as strings without holes."""
    columns = {}
    for name in X:
        column = X[name]
        if pd.api.types.is_datetime64_any_dtype(column):
            column = (column - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        elif not pd.api.types.is_numeric_dtype(column):
            text = column.astype(object).where(column.notna(), "missing").astype(str)
            column = text.astype("category") if as_categories else text
        columns[name] = column
    return pd.DataFrame(columns)


def parquet(name: str) -> Callable[[Path], tuple[pd.DataFrame, np.ndarray, bool]]:
    def load(folder: Path) -> tuple[pd.DataFrame, np.ndarray, bool]:
        frame = pd.read_parquet(folder / f"{name}.parquet")
        return frame.drop(columns="target"), frame["target"].to_numpy(), True

    return load


def cars(folder: Path, target: str) -> tuple[pd.DataFrame, np.ndarray, bool]:
    frame = pd.read_csv(folder / "cars.csv", parse_dates=["Year"]).dropna(subset=[target])
    y = frame[target].to_numpy()
    return frame.drop(columns=target), y, y.dtype.kind not in "iuf"


def weather(folder: Path) -> tuple[pd.DataFrame, np.ndarray, bool]:
    frame = pd.read_csv(folder / "seattle_weather.csv", parse_dates=["date"])
    return frame.drop(columns="weather"), frame["weather"].to_numpy().astype(str), True


def jobs(folder: Path, n_rows: int = 3000) -> tuple[pd.DataFrame, np.ndarray, bool]:
    """Made up: pay by the words of a title with typing errors, years, place and season."""
    rng = np.random.default_rng(0)
    parts = ["ka", "lo", "mi", "tre", "bon", "sta", "ver", "qui", "zan", "pol", "rix", "dor"]
    words = ["".join(rng.choice(parts, rng.integers(2, 4))) for _ in range(60)]
    worth = rng.normal(size=60)
    chosen = rng.integers(0, 60, (n_rows, 2))
    titles = [" ".join(typed(words[i], rng) for i in row) for row in chosen]
    days = rng.integers(0, 1460, n_rows)
    years, places = rng.gamma(2.0, 4.0, n_rows), rng.integers(0, 8, n_rows)
    pay = worth[chosen].sum(axis=1) + np.sqrt(years) + np.sin(2 * np.pi * days / 365.25)
    pay += 0.3 * (places - 4) * np.sign(worth[chosen[:, 0]]) + 0.3 * rng.normal(size=n_rows)
    holes = rng.random(n_rows) < 0.1
    frame = {
        "title": titles,
        "years": np.where(holes, np.nan, years),
        "place": np.array([f"place {i}" for i in range(8)])[places],
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
    }
    return pd.DataFrame(frame), pay, False


def shop(folder: Path, n_rows: int = 4000) -> tuple[pd.DataFrame, np.ndarray, bool]:
    """Made up: whether a basket comes back, by a heavy-tailed price, hours, and two categories."""
    rng = np.random.default_rng(1)
    price, minutes = np.exp(rng.normal(3, 1.5, n_rows)), rng.integers(0, 525_600, n_rows)
    kind, way = rng.integers(0, 12, n_rows), rng.integers(0, 3, n_rows)
    score = np.sin(np.log(price)) * (way - 1) + np.cos(2 * np.pi * minutes / 1440)
    score += 0.5 * np.sin(kind * 2.0) * (way == 2)
    back = rng.random(n_rows) < 1 / (1 + np.exp(-2 * score))
    way_names = np.array(["post", "shop", None], dtype=object)
    frame = {
        "price": price,
        "at": pd.Timestamp("2023-01-01") + pd.to_timedelta(minutes, unit="min"),
        "kind": np.array([f"kind {i}" for i in range(12)])[kind],
        "way": way_names[way],
    }
    return pd.DataFrame(frame), np.where(back, "back", "kept"), True


def typed(word: str, rng: np.random.Generator) -> str:
    if rng.random() < 0.2:
        place = rng.integers(len(word))
        word = word[:place] + "abcdefghij"[rng.integers(10)] + word[place + 1 :]
    return word


def encoding_seconds(n_rows: int = 1_000_000) -> float:
    rng = np.random.default_rng(0)
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon"])
    streets = np.array([f"street {i} {word}" for i in range(20_000) for word in words])
    frame = pd.DataFrame(
        {f"number {i}": rng.normal(size=n_rows) for i in range(4)}
        | {"tail": np.exp(2 * rng.normal(size=n_rows))}
        | {f"category {i}": words[rng.integers(0, 5, n_rows)] for i in range(3)}
        | {"at": pd.Timestamp("2020") + pd.to_timedelta(rng.integers(0, 10**8, n_rows), unit="s")}
        | {"street": streets[rng.integers(0, len(streets), n_rows)]}
    )
    encoder = TableEncoder().fit(frame[:10_000])
    encoder.transform(frame[:100])  # compiles
    start = time.process_time()  # encoding has one thread, and other programs may run beside it
    encoder.transform(frame)
    return time.process_time() - start


def streamed(n_rows: int = 10_000_000) -> str:
    """Time and memory of a fit to many rows in blocks, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, before, after, width = pool.apply(fit_in_blocks, (n_rows,))
    return (
        f"Fit with 16 Fourier features to {n_rows:,} rows of 4 columns (number, category, text of "
        f"1,000 levels, date), in blocks of {BLOCK_ROWS:,} that are made as they are read: "
        f"{seconds:.0f} s of one core. The peak memory grows from {before:.0f} MB, after a fit to "
        f"one block, to {after:.0f} MB. All encoded rows would take {n_rows * width * 4 / 1e9:.1f} "
        f"GB."
    )


def fit_in_blocks(n_rows: int) -> tuple[float, float, float, int]:
    """Seconds of a fit, the peak memory in MB before it and after it, and encoded columns."""
    peaks, start = [], 0.0
    for n in (BLOCK_ROWS, n_rows):
        start = time.process_time()
        feature_map = FourierFeatures(n_components=16, random_state=0)
        model = KernelClassifier(feature_map, loss="squared", alpha=1.0, map_rows=1000)
        model.fit_blocks(MixedBlocks(n), classes=[False, True])
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    return time.process_time() - start, peaks[0], peaks[1], model.encoder_.n_encoded_


class MixedBlocks:
    """Blocks of mixed rows, each drawn when it is asked for."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        words = np.array(["red", "green", None], dtype=object)
        names = np.array([f"name {j}" for j in range(1000)], dtype=object)
        for i in range(self.n_rows // BLOCK_ROWS):
            rng = np.random.default_rng(i)
            x = rng.normal(size=BLOCK_ROWS)
            yield (
                {
                    "x": np.where(x > 2, np.nan, x),
                    "word": words[rng.integers(0, 3, BLOCK_ROWS)],
                    "name": names[rng.integers(0, 1000, BLOCK_ROWS)],
                    "day": np.datetime64("2020-01-01") + rng.integers(0, 900, BLOCK_ROWS),
                },
                x > 0,
            )


METHODS: dict[str, Fit] = {
    "auto": searched,
    "kernel machine": kernel_machine,
    "LightGBM": lightgbm,
    "CatBoost": catboost,
    "skrub + HistGradientBoosting": trees_of_skrub,
}
SETS: dict[str, Callable[[Path], tuple[pd.DataFrame, np.ndarray, bool]]] = {
    "german": parquet("german"),
    "crx": parquet("crx"),
    "mushroom": parquet("mushroom"),
    "cars, origin": lambda folder: cars(folder, "Origin"),
    "cars, miles per gallon": lambda folder: cars(folder, "Miles_per_Gallon"),
    "seattle weather": weather,
    "made up: jobs": jobs,
    "made up: shop": shop,
}
