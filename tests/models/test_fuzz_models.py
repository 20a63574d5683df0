"""Whatever a model file contains, it is refused with a ValueError or it works."""

import pytest

from craftmaps.storage.fields import _storable
from tests.models.fuzz_models import fuzz, places, specimens

FUNCTIONS = {"ShiftInvariant"}  # what no file can hold, because it has functions of the user
PASSES = {"FirstRows", "PassSums", "RowsSeen", "Totals"}  # in checkpoints only, never in models


def test_every_class_that_a_file_can_hold_is_attacked():
    """A new class needs a model in `models` of fuzz_models.py, or a line in tests/cases.py."""
    attacked = {
        place.value
        for _, header, _ in specimens()
        for place in places(header)
        if place.key == "class"
    }
    ours = {name for name, kind in _storable.items() if kind.__module__.startswith("craftmaps.")}
    assert ours - attacked == FUNCTIONS | PASSES


def test_altered_models_are_refused_or_work():
    counts, findings = fuzz(150, seed=0, n_processes=1)
    assert not findings
    assert counts["refused"] > 50
    assert counts["used"] > 5


@pytest.mark.slow
def test_many_altered_models_are_refused_or_work(tmp_path_factory):
    """With loops that check their bounds, which one process compiles."""
    folder = tmp_path_factory.mktemp("numba")
    counts, findings = fuzz(20_000, seed=1, n_processes=1, cache_folder=folder)
    assert not findings
    assert sum(counts.values()) == 20_000
