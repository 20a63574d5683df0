"""Random Maclaurin and TensorSketch against scikit-learn's PolynomialCountSketch."""

import subprocess
import sys

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import PolynomialCountSketch

from benchmarks.harness import alternating, peak_bytes, table
from craftmaps import Polynomial, RandomMaclaurin, TensorSketch


def report() -> str:
    rng = np.random.default_rng(0)
    dense = rng.random((5000, 784), dtype=np.float32)
    thin = sparse.random_array(
        (5000, 5000), density=0.01, format="csr", dtype=np.float32, random_state=0
    )
    rows = [
        compare("TensorSketch, dense 5000 x 784", TensorSketch, dense, 4, 2048, "8 x"),
        compare("TensorSketch, 5000 x 5000 at 1 %", TensorSketch, thin, 4, 2048, "40 x"),
        compare("RandomMaclaurin, dense 5000 x 784", RandomMaclaurin, dense, 7, 4096, "80 x"),
    ]
    header = ["map", "degree", "features", "ours, us/row", "theirs, us/row", "ratio", "bar"]
    text = "## Random Maclaurin and TensorSketch against PolynomialCountSketch\n\n"
    text += "Rows per second of `transform`, float32 in, all threads.\n\n" + table(header, rows)
    text += "\n### Memory and starting\n\n" + table(["what", "measured", "bar"], others())
    return text


def compare(name, ours, X, degree, n_components, bar):
    mine = ours(Polynomial(degree), n_components, random_state=0).fit(X)
    theirs = PolynomialCountSketch(
        degree=degree, coef0=1, n_components=n_components, random_state=0
    ).fit(X)
    times = alternating(
        {"mine": lambda: mine.transform(X), "theirs": lambda: theirs.transform(X)}, repeats=9
    )
    us = {key: 1e6 * value / X.shape[0] for key, value in times.items()}
    ratio = us["theirs"] / us["mine"]
    return [
        name,
        degree,
        n_components,
        f"{us['mine']:.1f}",
        f"{us['theirs']:.0f}",
        f"{ratio:.0f} x",
        bar,
    ]


PEAK = """
import numpy as np
from craftmaps import *
X = np.random.default_rng(0).random(({rows}, {columns}), dtype=np.float32)
feature_map = {map}.fit(X[:500])
feature_map.transform(X[:64])
open("/proc/self/clear_refs", "w").write("5")  # the high-water mark starts anew
before = resident("VmRSS")
Z = feature_map.transform(X)
print(resident("VmHWM") - before - Z.nbytes)
"""

FIRST = """
import time
import numpy as np
from craftmaps import *
X = np.random.default_rng(0).random((100, 784), dtype=np.float32)
feature_map = {map}.fit(X)
times = []
for _ in range(2):
    start = time.perf_counter()
    feature_map.transform(X)
    times.append(time.perf_counter() - start)
print(times[0] - times[1])
"""

IMPORT = (
    "import time; start = time.perf_counter(); import {what}; print(time.perf_counter() - start)"
)


def others():
    cases = {
        "RandomMaclaurin(Polynomial(7), 4096)": (20000, 784),
        "RandomMaclaurin(Polynomial(20), 16384)": (4000, 2000),
        "TensorSketch(Polynomial(4), 2048)": (20000, 784),
        "CraftMap(Polynomial(7), 4096)": (20000, 784),
    }
    for code, (rows, columns) in cases.items():
        extra = peak_bytes(PEAK.format(map=code, rows=rows, columns=columns)) / 2**20
        yield [
            f"peak of `{code}.transform` beyond its output, {columns} columns",
            f"{extra:.1f} MB",
            "a few MB",
        ]
    for code in ("RandomMaclaurin()", "TensorSketch()", "CraftMap()"):
        run(FIRST.format(map=code))
        late = min(run(FIRST.format(map=code)) for _ in range(3))
        yield [
            f"first `{code}.transform` of a process after the second, compiled before",
            f"{late:.2f} s",
            "1 s",
        ]
    both = min(run(IMPORT.format(what="sklearn, numba")) for _ in range(5))
    ours = min(run(IMPORT.format(what="craftmaps")) for _ in range(5))
    yield ["`import craftmaps` beyond `import sklearn, numba`", f"{ours - both:.2f} s", "0.3 s"]


def run(program: str) -> float:
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(result.stdout.split()[-1])
