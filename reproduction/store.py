"""Results on disk: one line of JSON for each run, so that a run that stopped goes on."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reproduction.spec import Run, key_of

FILE = "results.jsonl"


class Results:
    """The results of a folder.

    Parameters
    ----------
    folder : path
        Made when the first result is added.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE
        self._rows: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            for row in self._read():
                self._rows[key_of(row["run"])] = row
        self._newest = max(map(_version, self._rows.values()), default=[])

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, run: Run) -> bool:
        return "values" in self._rows.get(key_of(run), {})

    def add(
        self,
        run: Run,
        *,
        values: dict[str, Any] | None = None,
        skipped: str | None = None,
        **more: Any,
    ) -> None:
        """Keep the result of a run, or the reason for which there is none, on disk at once."""
        row = {"run": run, **({"skipped": skipped} if values is None else {"values": values})}
        row |= more
        self._newest = max(self._newest, _version(row))
        self._rows[key_of(run)] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def of(self, run: Run) -> list[dict[str, Any]]:
        """The rows of all seeds of a run that has none."""
        found: list[dict[str, Any]] = []
        while (row := self._rows.get(key_of(run | {"seed": len(found)}))) is not None:
            found.append(row)
        return [row for row in found if "values" in row]

    def is_older(self, run: Run) -> bool:
        """Whether a learner of an earlier version of the package chose alpha in a run without seed.

        A run without alpha had no such learner, or was of one whose alpha was given.
        """
        return any(
            "alpha" in row["values"] and _version(row) < self._newest for row in self.of(run)
        )

    def skipped(self, run: Run) -> str | None:
        """Why there is no result of a run without seed; None if there is one, or was none asked."""
        row = self._rows.get(key_of(run | {"seed": 0}), {})
        reason: str | None = row.get("skipped")
        return reason

    def rows(self) -> list[dict[str, Any]]:
        """All of them, in the order in which they came."""
        return list(self._rows.values())

    def _read(self) -> Iterator[dict[str, Any]]:
        lines = self.path.read_bytes().splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line.decode())
            except (ValueError, RecursionError):
                if number == len(lines):  # the last line may have been cut off by a stop
                    self.path.write_bytes(b"".join(one + b"\n" for one in lines[:-1]))
                    return
                row = None
            if not _is_result(row):
                raise ValueError(
                    f"{self.path}, line {number} is not a result; remove the line, or give another "
                    f"folder."
                )
            yield row


def _version(row: dict[str, Any]) -> list[int]:
    """The version of the package that made a row; [] if it is not known."""
    versions = (row.get("environment") or {}).get("versions", {})
    return [int(part) for part in re.findall(r"\d+", versions.get("craftmaps", ""))]


def _is_result(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("run"), dict):
        return False
    return isinstance(row.get("values"), dict) or "skipped" in row
