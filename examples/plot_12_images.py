"""
Strokes instead of pixels
=========================

For a kernel on pixels, a stroke that moved by its own width is a different stroke. ``ImageMap``
gives another map the directions of the strokes instead.
"""

# %%
# The data are digits of 8 x 8 pixels. For each of 5 x 5 cells, ``ImageMap`` computes how much the
# image changes in each of eight directions. The lines are drawn along the strokes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, ImageMap, Nystroem, OnePassClassifier, Polynomial
from craftmaps.maps.parts.images import gradients

X, y = load_digits(return_X_y=True)
train, test = slice(0, 1000), slice(1000, None)

cells, directions = 5, 8
figure, panels = plt.subplots(1, 4, figsize=(8, 2.2), layout="constrained")
for axes, row in zip(panels, X[test][[0, 3, 4, 9]], strict=True):
    axes.imshow(row.reshape(8, 8), cmap="gray_r", alpha=0.35)
    seen = gradients(row[None], cells, directions).reshape(directions, cells, cells)
    centers = (np.arange(cells) + 0.5) * 8 / cells - 0.5
    for k, line, column in np.ndindex(*seen.shape):
        angle = 2 * np.pi * k / directions + np.pi / 2
        half = 2.5 * seen[k, line, column] * np.array([np.cos(angle), np.sin(angle)])
        ends = np.array([centers[column], centers[line]]) + np.array([-half, half])
        axes.plot(*ends.T, color="C3", linewidth=1)
    axes.set_axis_off()
plt.show()

# %%
# The same maps and sizes are used on pixels and on gradients. Nothing else is learned or tuned.

kernel = Polynomial(degree=5)
kinds = (
    ("CraftMap", lambda size: CraftMap(kernel, size, random_state=0)),
    ("Nystroem", lambda size: Nystroem(kernel, size, landmarks="kmeans", random_state=0)),
)
sizes = [32, 64, 128, 256, 512]
rows = normalize(X).astype(np.float32)
plt.figure(figsize=(6.4, 4), layout="constrained")
for color, (name, make) in zip(("C0", "C1"), kinds, strict=True):
    for label, style, wrap in (
        (f"{name} of pixels", "o--", lambda inner: inner),
        (f"{name} of gradients", "o-", ImageMap),
    ):
        models = [OnePassClassifier(wrap(make(size))).fit(rows[train], y[train]) for size in sizes]
        errors = [100 * (1 - model.score(rows[test], y[test])) for model in models]
        plt.plot(sizes, errors, style, color=color, label=label)
plt.xscale("log", base=2)
plt.yscale("log")
plt.xticks(sizes, sizes)
plt.yticks([2, 3, 5, 10, 20], [2, 3, 5, 10, 20])
plt.minorticks_off()
plt.xlabel("features")
plt.ylabel("wrong on test rows, %")
plt.legend(frameon=False)
plt.show()

# %%
# ``ImageMap`` is a map like the others. ``model.save`` and ``export_onnx`` include the gradients,
# so the saved model takes pixels. ``python -m reproduction craft-table-1`` has results on MNIST,
# USPS and COIL-100, under the name CRAFT images.
