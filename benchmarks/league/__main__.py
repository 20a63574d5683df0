"""The commands `run` and `report`."""

import argparse
import os
import sys
from pathlib import Path

from benchmarks.league.run import Conditions, datasets, methods, run

RESULTS = Path(__file__).parent / "results.jsonl"
PAGE = Path(__file__).parents[2] / "docs" / "league.md"


def main(arguments: list[str]) -> None:
    given = parser().parse_args(arguments)
    if given.command == "report":
        from benchmarks.league.report import write_report

        write_report(given.results, given.page)
        return
    if "CRAFTMAPS_DATA" not in os.environ:
        sys.exit("the environment variable CRAFTMAPS_DATA has to name the folder of the data sets")
    conditions = Conditions(
        folder=Path(os.environ["CRAFTMAPS_DATA"]),
        file=given.results,
        max_rows=given.max_rows,
        time_limit=given.time_limit,
        memory_limit=given.memory_limit,
        threads=given.threads,
        seed=given.seed,
        again=given.again,
    )
    run(datasets(given.datasets), methods(given.methods), conditions)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks.league", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="run what has no result yet")
    one.add_argument("--datasets", help="names, separated by commas; default: all")
    one.add_argument("--methods", help="names, separated by commas; default: all")
    one.add_argument("--max-rows", type=int, help="train on so many rows at most, drawn at random")
    one.add_argument("--time-limit", type=float, help="seconds of processor time for each run")
    one.add_argument("--memory-limit", type=float, help="gigabytes of address space for each run")
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--again", action="store_true", help="replace results that are there")
    two = commands.add_parser("report", help="write the page of the site and its picture")
    two.add_argument("--page", type=Path, default=PAGE, help="the Markdown file to write")
    for command in (one, two):
        command.add_argument("--results", type=Path, default=RESULTS)
    return top


if __name__ == "__main__":
    main(sys.argv[1:])
