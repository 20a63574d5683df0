"""The report in docs/reproduction says what the results beside it say."""

from pathlib import Path

from reproduction import spec
from reproduction.report import opening
from reproduction.store import Results

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def test_the_kept_report_opens_with_the_verdicts_of_the_kept_results():
    specs = [spec.load(name) for name in spec.names()]
    told = opening(specs, Results(KEPT))
    assert len(told) > 3
    report = (KEPT / "README.md").read_text()
    assert [block for block in told if block not in report] == []
