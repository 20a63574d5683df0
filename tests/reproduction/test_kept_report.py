"""The report in docs/reproduction says what the results beside it say."""

from pathlib import Path

from reproduction import spec
from reproduction.report import LEAD, pages
from reproduction.store import Results

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def test_the_kept_report_is_that_of_the_kept_results():
    made = pages([spec.load(name) for name in spec.names()], Results(KEPT))
    assert set(made) == {LEAD, "craft.md", "de.md", "kk.md", "pp.md"}
    differ = [name for name, text in made.items() if (KEPT / name).read_text() != text]
    assert differ == []
