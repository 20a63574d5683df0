"""Run all benchmarks (or those named on the command line) and write RESULTS.md.

Each module `bench_*.py` of this folder has a function `report() -> str` that measures and returns
a section of Markdown. Sections of modules that were not run are kept.
"""

import importlib
import re
import sys
from pathlib import Path

from benchmarks.harness import machine

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"


def main(names: list[str]) -> None:
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    for name in names:
        if name not in known:
            sys.exit(f"there is no benchmark {name!r}; there are {', '.join(known)}")
    sections = kept_sections()
    for name in names or known:
        print(f"== {name}", flush=True)
        report = importlib.import_module(f"benchmarks.bench_{name}").report()
        sections[name] = f"Measured on {machine()}.\n\n{report.strip()}"
        print(report, flush=True)
    text = "# Benchmarks\n\nWritten by `make benchmarks`. Compare ratios, not seconds.\n"
    for name in sorted(sections):
        text += f"\n<!-- {name} -->\n{sections[name]}\n"
    RESULTS.write_text(text)


def kept_sections() -> dict[str, str]:
    if not RESULTS.exists():
        return {}
    parts = re.split(r"^<!-- (\w+) -->\n", RESULTS.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


if __name__ == "__main__":
    main(sys.argv[1:])
