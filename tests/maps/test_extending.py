"""The map that the page on extending the library adds from outside of the package."""

import subprocess
import sys
from pathlib import Path

import pytest

from markdown_examples import examples

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
CHECKS = """
import numpy as np
from own_map import ReluFeatures
from sklearn.utils.estimator_checks import check_estimator

import craftmaps

check_estimator(ReluFeatures(16, random_state=0), on_skip=None)

X = np.random.default_rng(0).normal(size=(60, 5))
fitted = ReluFeatures(20_000, random_state=0).fit(X)
Z = fitted.transform(X)
lengths = np.linalg.norm(X, axis=1)
angles = np.arccos(np.clip(X @ X.T / np.outer(lengths, lengths), -1, 1))
kernel = np.outer(lengths, lengths) * (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / np.pi
assert np.abs(Z @ Z.T - kernel).max() < 0.1 * kernel.max()

fitted.save("map.craft")
np.testing.assert_array_equal(craftmaps.load("map.craft").transform(X), Z)

onnxruntime = __import__("onnxruntime")
craftmaps.export_onnx(fitted, "map.onnx")
session = onnxruntime.InferenceSession("map.onnx")
(found,) = session.run(None, {"X": X.astype(np.float32)})
np.testing.assert_allclose(found, Z, atol=1e-5)

fitted.weights_ = fitted.weights_[:, 1:]
fitted.save("wrong.craft")
try:
    craftmaps.load("wrong.craft")
except ValueError as error:
    assert "weights_ has another shape" in str(error)
else:
    raise AssertionError("a file whose arrays do not fit was accepted")
"""


@pytest.mark.skipif(not PAGE.exists(), reason="the folder docs is not here")
def test_a_map_from_outside_keeps_all_conventions(tmp_path):
    """In a process of its own, because the name of a class in model files is taken only once."""
    pytest.importorskip("onnxruntime")
    (tmp_path / "own_map.py").write_text(examples(PAGE)[0][0])
    command = [sys.executable, "-W", "ignore::UserWarning", "-c", CHECKS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
