"""Files of earlier releases are read for ever, and give what they gave."""

from pathlib import Path

import numpy as np
import pytest

import craftmaps

FOLDER = Path(__file__).parents[1] / "data" / "0.1.0"
FILES = sorted(FOLDER.glob("*.craft"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_0_1_0_gives_what_it_gave(path):
    model = craftmaps.load(path)
    stored = np.load(path.with_suffix(".npz"))
    for method in stored.files:
        if method not in ("X", "y"):
            given = getattr(model, method)(stored["X"])
            np.testing.assert_allclose(given, stored[method], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["classifier", "regressor-folds"])
def test_a_resumable_file_of_0_1_0_takes_more_rows(name):
    model = craftmaps.load(FOLDER / f"{name}.craft")
    stored = np.load(FOLDER / f"{name}.npz")
    assert model.partial_fit(stored["X"], stored["y"]).n_samples_seen_ == 120
    assert np.isfinite(model.coef_).all()
