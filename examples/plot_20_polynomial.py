"""
Four maps for a polynomial kernel
=================================

Four maps of the library approximate a polynomial kernel. They differ in their error for a number of
features, and in their time for sparse rows.
"""

# %%
# The errors are measured on the digits, with rows of length 1 and a kernel of degree five.

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, Nystroem, Polynomial, RandomMaclaurin, TensorSketch
from craftmaps.diagnose import gram_error

X = normalize(load_digits().data)
kernel = Polynomial(degree=5)
sizes = [64, 128, 256, 512, 1024]
errors = {
    kind.__name__: [
        gram_error(kind(kernel, size), X, "frobenius", n_rows=400, seeds=10).value for size in sizes
    ]
    for kind in (TensorSketch, RandomMaclaurin, CraftMap, Nystroem)
}
for name, values in errors.items():
    print(f"{name:<15}", np.round(values, 3))

# %%
# For the second panel, rows of 10,000 columns have between 10 and 1,000 non-zero entries.
# ``CraftMap`` rotates whole rows, so its time does not depend on the number of non-zero entries.

counts = [10, 30, 100, 300, 1000]
times = {"TensorSketch": [], "CraftMap": []}
for kind in (TensorSketch, CraftMap):
    for count in counts:
        rows = sparse.random(1000, 10_000, density=count / 10_000, format="csr", random_state=0)
        feature_map = kind(Polynomial(degree=3), 1024, random_state=0).fit(rows)
        feature_map.transform(rows[:10])  # compiles the loops
        start = time.process_time()
        feature_map.transform(rows)
        times[kind.__name__].append((time.process_time() - start) / 1000)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, values in errors.items():
    left.loglog(sizes, values, "o-", label=name)
left.set_xticks(sizes, [str(size) for size in sizes])
left.minorticks_off()
left.set_xlabel("features")
left.set_ylabel("relative error of kernel values")
left.legend(frameon=False)
for name, values in times.items():
    color = left.get_lines()[list(errors).index(name)].get_color()
    right.semilogx(counts, np.array(values) * 1e6, "o-", color=color, label=name)
right.set_ylim(bottom=0)
right.set_xlabel("non-zero entries of a row")
right.set_ylabel("CPU time per row in µs")
right.legend(frameon=False)
plt.show()

# %%
# ``Nystroem`` has the smallest error, because it takes landmarks from the rows. ``CraftMap`` is the
# best of the maps that do not look at the rows. ``TensorSketch`` is the fastest map for rows with
# few non-zero entries.
