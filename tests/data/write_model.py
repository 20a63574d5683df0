"""Write a model file of the present format, and what it predicts, beside this script."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, OnePassClassifier, Polynomial
from craftmaps.storage import array_file


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    feature_map = CraftMap(Polynomial(degree=5), n_components=100, random_state=0)
    model = OnePassClassifier(feature_map).fit(X, y)
    path = Path(__file__).with_name(f"model-{array_file.FORMAT_VERSION}.craft")
    if path.exists():
        raise SystemExit(f"{path} exists and is kept for ever; raise the format version first.")
    model.save(path)
    np.savez_compressed(
        path.with_suffix(".npz"),
        labels=model.predict(X[:200]),
        probabilities=model.predict_proba(X[:200]),
    )


if __name__ == "__main__":
    main()
