"""Test errors at the sizes of CRAFT Table 1 a, b, c and e, beside the printed ones."""

from pathlib import Path

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.harness import DATA, table
from craftmaps import CraftMap, OnePassClassifier, Polynomial

PRINTED = {  # Hamid et al. 2014, Table 1: sizes, CM RFM, CM TS
    ("mnist", 7): [
        (300, 9.5, 12.6),
        (400, 7.7, 10.8),
        (500, 7.2, 8.9),
        (600, 6.6, 7.9),
        (700, 5.9, 7.3),
        (2**12, 3.09, 2.90),
        (2**13, 2.18, 2.20),
        (2**14, 1.79, 1.75),
    ],
    ("usps", 5): [
        (2**10, 5.68, 5.77),
        (2**11, 5.03, 5.03),
        (2**12, 4.48, 4.28),
        (2**13, 4.28, 4.23),
        (2**14, 4.03, 3.93),
    ],
    ("pendigits", 9): [
        (2**6, 7.43, 8.03),
        (2**7, 3.57, 3.80),
        (2**8, 2.28, 2.37),
        (2**9, 1.97, 2.05),
        (2**10, 1.57, 1.74),
    ],
}


def report() -> str:
    if not DATA:
        return "## Test errors at the sizes of CRAFT Table 1\n\nSkipped: CRAFTMAPS_DATA is not set."
    text = "## Test errors at the sizes of CRAFT Table 1\n\n"
    text += (
        "Per cent, mean (standard deviation) over seeds, in brackets what the paper prints. Unit-"
    )
    text += "norm rows, D = 8E, one-vs-rest ridge, alpha by generalised cross-validation on the "
    text += "training rows. USPS is shifted from [-1, 1] to be non-negative before the unit norm.\n"
    for (name, degree), lines in PRINTED.items():
        rows = list(errors(name, degree, lines))
        header = ["E", "seeds", "CraftMap (CM RFM)", "on TensorSketch (CM TS)", "principal"]
        text += f"\n### {name}, (1 + t)^{degree}\n\n" + table(header, rows)
    return text


def load(name):
    with np.load(Path(DATA) / f"{name}.npz") as data:
        parts = [data[key] for key in ("X_train", "y_train", "X_test", "y_test")]
    shift = 1 if name == "usps" else 0
    parts[0], parts[2] = (
        normalize(X.reshape(len(X), -1).astype(np.float32) + shift) for X in parts[::2]
    )
    return parts


def errors(name, degree, lines):
    data = load(name)
    for size, rfm, ts in lines:
        seeds = 3 if size <= 1024 else 2 if size <= 4096 else 1
        cells = []
        for kind, printed in (("maclaurin", rfm), ("tensor-sketch", ts), ("principal", None)):
            if kind != "maclaurin" and size > 1024:  # these take minutes
                cells.append("")
                continue
            found = [fit(data, degree, size, kind, seed) for seed in range(seeds)]
            spread = f" ({np.std(found, ddof=1):.2f})" if seeds > 1 else ""
            beside = f" [{printed}]" if printed else ""
            cells.append(f"{np.mean(found):.2f}{spread}{beside}")
        print(name, size, cells, flush=True)
        yield [size, seeds, *cells]


def fit(data, degree, size, kind, seed):
    X, y, X_test, y_test = data
    up, down = ("maclaurin", "principal") if kind == "principal" else (kind, "fold")
    feature_map = CraftMap(
        Polynomial(degree), size, n_up=8 * size, up=up, down=down, random_state=seed
    )
    model = OnePassClassifier(feature_map).fit(X, y)
    return 100 * (1 - model.score(X_test, y_test))
