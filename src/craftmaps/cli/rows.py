"""From what a command line says about files to rows, and a first look at all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from craftmaps.learn.map_rows import StreamSample
from craftmaps.scale import blocks
from craftmaps.scale.files import paths
from craftmaps.validation import is_continuous


def learner_of(path: str) -> tuple[Any, Sequence[str] | None]:
    """The classifier or regressor in a model file, and the names of its columns if it has them.

    The learner itself forgets the names, because `open_rows` brings the columns into their order.
    """
    from craftmaps import load

    model = load(path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which predicts nothing.")
    names = vars(model).pop("feature_names_in_", None)
    return model, None if names is None else names.tolist()


def open_rows(
    data: Sequence[str],
    target: str | None,
    *,
    weight: str | None = None,
    format: str | None = None,
    columns: str | None = None,
    no_header: bool = False,
    skip_bad_rows: bool = False,
    names: Sequence[str] | None = None,
    width: int | None = None,
    predicting: bool = False,
) -> blocks.Blocks:
    """The rows of files; for a model, those of its `width` columns, by their names if it has any.

    Other columns are then passed over.
    """
    kind = format or paths.format_of(list(data))
    if target is None and kind != "svmlight" and not predicting:
        raise click.UsageError("name the column of targets: --target COLUMN.")
    named = kind == "parquet" or (kind == "csv" and not no_header)
    chosen: list[Any] | None = None
    if columns is not None:
        chosen = [name.strip() for name in columns.split(",")]
        chosen = chosen if named else [_index("--columns", name) for name in chosen]
    elif named and names is not None:
        chosen = list(names)
    if kind == "svmlight" and width is not None and chosen:
        width = max(chosen) + 1 if min(chosen) >= 0 else None
    return blocks.read(
        list(data),
        _column("--target", target, kind, named),
        weight=_column("--weight", weight, kind, named),
        columns=chosen,
        format=format,
        header=not no_header,
        on_bad_rows="skip" if skip_bad_rows else "error",
        n_columns=width if kind == "svmlight" else None,
    )


def _column(option: str, name: str | None, kind: str, named: bool) -> Any:
    """A column by its name, or by its number in files without names."""
    if name is None or named or (kind != "csv" and not name.lstrip("-").isdecimal()):
        return name
    return _index(option, name)


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


def survey(rows: blocks.Blocks, size: int, classify: bool | None = None) -> Survey:
    """Read all rows once and keep `size` of them; `classify` None guesses from the targets.

    The rows are those that a learner fits its map on, chosen by their places.
    """
    sample, n_rows = StreamSample(size), 0
    classes: np.ndarray | None = None
    labelled = classify is not False
    for X, y, *_ in rows:
        n_rows += len(y)
        sample.add(X, y)
        if labelled:
            classes = np.unique(y) if classes is None else np.union1d(classes, y)
            labelled = bool(classify) or not is_continuous(classes)
    if not n_rows:
        raise click.UsageError("there are no rows in these files.")
    return Survey(n_rows, *sample.rows(), classes if labelled else None)
