"""`craftmaps predict`: write predictions for the rows of files."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from craftmaps.cli import options


@click.command()
@options.model
@options.data
@click.option("--proba", is_flag=True, help="Add the probability of each class.")
@click.option(
    "--spreadsheet",
    is_flag=True,
    help="Begin labels in CSV files that a spreadsheet would run (=, +, -, @) with an apostrophe.",
)
@click.option("--keep", multiple=True, metavar="A,B,...", help="Columns to copy to the output.")
@options.reading
@options.output("A .parquet or .csv file.")
@options.as_json
def predict(
    model: str,
    data: tuple[str, ...],
    proba: bool,
    spreadsheet: bool,
    keep: tuple[str, ...],
    output: str,
    as_json: bool,
    **reading: Any,
) -> None:
    """Predict a target for each row of files, block by block.

    Columns are matched by name, and other columns are ignored. The output has one row for each
    input row, and is written completely or not at all. --keep copies columns of the input to the
    output, such as an identifier.

    \b
    Example:
      craftmaps predict model.craft test.csv --proba -o predictions.csv
    """
    options.check_output(output, (".parquet", ".pq", ".csv"), data=data)
    if reading.pop("skip_bad_rows"):
        raise click.UsageError("every row gets a prediction: leave --skip-bad-rows out.")
    from craftmaps.cli.rows import kept_columns, model_of, model_rows
    from craftmaps.scale.files.errors import BadRowError
    from craftmaps.storage.atomic import write_whole

    opened = model_of(model)
    learner = opened.learner
    if proba and not hasattr(learner, "predict_proba"):
        raise click.UsageError(f"{model} is a regressor without probabilities: leave --proba out.")
    rows = model_rows(data, opened, **reading)
    kept_names = options.listed(keep)
    kept = kept_columns(data, kept_names, **reading) if kept_names else None
    counted = [0]

    def fill(file: BinaryIO) -> None:
        tables = _tables(learner, rows, proba, counted)
        if kept is not None:
            tables = _beside(kept, tables)
        if output.lower().endswith(".csv"):
            _write_csv(tables, file, spreadsheet)
        else:
            _write_parquet(tables, file)

    try:
        write_whole(output, fill)
    except BadRowError as error:
        is_value = error.option in ("on_bad_rows", "table") and error.column is not None
        if opened.types is not None and is_value:
            error.option = "kind"
        else:  # each row gets a prediction, so none is left out
            error.option = "columns" if opened.names is None and is_value else None
        raise
    size = Path(output).stat().st_size
    options.report({"rows": counted[0], "output": output, "bytes": size}, as_json)


def _tables(learner: Any, rows: Any, proba: bool, counted: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the columns of the output, one block at a time."""
    for X, _ in rows:
        counted[0] += X.shape[0]
        if not proba:
            yield _columns(learner.predict(X))
            continue
        probabilities = learner.predict_proba(X)
        table = {"prediction": learner.classes_[probabilities.argmax(axis=1)]}
        for label, column in zip(learner.classes_.tolist(), probabilities.T, strict=True):
            table[f"probability_{label}"] = column
        yield table
    if not counted[0]:
        raise ValueError("there are no rows to predict.")


def _beside(kept: Any, tables: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield tables with the kept columns first, and then the columns of the output."""
    for (columns, _), table in zip(kept, tables, strict=True):
        first = {name: columns[name].combine_chunks() for name in columns.column_names}
        both = [name for name in first if name in table]
        if both:
            raise click.UsageError(f"the output has its own {both[0]!r}: --keep another column.")
        yield first | table


def _columns(predicted: Any) -> dict[str, Any]:
    """Return one column for each target of the model."""
    if predicted.ndim == 1:
        return {"prediction": predicted}
    return {f"prediction_{number}": column for number, column in enumerate(predicted.T)}


def _write_csv(tables: Iterator[dict[str, Any]], file: BinaryIO, spreadsheet: bool) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    for number, table in enumerate(tables):
        if not number:
            writer.writerow(table)
        columns = [column.tolist() for column in table.values()]
        if spreadsheet:
            columns = [list(map(_harmless, column)) for column in columns]
        writer.writerows(zip(*columns, strict=True))
    text.detach()


def _harmless(value: Any) -> Any:
    """Return a label with an apostrophe if a spreadsheet would run it as a formula."""
    runs = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if runs else value


def _write_parquet(tables: Iterator[dict[str, Any]], file: BinaryIO) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files are written with pyarrow: pip install 'craftmaps[files]'."
        ) from error
    writer = None
    for table in tables:
        written = pa.table(table)
        writer = writer or parquet.ParquetWriter(file, written.schema)
        writer.write_table(written)
    if writer is not None:
        writer.close()
