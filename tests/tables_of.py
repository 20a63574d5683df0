"""One table with columns of every kind, as each library holds it."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

NAMES = ["Ärzte", "naïve", "東京", "Zürich", "zurich", "O'Neil", "a b", "", None, "ﬀ"]


def columns(n=60, seed=0):
    """Lists of Python objects, with None for missing values."""
    rng = np.random.default_rng(seed)

    def holes(values):
        gaps = rng.random(n) < 0.15
        return [None if gap else value for value, gap in zip(values, gaps, strict=True)]

    start = dt.datetime(2021, 3, 1, 12)
    return {
        "age": holes(rng.integers(18, 80, n).tolist()),
        "income": holes(np.exp(rng.normal(10, 2, n)).tolist()),
        "member": holes((rng.random(n) < 0.5).tolist()),
        "city": holes([NAMES[i] for i in rng.integers(0, len(NAMES), n)]),
        "title": holes([_title(rng) for _ in range(n)]),
        "since": holes([start + dt.timedelta(hours=int(h)) for h in rng.integers(0, 20_000, n)]),
        "born": holes([dt.date(1990, 1, 1) + dt.timedelta(days=int(d)) for d in range(n)]),
        "took": holes([dt.timedelta(seconds=float(s)) for s in rng.integers(1, 900, n)]),
        "price": holes([Decimal(int(p)) / 100 for p in rng.integers(100, 9999, n)]),
        "empty": [None] * n,
        "same": ["x"] * n,
    }


def as_pandas(data):
    return pd.DataFrame(
        {
            "age": pd.array(data["age"], dtype="Int64"),
            "income": pd.array(data["income"], dtype="float64"),
            "member": pd.array(data["member"], dtype="boolean"),
            "city": pd.Categorical(data["city"]),
            "title": data["title"],
            "since": pd.to_datetime(pd.Series(data["since"])),
            "born": data["born"],
            "took": pd.to_timedelta(pd.Series(data["took"])),
            "price": data["price"],
            "empty": data["empty"],
            "same": data["same"],
        }
    )


def as_arrow(data):
    return pa.table(data | {"city": pa.array(data["city"]).dictionary_encode()})


def as_polars(data):
    frame = pl.DataFrame(data, strict=False)
    return frame.with_columns(pl.col("city").cast(pl.Categorical))


def as_objects(data):
    """An array of objects, whose columns have no names."""
    array = np.empty((len(data["age"]), len(data)), dtype=object)
    for j, column in enumerate(data.values()):
        array[:, j] = column
    return array


FORMS = {
    "dict": lambda data: data,
    "pandas": as_pandas,
    "polars": as_polars,
    "lazy": lambda data: as_polars(data).lazy(),
    "arrow": as_arrow,
    "batch": lambda data: as_arrow(data).combine_chunks().to_batches()[0],
    "objects": as_objects,
}


def _title(rng):
    ranks, trades = ["senior", "junior", "chief", ""], ["nurse", "miner", "pilot", "baker"]
    return f"{rng.choice(ranks)} {rng.choice(trades)} {rng.integers(100)}".strip()
