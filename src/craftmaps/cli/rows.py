"""Open the files of a command line, and survey their rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import click
import numpy as np

from craftmaps.cli.options import check_target, listed
from craftmaps.learn.map_rows import StreamSample
from craftmaps.scale.blocks import Blocks, read
from craftmaps.scale.files.column_types import MISSING
from craftmaps.scale.files.errors import BadRowError
from craftmaps.scale.files.paths import TABLES, format_of
from craftmaps.tables.number_texts import NumberForm, found_form
from craftmaps.tables.table import is_table, table_of
from craftmaps.validation import is_continuous, warn

_READ_AS = {"category": "text", "text": "text", "dayfirst": "text"}  # others as they are
_MIN_LABELED_ROWS = 20  # with fewer rows, all labels may differ
_MANY_NUMBERS = 10  # more different numbers may be quantities rather than labels


class Model(NamedTuple):
    """The classifier or regressor of a model file, and the columns that it takes.

    Attributes
    ----------
    learner : classifier or regressor
    names : list of str or None
        The columns that it needs; None if it has no names of columns.
    types : dict or None
        The type of each column in files; None if the learner takes arrays of numbers.
    """

    learner: Any
    names: list[str] | None
    types: dict[str, str] | None


def model_of(path: str) -> Model:
    """Read the learner of a model file.

    The names of columns are removed from a learner that takes arrays, because `model_rows` reads
    the columns in the right order.
    """
    from craftmaps import load

    learner = load(path)
    if not hasattr(learner, "predict"):
        raise ValueError(f"{path} contains a {type(learner).__name__}, which does not predict.")
    encoder = getattr(learner, "encoder_", None)
    if encoder is not None and encoder.columns_:
        types = {column.name: _type_of(column) for column in encoder.columns_}
        return Model(learner, list(types), types)
    names = vars(learner).pop("feature_names_in_", None)
    return Model(learner, None if names is None else names.tolist(), None)


def open_rows(
    data: Sequence[str],
    target: str | None,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    table: bool | str = "auto",
    **reading: Any,
) -> Blocks:
    """Open the rows of files for learning.

    `drop` are names of columns to leave out, and `kinds` are the kinds of some columns by name. If
    a kind is given, X is a table. Numbers and dates are read as the file has them, because they may
    be text in a form that the encoder converts.
    """
    files = _Files(data, **reading)
    check_target(target, tuple(data), files.kind)
    roles = {"target": files.column("--target", target), "weight": files.column("--weight", weight)}
    dropped = [*drop, *(name for name, kind in (kinds or {}).items() if kind == "drop")]
    known = {name: kind for name, kind in (kinds or {}).items() if kind != "drop"}
    types = {
        files.key("--as", name): _READ_AS[kind] for name, kind in known.items() if kind in _READ_AS
    }
    rows = files.read(**roles, table=table)
    names = rows.names
    for option, given in (("--drop", dropped), ("--as", [*(kinds or {})])):
        for name in given:
            if names is not None and name not in names:
                raise click.UsageError(
                    f"{option} names {name!r}, and there is no such column to learn from."
                )
    if dropped:
        if names is None:
            raise click.UsageError("these files have no names for --drop: choose with --columns.")
        files.chosen = [name for name in names if name not in dropped]
    if dropped or known:
        rows = files.read(**roles, table=True if known else table, types=types or None)
    return rows


def model_rows(
    data: Sequence[str], model: Model, target: str | None = None, **reading: Any
) -> Blocks:
    """Open the rows of files for prediction, with the columns of a model and no others.

    Columns are matched by name if the model has names. Without a target, blocks are (X, None).
    """
    files = _Files(data, **reading)
    if files.kind in TABLES and model.names is not None and files.chosen is None:
        files.chosen = [files.key("a column of the model", name) for name in model.names]
        files.chosen = files.chosen if files.named or model.types else None
    options: dict[str, Any] = {"table": False}
    if model.types is not None and files.kind in TABLES:
        types = {files.key("a column", name): kind for name, kind in model.types.items()}
        options = {"table": True, "types": types}
    if files.kind == "svmlight":
        width = model.learner.n_features_in_
        if files.chosen:
            width = max(files.chosen) + 1 if min(files.chosen) >= 0 else None
        options["n_columns"] = width
    return files.read(target=files.column("--target", target), **options)


def kept_columns(data: Sequence[str], names: Sequence[str], **reading: Any) -> Blocks:
    """Open columns of files unchanged, in blocks of the same size as those of `model_rows`."""
    files = _Files(data, **reading)
    if files.kind not in TABLES:
        raise click.UsageError(f"--keep is for CSV and Parquet files, and not for {files.kind}.")
    files.chosen = [files.key("--keep", name) for name in names]
    return files.read(table=True, types=dict.fromkeys(files.chosen, "text"))


def _type_of(column: Any) -> str:
    """Return the type to read for a fitted column; the encoder converts other forms from text."""
    if column.kind == "date":
        return "date" if column.form == "iso" else "text"
    return "number" if column.kind == "number" and column.form is None else "text"


class _Files:
    """Files, and the options of a command line for reading them."""

    def __init__(
        self,
        data: Sequence[str],
        format: str | None = None,
        columns: str | None = None,
        decimal: str = ".",
        encoding: str = "utf-8",
        no_header: bool = False,
        skip_bad_rows: bool = False,
    ) -> None:
        self.kind = format or format_of(list(data))
        self.named = self.kind == "parquet" or (self.kind == "csv" and not no_header)
        self.chosen: list[Any] | None = None
        if columns is not None:
            self.chosen = [self.key("--columns", name) for name in listed((columns,))]
        self._data = list(data)
        self._options: dict[str, Any] = {
            "format": format,
            "header": not no_header,
            "decimal": decimal,
            "encoding": encoding,
            "on_bad_rows": "skip" if skip_bad_rows else "unlabeled",
        }

    def read(self, **options: Any) -> Blocks:
        """Open the rows with the chosen columns, or with all columns."""
        return read(self._data, columns=self.chosen, **self._options, **options)

    def key(self, option: str, name: str) -> Any:
        """Return the name of a column, or its number in files without names."""
        return name if self.named else _index(option, name)

    def column(self, option: str, name: str | None) -> Any:
        """Like `key`, but accept names of arrays in npz files, and other files for npy files."""
        if name is None or self.named:
            return name
        other_file = self.kind != "csv" and not name.lstrip("-").isdecimal()
        return name if other_file else _index(option, name)


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
    """Number of all rows, a uniform sample of them, and their classes.

    `classes` is None if targets are continuous numbers.
    """

    n_rows: int
    X: Any
    y: np.ndarray
    classes: np.ndarray | None


def surveyed(
    opened: Callable[[bool | str], Blocks], size: int, classify: bool | None = None
) -> tuple[Blocks, Survey]:
    """Open rows as arrays if all values are numbers, otherwise as tables, and survey them.

    `opened` takes the parameter `table` of `read`. "auto" depends on the first rows only.
    """
    rows = opened("auto")
    try:
        return rows, survey(rows, size, classify)
    except BadRowError as error:
        if error.option != "table":
            raise
    rows = opened(True)
    return rows, survey(rows, size, classify)


def survey(rows: Blocks, size: int, classify: bool | None = None) -> Survey:
    """Read all rows once and keep `size` of them; if `classify` is None, the targets decide.

    The rows are chosen by their places, and are the same rows that a learner fits its map on.
    """
    sample, n_rows = StreamSample(size), 0
    classes: np.ndarray | None = None
    labelled = classify is not False
    for X, y, *_ in rows:
        n_rows += len(y)
        sample.add(table_of(X) if is_table(X) else X, y)
        if labelled:
            classes = np.unique(y) if classes is None else np.union1d(classes, y)
            labelled = bool(classify) or not is_continuous(classes, math.inf)
    if not n_rows:
        lacking = "row with a target" if rows.skipped_rows else "row"
        raise click.UsageError(f"there is no {lacking} in these files.")
    if labelled and not classify:
        labelled = not is_continuous(classes, n_rows)
    seen = Survey(n_rows, *sample.rows(), classes if labelled else None)
    _check_variety(seen)
    if classify is None and seen.classes is not None:
        _check_classes(seen.classes, n_rows)
    return seen


def _check_variety(seen: Survey) -> None:
    """Raise an error if all rows have the same target."""
    known = seen.y if seen.classes is None else seen.classes
    if seen.classes is None and len(seen.y) < seen.n_rows:
        return
    if seen.n_rows > 1 and (known == known[:1]).all():
        raise click.UsageError(
            f"all {seen.n_rows} rows have the target {known.ravel()[0]}, so there is nothing to "
            f"learn; name another column with --target."
        )


def _check_classes(classes: np.ndarray, n_rows: int) -> None:
    """Raise an error or warn about targets that are hardly classes, or may be something else."""
    if classes.dtype.kind in "OUT" and n_rows >= _MIN_LABELED_ROWS and len(classes) > n_rows / 2:
        form = found_form(classes.tolist())
        way_out = "give numbers or few classes"
        if form is not None:
            plain = form == NumberForm(",") and not any("." in text for text in classes.tolist())
            way_out = "write plain numbers, without separators of thousands, currencies and units"
            if plain:
                way_out = "read decimal commas with '--decimal ,'"
        raise click.UsageError(
            f"the target has {len(classes)} different texts in {n_rows} rows, such as "
            f"{str(classes[0])!r}: {way_out}, or learn the texts as classes with --classify."
        )
    if classes.dtype.kind in "fiu" and len(classes) > _MANY_NUMBERS:
        warn(
            f"the target has {len(classes)} different whole numbers, which are learned as classes; "
            f"--regress learns them as numbers."
        )
    alike: dict[str, str] = {}
    for name in map(str, classes.tolist()):
        other = alike.setdefault(" ".join(name.split()).lower(), name)
        if other != name:
            warn(
                f"the targets {other!r} and {name!r} are learned as different classes, although "
                f"only blanks or capital letters differ."
            )
            break
    missing = [str(name) for name in classes.tolist() if name in MISSING]
    if missing:
        warn(
            f"the target {missing[0]!r} is learned as a class like the others; if it stands for a "
            f"missing target, leave its rows out of the file."
        )
