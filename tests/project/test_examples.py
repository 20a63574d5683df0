"""The examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("view", "loss", "most"),
    [("gradients", "squared", 3.0), ("gradients", "log", 3.0), ("pixels", "squared", 6.0)],
)
def test_mnist_headline_on_the_digits(view, loss, most):
    """A linear ridge classifier errs on 6.7 per cent of these rows."""
    options = ["--quick", "--view", view, "--loss", loss]
    command = [sys.executable, EXAMPLES / "mnist_headline.py", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    printed = re.search(r"error on 719 rows not learned from: ([\d.]+) %", run.stdout)
    assert printed is not None, run.stdout
    assert float(printed[1]) < most
