"""
One line instead of an SVC
==========================

An exact kernel machine compares every row with every other, so twice the rows take four times as
long, or more. A map and a linear learner look at each row once.
"""

# %%
# A task that a linear model cannot solve: six rings around each other, in ten dimensions.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from craftmaps import FourierFeatures, Gaussian, OnePassClassifier

rng = np.random.default_rng(0)


def rings(n_rows):
    """Rows whose class is the ring that their length falls into."""
    X = rng.normal(size=(n_rows, 10)).astype(np.float32)
    lengths = np.linalg.norm(X, axis=1)
    return X, np.searchsorted([2.3, 2.7, 3.0, 3.4, 3.8], lengths)


X_test, y_test = rings(2000)

# %%
# The line to replace, and the line that replaces it. The kernel is the same.

exact = SVC(kernel="rbf", gamma=0.05, C=100)
fast = OnePassClassifier(FourierFeatures(Gaussian(gamma=0.05), n_components=512, random_state=0))

# %%
# Both learn from more and more rows; the first fit of a process may compile, so one is thrown
# away.

fast.fit(*rings(100))
sizes = [500, 1000, 2000, 4000, 8000]
seconds = {"SVC": [], "OnePassClassifier": []}
errors = {"SVC": [], "OnePassClassifier": []}
for n_rows in sizes:
    X, y = rings(n_rows)
    for name, model in (("SVC", exact), ("OnePassClassifier", fast)):
        start = perf_counter()
        model.fit(X, y)
        seconds[name].append(perf_counter() - start)
        errors[name].append(1 - model.score(X_test, y_test))

# %%
# Time grows with the square of the rows for the one, and in proportion for the other. The errors
# stay together: what is lost by approximating the kernel is small beside what more rows bring.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name in seconds:
    left.loglog(sizes, seconds[name], "o-", label=name)
    right.semilogx(sizes, 100 * np.array(errors[name]), "o-", label=name)
left.set(xlabel="rows", ylabel="seconds to fit")
right.set(xlabel="rows", ylabel="wrong on test rows, %", ylim=(0, None))
for axes in (left, right):
    axes.set_xticks(sizes, sizes)
    axes.minorticks_off()
left.legend(frameon=False)
plt.show()
