"""The README's code runs and prints what the README says it prints."""

import re
from pathlib import Path

from markdown_examples import examples, run

README = Path(__file__).parents[2] / "README.md"


def test_examples_print_what_is_printed_beside_them():
    assert any(output for _, output in examples(README))
    run(README)


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        if "://" not in target:
            assert (README.parent / target).exists(), target
