"""The README's code runs and prints what the README says it prints."""

import re
from pathlib import Path

from markdown_examples import examples, run
from reproduction import spec
from reproduction.markdown import markdown
from reproduction.report import opening
from reproduction.store import Results

README = Path(__file__).parents[2] / "README.md"
REPRODUCTION = README.parent / "docs" / "reproduction"


def test_examples_print_what_is_printed_beside_them():
    assert sum(bool(output) for _, output in examples(README)) >= 4
    run(README)


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        if "://" not in target:
            assert (README.parent / target).exists(), target


def test_verdicts_are_those_of_the_results():
    """What the README and the report say first, from the results that stand beside it."""
    specs = [spec.load(name) for name in spec.names()]
    told = markdown(opening(specs, Results(REPRODUCTION)))
    lines = [line for line in told.splitlines() if line and not line.startswith("#")]
    assert len(lines) > len(specs)
    report, readme = (path.read_text() for path in (REPRODUCTION / "README.md", README))
    for line in lines:
        assert line in report
        assert line.replace("](#", "](docs/reproduction/README.md#") in readme
