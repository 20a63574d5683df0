"""Timing, tables and the description of the machine that every report begins with."""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

from reproduction.environment import cpu

DATA = os.environ.get("CRAFTMAPS_DATA")


def seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Median time of `work`, after one call that is not counted (compilation, first touch)."""
    work()
    return statistics.median(once(work) for _ in range(repeats))


def once(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Time of a single call."""
    start = clock()
    work()
    return clock() - start


def alternating(
    works: dict[str, Callable[[], Any]],
    repeats: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median times of several works, taken in turns so that a noisy moment meets all of them.

    With time.process_time as `clock`, it is CPU time, which other processes of a busy machine
    change less.
    """
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(once(work, clock))
    return {name: statistics.median(values) for name, values in times.items()}


RESIDENT = """
import re
from pathlib import Path

def resident(field):  # ru_maxrss would include the process before this one
    found = re.search(field + r":\\s+(\\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024
"""


def peak_bytes(program: str) -> int:
    """Bytes that `program` prints last, run in a process of its own.

    It may call `resident("VmRSS")` and `resident("VmHWM")`: resident memory now, and at its most.
    """
    result = subprocess.run(
        [sys.executable, "-c", RESIDENT + program], capture_output=True, text=True, check=True
    )
    return int(result.stdout.split()[-1])


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def machine() -> str:
    """CPU, threads and versions, in one line."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{cpu()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"
