"""The report in docs/reproduction says what the results beside it say."""

from pathlib import Path

from reproduction import spec
from reproduction.markdown import markdown
from reproduction.report import opening
from reproduction.store import Results

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def test_the_kept_report_opens_with_the_verdicts_of_the_kept_results():
    specs = [spec.load(name) for name in spec.names()]
    told = markdown(opening(specs, Results(KEPT)))
    lines = [line for line in told.splitlines() if line and not line.startswith("#")]
    assert len(lines) > len(specs)
    report = (KEPT / "README.md").read_text().splitlines()
    assert set(lines) - set(report) == set()
