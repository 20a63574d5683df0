"""`craftmaps reproduce`: the papers' tables and figures, run again."""

import io
from pathlib import Path
from typing import Any, TextIO

import click

from craftmaps.cli import options


@click.command()
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "--quick/--full",
    default=True,
    help="Few sizes and one seed, in minutes (default), or all that is printed, in many hours.",
)
@click.option("--seeds", type=click.IntRange(1), help="Of each cell; default: by the table.")
@click.option(
    "--out", default="reproduction", show_default=True, type=click.Path(), help="The folder."
)
@click.option("--list", "listed", is_flag=True, help="Show the tables and figures, run nothing.")
@options.as_json
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    out: str,
    listed: bool,
    as_json: bool,
) -> None:
    """Run tables and figures of the papers again, and compare with what they print.

    NAME is one of --list, a file of your own that ends in .toml, or all. Each result is kept in the
    folder at once: the same command goes on where it was stopped. The report is index.html there,
    and README.md.

    \b
    Example:
      craftmaps reproduce --list
      craftmaps reproduce kk-figure-1 --out figures
    """
    if listed:
        _show_list(as_json)
        return
    if not names:
        raise click.UsageError("give the NAME of a table or figure, or all; --list shows them.")
    from reproduction import spec

    wanted = [one for name in names for one in (spec.names() if name == "all" else [name])]
    specs = [spec.load(name) for name in dict.fromkeys(wanted)]
    if any(panel.kind == "plot" for one in specs for panel in one.panels):
        _check_plots()
    from reproduction.report import write_report

    with options.stoppable(lambda: _way_on(out)):
        results = _run(specs, out, quick, seeds)
        page = write_report(specs, results, out, quick)
    _tell(specs, results, quick, page, as_json)


def _show_list(as_json: bool) -> None:
    from reproduction import spec

    titles = {name: spec.load(name).title for name in spec.names()}
    if as_json:
        options.report(titles, True)
        return
    width = max(map(len, titles)) + 2
    for name, title in titles.items():
        click.echo(f"{name:<{width}}{title}")


def _check_plots() -> None:
    """Complain before hours are spent on what cannot be drawn."""
    from craftmaps.diagnose.plots import new_figure

    new_figure()


def _run(specs: Any, out: str, quick: bool, seeds: int | None) -> Any:
    import sys
    from contextlib import redirect_stderr

    from craftmaps.learn.progress import Line, clock
    from reproduction.run import reproduce as make_runs

    with Line() as line, redirect_stderr(_NoTerminal(sys.stderr)):  # the fits' own lines are silent

        def tell(number: int, total: int, run: Any, elapsed: float) -> None:
            what = ", ".join(str(run[key]) for key in ("method", "data", "size") if key in run)
            left = f", {clock(elapsed / number * (total - number))} left" if number else ""
            line.write(f"run {number + 1} of {total}: {what}; {clock(elapsed)}{left}")

        return make_runs(specs, out, quick=quick, seeds=seeds, tell=tell)


def _way_on(out: str) -> str:
    from reproduction.store import Results

    return (
        f"stopped; {len(Results(out))} results are kept in {out}: run the same command again to "
        f"go on."
    )


class _NoTerminal(io.TextIOBase):
    """A stream that is not taken for a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text)


def _tell(specs: Any, results: Any, quick: bool, page: Path, as_json: bool) -> None:
    from reproduction.headlines import headlines
    from reproduction.report import summary

    found, told = summary(specs, results, quick), headlines(specs, results, quick)
    if as_json:
        facts = {"quick": quick, "results": str(results.path), "report": str(page)}
        facts |= {"headlines": [vars(one) for one in told], "tables": found}
        options.report(facts, True)
        return
    shown = [{name: value for name, value in row.items() if name != "title"} for row in found]
    options.table(shown)
    for one in told:
        click.echo(f"\n{one.word}: {one.text}")
    click.echo(f"\nThe report is in {page}.")
