"""From what a command line says about files to rows, and a first look at all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from scipy import sparse

from craftmaps.scale import blocks
from craftmaps.validation import is_continuous


def open_rows(
    data: Sequence[str],
    target: str | None,
    *,
    format: str | None = None,
    columns: str | None = None,
    no_header: bool = False,
    skip_bad_rows: bool = False,
    model: Any = None,
    predicting: bool = False,
) -> blocks.Blocks:
    """The rows of files; for a model, those of its columns, whatever other columns there are."""
    kind = format or blocks.format_of(list(data))
    if target is None and kind != "svmlight" and not predicting:
        raise click.UsageError("name the column of targets: --target COLUMN.")
    named = kind == "parquet" or (kind == "csv" and not no_header)
    chosen: list[Any] | None = None
    if columns is not None:
        chosen = [name.strip() for name in columns.split(",")]
        chosen = chosen if named else [_index("--columns", name) for name in chosen]
    elif named and model is not None and hasattr(model, "feature_names_in_"):
        chosen = model.feature_names_in_.tolist()
    place: Any = target
    if target is not None and not named and (kind == "csv" or target.lstrip("-").isdecimal()):
        place = _index("--target", target)
    return blocks.read(
        list(data),
        place,
        columns=chosen,
        format=format,
        header=not no_header,
        on_bad_rows="skip" if skip_bad_rows else "error",
        n_columns=_width(model, chosen) if kind == "svmlight" else None,
    )


def _width(model: Any, chosen: list[int] | None) -> int | None:
    """How many columns sparse rows must have for a model, whatever indices the files have."""
    if model is None or (chosen and min(chosen) < 0):
        return None
    return max(chosen) + 1 if chosen else int(model.n_features_in_)


def _index(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(
            f"{option} must be numbers of columns, counted from 0, because these files have no "
            f"names; got {text!r}."
        ) from None


@dataclass
class Survey:
    """What one look at all rows tells: how many, a uniform sample of them, and the classes.

    `classes` is None where targets are measured numbers.
    """

    n_rows: int
    X: Any
    y: np.ndarray
    classes: np.ndarray | None


def survey(rows: blocks.Blocks, size: int, classify: bool | None = None, seed: int = 0) -> Survey:
    """Read all rows once and keep `size` of them; `classify` None guesses from the targets."""
    rng = np.random.default_rng(seed)
    keys, kept, n_rows = np.empty(0), None, 0
    classes: np.ndarray | None = None
    labelled = classify is not False
    for X, y in rows:
        n_rows += len(y)
        if labelled:
            classes = np.unique(y) if classes is None else np.union1d(classes, y)
            labelled = bool(classify) or not is_continuous(classes)
        kept, keys = _smallest(size, kept, keys, X, y, rng.random(len(y)))
    if kept is None:
        raise click.UsageError("there are no rows in these files.")
    return Survey(n_rows, kept[0], kept[1], classes if labelled else None)


def _smallest(size: int, kept: Any, keys: Any, X: Any, y: Any, new: Any) -> tuple[Any, Any]:
    """Of the rows kept and some new ones, those with the smallest random keys."""
    if len(keys) == size:
        some = new < keys.max()
        X, y, new = X[some], y[some], new[some]
    if kept is not None:
        stack = sparse.vstack if sparse.issparse(X) else np.concatenate
        X, y = stack([kept[0], X]), np.concatenate([kept[1], y])
        new = np.concatenate([keys, new])
    best = np.sort(np.argsort(new, kind="stable")[:size])
    return ((X.tocsr() if sparse.issparse(X) else X)[best], y[best]), new[best]
