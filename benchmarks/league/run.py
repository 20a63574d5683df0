"""Run learners on tables, each pair in a process of its own, and keep what was measured."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.league import results
from benchmarks.league.datasets import DATASETS, Dataset
from benchmarks.league.methods import METHODS, Method
from benchmarks.league.results import Result

ROOT = Path(__file__).parents[2]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
OUT_OF_MEMORY = ("MemoryError", "allocate memory", "bad_alloc", "Unable to allocate")


@dataclass(frozen=True)
class Conditions:
    """What all runs of one command share."""

    folder: Path
    file: Path
    max_rows: int | None = None
    time_limit: float | None = None
    memory_limit: float | None = None
    threads: int = 2
    seed: int = 0
    again: bool = False


def run(datasets: Sequence[Dataset], methods: Sequence[Method], under: Conditions) -> None:
    """Run all pairs that have no result yet, or all of them `again`."""
    for dataset in datasets:
        if not (under.folder / dataset.file).exists():
            print(f"{dataset.name}: skipped, there is no {dataset.file} in {under.folder}")
            continue
        for method in methods:
            known = results.read(under.file)
            old = results.find(known, dataset.name, method.name, under.max_rows, under.seed)
            if old is not None and not under.again:
                continue
            result = one_result(dataset, method, under, known)
            results.append(under.file, result)
            print(summary(result), flush=True)


def one_result(
    dataset: Dataset, method: Method, under: Conditions, known: Sequence[Result]
) -> Result:
    """What a run printed, or why it failed."""
    lightgbm = results.find(known, dataset.name, "lightgbm", under.max_rows, under.seed) or {}
    spent = lightgbm.get("fit_cpu_seconds")
    job = {
        "dataset": dataset.name,
        "method": method.name,
        "seed": under.seed,
        "threads": under.threads,
        "time_limit": under.time_limit,
        "memory_limit": under.memory_limit,
    }
    told = {
        **job,
        "folder": str(under.folder.resolve()),
        "max_rows": under.max_rows,
        "lightgbm_seconds": None if spent is None else spent / lightgbm["threads"],
    }
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.league.one_run", json.dumps(told)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | dict.fromkeys(THREAD_VARIABLES, str(under.threads)),
    )
    result = {**job, "task": dataset.task}
    for line in finished.stdout.splitlines():
        if line.startswith("{"):
            result |= json.loads(line)
    if finished.returncode:
        result["failure"] = reason(finished, under)
    return result


def reason(finished: subprocess.CompletedProcess, under: Conditions) -> str:
    """Why a run ended without a result, in one line."""
    if finished.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and under.time_limit:
        return f"took more than {under.time_limit:g} s of processor time"
    if under.memory_limit and any(sign in finished.stderr for sign in OUT_OF_MEMORY):
        return f"needed more than {under.memory_limit:g} GB of memory"
    lines = finished.stderr.strip().splitlines()
    return lines[-1][:300] if lines else f"ended with code {finished.returncode}"


def summary(result: Result) -> str:
    where = f"{result['dataset']}, {result['method']}"
    if "failure" in result:
        return f"{where}: {result['failure']}"
    loss = "" if result["log_loss"] is None else f", log-loss {result['log_loss']:.4f}"
    return f"{where}: error {result['error']:.4f}{loss}, {result['fit_cpu_seconds']:.1f} s"


def chosen(names: str | None, known: Sequence, kind: str) -> Sequence:
    """Those of `known` that a comma-separated list names, in the order of `known`; or all."""
    if names is None:
        return known
    wanted = names.split(",")
    for name in wanted:
        if name not in {one.name for one in known}:
            there = ", ".join(one.name for one in known)
            sys.exit(f"there is no {kind} {name!r}; there are {there}")
    return [one for one in known if one.name in wanted]


def datasets(names: str | None) -> Sequence[Dataset]:
    return chosen(names, DATASETS, "data set")


def methods(names: str | None) -> Sequence[Method]:
    return chosen(names, METHODS, "method")
