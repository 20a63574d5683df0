"""The README's code runs and prints what the README says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def examples():
    """Pairs of code and printed output, in order."""
    return re.findall(r"```python\n(.*?)```\n```\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_examples_print_what_is_printed_beside_them():
    """Words are compared exactly, numbers to within what another machine's rounding may change."""
    assert len(examples()) >= 4
    names = {}
    for code, expected in examples():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)  # each example goes on where the one before it ended
        actual = printed.getvalue()
        assert NUMBER.sub("#", actual) == NUMBER.sub("#", expected)
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (actual, expected)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.01)


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        if "://" not in target:
            assert (README.parent / target).exists(), target
