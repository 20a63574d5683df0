"""Make the runs of a specification, and go on where an earlier call stopped."""

import functools
import importlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reproduction.datasets import Missing, load
from reproduction.environment import environment
from reproduction.spec import Run, Spec, key_of
from reproduction.store import Results

Told = Callable[[int, int, Run, float], None]


def reproduce(
    specs: Sequence[Spec],
    folder: str | Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    tell: Told | None = None,
) -> Results:
    """Make all runs that are not in the folder yet.

    What lacks its data, or the memory that it says it needs, is skipped with that reason. Anything
    else that goes wrong stops here, with the run in front of the reason; what was made is kept.

    Parameters
    ----------
    specs : sequence of Spec
    folder : path
        Where results are kept, one after another.
    quick : bool, default=False
        Few sizes and one seed.
    seeds : int or None, default=None
        Seeds of each cell; None takes what the specification says.
    tell : function or None, default=None
        Called before each run, with its number, how many are to be made, the run, and the seconds
        since the start.
    """
    results = Results(folder)
    asked = [run for spec in specs for run in spec.runs(quick, seeds)]
    runs = list({key_of(run): run for run in asked if run not in results}.values())
    start = time.perf_counter()
    for number, run in enumerate(runs):
        if tell is not None:
            tell(number, len(runs), run, time.perf_counter() - start)
        _make(run, results)
    return results


def _make(run: Run, results: Results) -> None:
    start = time.perf_counter()
    name = run.get("data")
    try:
        checksum = None if name is None else _checksum(name, os.environ.get("CRAFTMAPS_DATA"))
        values = measure(run)
    except (Missing, MemoryError) as error:
        results.add(run, skipped=str(error))
        return
    except Exception as error:
        what = ", ".join(f"{name} {value}" for name, value in run.items())
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"the run ({what}) failed, {reason}") from error
    took = time.perf_counter() - start
    results.add(run, values=values, seconds=took, data_sha256=checksum, environment=environment())


@functools.cache
def _checksum(name: str, folder: str | None) -> str:
    """That of a data set; kept, because it takes reading all of it."""
    return load(name).sha256


def measure(run: Run) -> dict[str, Any]:
    """The measured values of one run."""
    module = importlib.import_module(f"reproduction.{run['measure']}")
    values: dict[str, Any] = module.measure(run)
    return values
