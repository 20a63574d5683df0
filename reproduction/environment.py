"""Where a result was made: machine, versions, commit."""

import functools
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = ("craftmaps", "numpy", "scipy", "scikit-learn", "numba")


@functools.cache
def environment() -> dict[str, Any]:
    """CPU, threads, versions, and the commit of the checkout."""
    return {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "threads": max((pool["num_threads"] for pool in threadpool_info()), default=1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "commit": _commit(),
    }


def cpu() -> str:
    """The name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        if names:
            return names[0].split(":")[1].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    git = ["git", "-C", str(Path(__file__).parents[1])]
    try:
        found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", "src", "reproduction"],
            capture_output=True,
            text=True,
        )
    except OSError:
        return None
    if found.returncode:
        return None
    return found.stdout.strip() + (" with changes" if changed.stdout.strip() else "")
