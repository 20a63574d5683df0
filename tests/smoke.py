"""What an installed craftmaps must do: `python smoke.py`, run outside of the repository."""

import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import craftmaps
from craftmaps import CraftMap, OnePassClassifier, Polynomial


def main():
    assert (files("craftmaps") / "py.typed").is_file()
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32) / 64
    feature_map = CraftMap(Polynomial(degree=3), n_components=256, random_state=0)
    model = OnePassClassifier(feature_map).fit(X[:1200], y[:1200])
    right = model.score(X[1200:], y[1200:])
    assert right > 0.9, right
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "digits.craft")
        model.save(path)
        assert (craftmaps.load(path).predict(X) == model.predict(X)).all()
        command = Path(sys.executable).parent / "craftmaps"
        for words in (["--version"], ["info", path]):
            done = subprocess.run([command, *words], capture_output=True, text=True, check=True)
            print(done.stdout.strip())
    print(
        f"craftmaps {craftmaps.__version__} in {Path(craftmaps.__file__).parent}: {right:.3f} right"
    )


if __name__ == "__main__":
    main()
