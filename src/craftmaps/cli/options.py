"""Options that several commands share, and the way in which all of them report."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click


class Stopped(Exception):
    """By Ctrl-C; the text says how to go on."""


@contextmanager
def stoppable(way_on: Callable[[], str]) -> Iterator[None]:
    """Make Ctrl-C raise Stopped with what `way_on` says, whatever error becomes of it on the way.

    NumPy for one drops a KeyboardInterrupt that comes while it compares structured arrays, and
    raises a TypeError about their types.
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
            raise Stopped(way_on()) from None
        raise
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)


Decorator = Callable[[Any], Any]
KERNELS = ("poly", "exp", "rbf", "laplacian", "cauchy", "matern")
MAPS = ("craft", "maclaurin", "tensorsketch", "fourier", "nystroem")
FORMATS = ("csv", "parquet", "npy", "npz", "svmlight")

data = click.argument("data", nargs=-1, required=True)
model = click.argument("model", type=click.Path())
target = click.option(
    "--target",
    metavar="COLUMN",
    help="The column to predict; for .npz the name of an array, for .npy a number or a second "
    "file. Svmlight files need none.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Report as JSON.")


def output(text: str) -> Decorator:
    """The file to write."""
    return click.option("-o", "--output", required=True, type=click.Path(), help=text)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


reading = together(
    click.option("--format", type=click.Choice(FORMATS), help="If suffixes do not tell it."),
    click.option("--columns", metavar="A,B,...", help="The columns to learn from; default: all."),
    click.option("--no-header", is_flag=True, help="CSV files begin with a row, and not names."),
    click.option("--skip-bad-rows", is_flag=True, help="Leave rows out that cannot be read."),
)

kernel = together(
    click.option("--kernel", type=click.Choice(KERNELS), help="What is approximated."),
    click.option("--degree", type=click.IntRange(1), help="Of the kernel poly; default: 3."),
    click.option("--gamma", help="Factor in the kernel: a number, or scale or median for rbf ..."),
    click.option("--coef0", type=float, help="Constant in the kernel poly; default: 1."),
)

SCALINGS = ("none", "center", "standard", "std", "minmax", "maxabs")
OLD_SCALINGS = ("centre", "deviation", "range", "maximum")  # understood, with a warning

scaling = together(
    click.option(
        "--scale",
        type=click.Choice((*SCALINGS, *OLD_SCALINGS)),
        metavar=f"[{'|'.join(SCALINGS)}]",
        help="What to do to each column: nothing, mean 0, mean 0 and deviation 1, deviation 1, to "
        "[0, 1], to [-1, 1].",
    ),
    click.option(
        "--unit-norm/--no-unit-norm", default=None, help="Bring rows to length 1, or not."
    ),
)


def report(facts: dict[str, Any], as_json: bool) -> None:
    """One JSON object, or a line for each fact."""
    if as_json:
        click.echo(json.dumps(facts))
        return
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        if value is not None:
            click.echo(f"{name.replace('_', ' ') + ':':<{width}}{_readable(value)}")


def table(rows: list[dict[str, Any]]) -> None:
    """Rows of equal keys, aligned."""
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
