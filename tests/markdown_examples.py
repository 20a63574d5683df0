"""Code of Markdown pages, run as a reader would: from top to bottom, in one session.

A ```python block is run, and a ``` block right under it is what it prints. Blocks of other names
(```py for what needs a cluster, ```sh, ...) are only shown.
"""

import contextlib
import io
import re

import pytest

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```$)?", flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def examples(page):
    """Pairs of code and printed output, in order; "" where no output is shown."""
    return BLOCK.findall(page.read_text())


def run(page):
    """Run them; where they show output, it must be theirs.

    Words are compared exactly, numbers to within what another machine's rounding may change.
    """
    names = {"__name__": page.stem}
    for code, expected in examples(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        if expected:
            check_output(printed.getvalue(), expected)


def check_output(actual, expected):
    assert NUMBER.sub("#", actual) == NUMBER.sub("#", expected)
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in (actual, expected)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.01)
