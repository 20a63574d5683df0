"""The command `python -m reproduction`: its options, its progress, and what becomes of errors."""

import io
import sys
import warnings
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, TextIO

import click
from sklearn.exceptions import ConvergenceWarning

from craftmaps.cli import options
from craftmaps.learn.progress import Line, clock
from craftmaps.plots import new_figure
from reproduction import spec
from reproduction.headlines import headlines
from reproduction.report import summary, write_report
from reproduction.run import reproduce as make_runs
from reproduction.store import Results


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "--quick/--full",
    default=True,
    help="Few sizes and one seed, in minutes (default), or all that is published, in many hours.",
)
@click.option("--seeds", type=click.IntRange(1), help="Seeds of each cell; default: by the table.")
@click.option(
    "--out",
    default="reproduction-output",
    show_default=True,
    type=click.Path(),
    help="The folder of results and report.",
)
@click.option("--report-only", is_flag=True, help="Report the results of the folder, run nothing.")
@click.option("--list", "listed", is_flag=True, help="Show the tables and figures, run nothing.")
@options.as_json
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    out: str,
    report_only: bool,
    listed: bool,
    as_json: bool,
) -> None:
    """Run tables and figures of the papers again, and compare with the published values.

    NAME is a name that --list shows, a file of your own that ends in .toml, or all. Each result is
    written to the folder at once, so the same command continues where it was stopped. The report is
    README.md in the folder.

    \b
    Example:
      python -m reproduction --list
      python -m reproduction kk-figure-1 --out figures
    """
    if listed:
        _show_list(as_json)
        return
    if not names:
        raise click.UsageError("give the NAME of a table or figure, or all; --list shows them.")
    wanted = [one for name in names for one in (spec.names() if name == "all" else [name])]
    specs = [spec.load(name) for name in dict.fromkeys(wanted)]
    if any(panel.kind == "plot" for one in specs for panel in one.panels):
        new_figure()  # complains if Matplotlib is missing, before hours are spent

    with options.stoppable(lambda: _way_on(out)):
        results = Results(out) if report_only else _run(specs, out, quick, seeds)
        path = write_report(specs, results, out, quick)
    _tell(specs, results, quick, path, as_json)


def _show_list(as_json: bool) -> None:
    titles = {name: spec.load(name).title for name in spec.names()}
    if as_json:
        options.report(titles, True)
        return
    width = max(map(len, titles)) + 2
    for name, title in titles.items():
        click.echo(f"{name:<{width}}{title}")


def _run(specs: list[spec.Spec], out: str, quick: bool, seeds: int | None) -> Results:
    # fits write no progress of their own to a stream that is not a terminal
    with Line() as line, redirect_stderr(_NoTerminal(sys.stderr)):

        def tell(number: int, total: int, run: Any, elapsed: float) -> None:
            what = ", ".join(str(run[key]) for key in ("method", "data", "size") if key in run)
            left = f", {clock(elapsed / number * (total - number))} left" if number else ""
            line.write(f"run {number + 1} of {total}: {what}; {clock(elapsed)}{left}")

        return make_runs(specs, out, quick=quick, seeds=seeds, tell=tell)


def _way_on(out: str) -> str:
    return (
        f"stopped; {len(Results(out))} results are kept in {out}: run the same command again to "
        f"continue."
    )


class _NoTerminal(io.TextIOBase):
    """A stream that is not taken for a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text)


def _tell(specs: list[spec.Spec], results: Results, quick: bool, path: Path, as_json: bool) -> None:
    tables = summary(specs, results, quick)
    told = [] if quick else headlines(specs, results)
    if as_json:
        facts = {"quick": quick, "results": str(results.path), "report": str(path)}
        facts |= {"headlines": [vars(one) for one in told], "tables": tables}
        options.report(facts, True)
        return
    options.table(
        [{name: value for name, value in row.items() if name != "title"} for row in tables]
    )
    for one in told:
        click.echo(f"\n{one.word}: {one.text}")
    click.echo(f"\nThe report is in {path}.")


def main() -> None:
    """Run the command; exit code 2 is a user's mistake, 130 an interruption."""
    warnings.filterwarnings("ignore", category=ConvergenceWarning)  # results say what converged
    warnings.filterwarnings("ignore", "A network error occurred")  # a skipped run gives the reason
    try:
        reproduce.main(prog_name="python -m reproduction", standalone_mode=False)
    except options.StoppedError as error:
        _complain(str(error), 130)
    except (click.Abort, KeyboardInterrupt):
        _complain("stopped; nothing was written.", 130)
    except click.ClickException as error:
        _complain(error.format_message(), 2)
    except OSError as error:
        _complain(": ".join(str(part) for part in (error.strerror, error.filename) if part), 2)
    except (ValueError, ImportError, MemoryError) as error:
        _complain(str(error) or "there is not enough memory.", 2)


def _complain(message: str, code: int) -> None:
    click.echo(f"reproduction: {' '.join(message.split())}", err=True)
    sys.exit(code)
