"""`craftmaps predict`: a model and files in, predictions out."""

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
@options.reading
@options.output("A .parquet or .csv file.")
@options.as_json
def predict(
    model: str, data: tuple[str, ...], proba: bool, output: str, as_json: bool, **reading: Any
) -> None:
    """Predict a target for each row of files, block by block.

    The columns of a model are found by their names; other columns are passed over. The output has
    a row per row, and is written whole or not at all.

    \b
    Example:
      craftmaps predict model.craft test.csv --proba -o predictions.csv
    """
    if not output.lower().endswith((".parquet", ".pq", ".csv")):
        raise click.UsageError(f"-o must be a .parquet or .csv file, got {output}.")
    if reading.pop("skip_bad_rows"):
        raise click.UsageError("predictions are one per row, so --skip-bad-rows is not for them.")
    from craftmaps.cli.models import learner_of
    from craftmaps.cli.rows import open_rows
    from craftmaps.storage.atomic import write_whole

    learner = learner_of(model)
    if proba and not hasattr(learner, "predict_proba"):
        raise click.UsageError(f"{model} is a regressor, which has no probabilities: no --proba.")
    rows = open_rows(data, None, model=learner, predicting=True, **reading)
    counted = [0]

    def fill(file: BinaryIO) -> None:
        tables = _tables(learner, rows, proba, counted)
        (_write_csv if output.lower().endswith(".csv") else _write_parquet)(tables, file)

    try:
        write_whole(output, fill)
    except ValueError as error:  # predictions are one per row: none can be left out
        told = str(error).replace("; on_bad_rows='skip' leaves such rows out", "")
        raise ValueError(told) from error
    size = Path(output).stat().st_size
    options.report({"rows": counted[0], "output": output, "bytes": size}, as_json)


def _tables(learner: Any, rows: Any, proba: bool, counted: list[int]) -> Iterator[dict[str, Any]]:
    """The columns of the output, a block at a time."""
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


def _columns(predicted: Any) -> dict[str, Any]:
    """One column, or as many as the model has targets."""
    if predicted.ndim == 1:
        return {"prediction": predicted}
    return {f"prediction_{number}": column for number, column in enumerate(predicted.T)}


def _write_csv(tables: Iterator[dict[str, Any]], file: BinaryIO) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    for number, table in enumerate(tables):
        if not number:
            writer.writerow(table)
        writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    text.detach()


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
