"""The results file: a line of JSON for each run, where a later line replaces an earlier one."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def read(path: Path) -> list[Result]:
    """The results of a file, one for each table, size, learner and seed: the latest."""
    if not path.exists():
        return []
    latest = {}
    for line in path.read_text().splitlines():
        result = json.loads(line)
        key = (result["dataset"], result.get("max_rows"), result["method"], result["seed"])
        latest[key] = result
    return list(latest.values())


def append(path: Path, result: Result) -> None:
    with path.open("a") as file:
        file.write(json.dumps(result) + "\n")


def find(
    results: Iterable[Result], dataset: str, method: str, max_rows: int | None, seed: int
) -> Result | None:
    """The result of that run. A table with fewer rows than `max_rows` was run in whole."""
    for result in results:
        same = (result["dataset"], result["method"], result["seed"]) == (dataset, method, seed)
        if same and result.get("max_rows") == max_rows:
            return result
        whole = result.get("max_rows") is None and max_rows is not None
        if same and whole and result.get("n_train", max_rows) <= max_rows:
            return result
    return None
