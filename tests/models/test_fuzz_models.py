"""Whatever a model file contains, it is refused with a ValueError or it works."""

import pytest

from tests.models.fuzz_models import fuzz


def test_altered_models_are_refused_or_work():
    counts, findings = fuzz(300, seed=0)
    assert not findings
    assert counts["refused"] > 100
    assert counts["used"] > 10


@pytest.mark.slow
def test_many_altered_models_are_refused_or_work(tmp_path_factory):
    """With loops that check their bounds."""
    counts, findings = fuzz(20_000, seed=1, cache_folder=tmp_path_factory.mktemp("numba"))
    assert not findings
    assert sum(counts.values()) == 20_000
