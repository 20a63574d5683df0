"""
MNIST: error by number of features
==================================

This example compares three maps with 64 to 512 features. MNIST is read from ``mnist.npz`` in the
folder that the environment variable ``CRAFTMAPS_DATA`` names. Without it, the example uses the
small digits of scikit-learn.
"""

# %%

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, Nystroem, OnePassClassifier, Polynomial

archive = Path(os.environ.get("CRAFTMAPS_DATA", "."), "mnist.npz")
if archive.exists():
    data = np.load(archive)
    X_train, y_train = data["X_train"][:6000], data["y_train"][:6000]
    X_test, y_test, side = data["X_test"], data["y_test"], 28
    print("MNIST, 6,000 training rows")
else:
    X, y = load_digits(return_X_y=True)
    X_train, y_train, X_test, y_test, side = X[:1200], y[:1200], X[1200:], y[1200:], 8
    print("MNIST is not here: the digits of scikit-learn")
X_train, X_test = (normalize(X.astype(np.float32)) for X in (X_train, X_test))

# %%
# Rows have unit norm, and the kernel is (1 + <x, y>)^7. ``down="principal"`` learns the projection
# from the rows, and ``Nystroem`` takes landmarks from them. ``CraftMap`` with its defaults does not
# look at the rows.

kernel = Polynomial(degree=7)
maps = {
    "CraftMap": CraftMap(kernel, random_state=0),
    "CraftMap, principal": CraftMap(kernel, down="principal", random_state=0),
    "Nystroem, rpcholesky": Nystroem(kernel, landmarks="rpcholesky", random_state=0),
}
sizes = [64, 128, 256, 512]
plt.figure(figsize=(6.4, 4), layout="constrained")
for name, feature_map in maps.items():
    errors = []
    for size in sizes:
        model = OnePassClassifier(feature_map.set_params(n_components=size)).fit(X_train, y_train)
        errors.append(100 * (1 - model.score(X_test, y_test)))
    plt.loglog(sizes, errors, "o-", label=f"{name}: {errors[-1]:.1f} % at {sizes[-1]}")
plt.xticks(sizes, sizes)
ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if plt.ylim()[0] <= tick <= plt.ylim()[1]]
plt.yticks(ticks, ticks)
plt.minorticks_off()
plt.xlabel("features")
plt.ylabel("wrong on test rows, %")
plt.legend(frameon=False)
plt.show()

# %%
# These are the most confident errors of the last model.

probabilities = model.predict_proba(X_test)
said = model.classes_[probabilities.argmax(axis=1)]
wrong = np.flatnonzero(said != y_test)
worst = wrong[np.argsort(-probabilities.max(axis=1)[wrong])][:8]
figure, panels = plt.subplots(1, 8, figsize=(10, 1.7), layout="constrained")
for axes in panels:
    axes.axis("off")
for axes, row in zip(panels, worst, strict=False):
    axes.imshow(X_test[row].reshape(side, side), cmap="gray_r")
    axes.set_title(f"{y_test[row]}, said {said[row]}", fontsize="small")
plt.show()

# %%
# ``python -m reproduction craft-table-1 --full`` runs all rows and larger sizes, and compares the
# results with the paper.
