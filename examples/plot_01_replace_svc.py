"""
One line instead of an SVC
==========================

An exact kernel machine compares every row with every other row, so twice as many rows take four
times as long, or longer. A map and a linear learner look at each row once.
"""

# %%
# A linear model cannot solve this task: the class depends on products and waves of six numbers,
# with some noise.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from craftmaps import FourierFeatures, Gaussian, OnePassClassifier

rng = np.random.default_rng(0)


def rows(n_rows):
    X = rng.uniform(-2, 2, size=(n_rows, 6)).astype(np.float32)
    height = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 1.5 + np.cos(X[:, 3] + X[:, 4])
    return X, height + 0.2 * rng.normal(size=n_rows) > 0.3


X_test, y_test = rows(2000)

# %%
# The first line is the one to replace, and the second line replaces it. The kernel is the same.

exact = SVC(kernel="rbf", gamma=0.1, C=10)
fast = OnePassClassifier(FourierFeatures(Gaussian(gamma=0.1), n_components=512, random_state=0))

# %%
# Both learn from more and more rows. The first fit of a process may compile code, so it is not
# counted.

fast.fit(*rows(100))
sizes = [1000, 2000, 4000, 8000, 16000]
seconds = {"SVC": [], "OnePassClassifier": []}
errors = {"SVC": [], "OnePassClassifier": []}
for n_rows in sizes:
    X, y = rows(n_rows)
    for name, model in (("SVC", exact), ("OnePassClassifier", fast)):
        start = perf_counter()
        model.fit(X, y)
        seconds[name].append(perf_counter() - start)
        errors[name].append(1 - model.score(X_test, y_test))

# %%
# With twice as many rows, the SVC takes about four times as long. The features take at most twice
# as long, because the learner solves one system of 512 equations for any number of rows. The
# difference of the errors is the price of the approximation. More features make it smaller.

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
