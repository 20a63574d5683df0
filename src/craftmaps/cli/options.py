"""Options and reports that several commands share."""

import csv
import json
import os
import shlex
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from craftmaps.cli.names import Name, formats, kernels, scalings


class StoppedError(Exception):
    """Raised when Ctrl-C stops a command; the text says how to continue."""


@contextmanager
def stoppable(way_on: Callable[[], str]) -> Iterator[None]:
    """Make Ctrl-C raise StoppedError with the text of `way_on`, even if libraries change it.

    For example, NumPy drops a KeyboardInterrupt that arrives while it compares structured arrays,
    and raises a TypeError about their types.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.default_int_handler(number, frame)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so under nohup
    if usual:
        signal.signal(signal.SIGINT, ask)
    try:
        yield
    except BaseException as error:
        if asked or isinstance(error, KeyboardInterrupt):
            raise StoppedError(way_on()) from None
        raise
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)


Decorator = Callable[[Any], Any]

data = click.argument("data", nargs=-1, required=True)
model = click.argument("model", type=click.Path())
target = click.option(
    "--target",
    metavar="COLUMN",
    help="The column to predict; for .npz the name of an array, for .npy a number or a second "
    "file. Svmlight files need none.",
)
weight = click.option("--weight", metavar="COLUMN", help="The column of sample weights.")
as_json = click.option("--json", "as_json", is_flag=True, help="Report as JSON.")


def output(text: str) -> Decorator:
    """Return the option for the output file."""
    return click.option("-o", "--output", required=True, type=click.Path(), help=text)


def check_target(target: str | None, data: tuple[str, ...], format: str | None) -> None:
    """Raise an error unless the column of targets is named; svmlight files do not need it."""
    from craftmaps.scale.files.paths import format_of

    if target is None and (format or format_of(list(data))) != "svmlight":
        raise click.UsageError("name the column of targets: --target COLUMN.")


def check_output(
    path: str, suffixes: tuple[str, ...] = (), option: str = "-o", data: tuple[str, ...] = ()
) -> None:
    """Raise an error, before any work is done, unless a file can be written there.

    It must not be one of the files of `data`.
    """
    if suffixes and not path.lower().endswith(suffixes):
        raise click.UsageError(
            f"{option} must be a file that ends in {' or '.join(suffixes)}, got {path}."
        )
    from craftmaps.storage.atomic import check_place

    check_place(path)
    if os.path.exists(path) and any(os.path.samefile(path, one) for one in _files(data)):
        raise click.UsageError(
            f"{option} would overwrite {path}, which is read: name another file."
        )
    check_folder(Path(os.path.realpath(path)).parent)


def _files(data: tuple[str, ...]) -> list[str]:
    """Return the files of folders and patterns that exist."""
    from craftmaps.scale.files.paths import expanded

    return [file for file in expanded(data, known_only=False) if os.path.exists(file)]


def check_folder(folder: Path) -> None:
    """Raise an error unless a folder is writable, which is tested by writing a file."""
    if not folder.is_dir():
        raise click.UsageError(f"there is no folder {folder} to write to.")
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))
    except OSError as error:
        raise click.UsageError(f"nothing can be written to {folder}: {error.strerror}.") from error


def together(*options: Decorator) -> Decorator:
    """Combine several options into one decorator, in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


READING = ("format", "columns", "decimal", "encoding", "no_header", "skip_bad_rows")
reading = together(
    click.option("--format", type=Name(formats), help="File format; default: from the suffix."),
    click.option("--columns", metavar="A,B,...", help="The columns to use; default: all."),
    click.option(
        "--decimal",
        type=click.Choice((".", ",")),
        default=".",
        help="The decimal separator of CSV files; default: a point.",
    ),
    click.option(
        "--encoding",
        default="utf-8",
        help="The encoding of CSV files, such as latin-1 or utf-16; default: utf-8.",
    ),
    click.option("--no-header", is_flag=True, help="CSV files have no line of column names."),
    click.option("--skip-bad-rows", is_flag=True, help="Leave out rows that cannot be read."),
)

kernel = together(
    click.option("--kernel", type=Name(kernels), help="The kernel to approximate."),
    click.option("--degree", type=click.IntRange(1), help="Degree of the poly kernel; default: 3."),
    click.option("--gamma", help="Factor in the kernel: a number, scale or median."),
    click.option("--coef0", type=float, help="Constant of the poly kernel; default: 1."),
)

PARTS_OF_A_MAP = ("kernel", "degree", "gamma", "coef0", "map_name", "scale", "unit_norm")
_OLD_SCALINGS = ("centre", "deviation", "range", "maximum")  # the library warns about them

scaling = together(
    click.option(
        "--scale",
        type=Name(scalings, _OLD_SCALINGS),
        help="How to scale each column: not at all, to mean 0, to mean 0 and deviation 1, to "
        "deviation 1, to [0, 1], to [-1, 1], to a normal distribution.",
    ),
    click.option(
        "--unit-norm/--no-unit-norm", default=None, help="Scale rows to length 1, or not."
    ),
)


def listed(words: tuple[str, ...]) -> list[str]:
    """Return the distinct names in an option that may be repeated, with commas between names.

    A name that contains a comma is in double quotes.
    """
    rows = csv.reader(words, skipinitialspace=True)
    names = (name.strip() for row in rows for name in row)
    return [name for name in dict.fromkeys(names) if name]


def shell_word(name: str) -> str:
    """Return the name of a column as `listed` takes it, in quotes for a shell if need be."""
    return shlex.quote('"' + name.replace('"', '""') + '"' if "," in name else name)


def encoding(model: Any) -> dict[str, Any]:
    """Describe the encoding of each column, if a fitted model takes tables."""
    encoder = getattr(model, "encoder_", None)
    if encoder is None or not encoder.columns_:
        return {}
    became = {
        column.name: {"kind": column.kind, "as": column.described, "columns": len(column.names)}
        for column in encoder.columns_
    }
    for name, reason in encoder.dropped_.items():
        became[name] = {"kind": "dropped", "as": reason, "columns": 0}
    return {"encoding": {name: became[name] for name in encoder.feature_names_in_}}


def report(facts: dict[str, Any], as_json: bool) -> None:
    """Print facts as one JSON object, or as one line each."""
    if as_json:
        click.echo(json.dumps(facts))
        return
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        if value is not None:
            click.echo(f"{name.replace('_', ' ') + ':':<{width}}{_readable(value)}")


def table(rows: list[dict[str, Any]]) -> None:
    """Print rows with equal keys as an aligned table."""
    cells = [[name.replace("_", " ") for name in rows[0]]]
    cells += [[_readable(value) for value in row.values()] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        first, *rest = zip(line, widths, strict=True)
        click.echo(first[0].ljust(first[1]) + "".join(c.rjust(w + 2) for c, w in rest))


def _readable(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | list):
        return str(value)
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:10]))
        return shown + (f", ... ({len(value)})" if len(value) > 10 else "")
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
