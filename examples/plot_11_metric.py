"""
Which pixels matter
===================

A kernel treats all columns in the same way. ``MetricMap`` learns from the targets which directions
matter, and stretches the rows along them before another map.
"""

# %%
# The data are digits of 8 x 8 pixels, and the map is a small map for a polynomial kernel.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, MetricMap, Nystroem, OnePassClassifier, Polynomial

X, y = load_digits(return_X_y=True)
X = normalize(X).astype(np.float32)
train, test = slice(0, 1000), slice(1000, None)
kernel = Polynomial(degree=5)

# %%
# The metric stretches pixels that distinguish digits, and shrinks the margins, which are always
# empty. The right panels show one row before and after.

seen = MetricMap(CraftMap(kernel, 64, random_state=0), power=0.25).fit(X[train], y[train])
row = X[test][3]
figure, axes = plt.subplots(1, 3, figsize=(7, 2.6), layout="constrained")
pictures = (seen.metric_root_.diagonal(), row, row @ seen.metric_root_)
titles = ("weight of each pixel", "a row", "the same row, transformed")
for axis, picture, title in zip(axes, pictures, titles, strict=True):
    axis.imshow(picture.reshape(8, 8), cmap="gray_r" if title == "a row" else "magma_r")
    axis.set_title(title, fontsize=10)
    axis.set_axis_off()
plt.show()

# %%
# With the same number of features, the errors are lower. The gain is large for random features and
# smaller for landmarks, which follow the data anyway. The default, ``power="auto"``, leaves the
# rows unchanged if a metric does not help.

sizes = [32, 64, 128, 256]
plt.figure(figsize=(6.4, 4), layout="constrained")
kinds = (
    ("CraftMap", lambda size: CraftMap(kernel, size, random_state=0)),
    ("Nystroem", lambda size: Nystroem(kernel, size, landmarks="kmeans", random_state=0)),
)
for color, (name, make) in zip(("C0", "C1"), kinds, strict=True):
    for label, style, wrap in (
        (name, "o--", lambda inner: inner),
        (f"{name}, metric", "o-", MetricMap),
    ):
        models = [OnePassClassifier(wrap(make(size))).fit(X[train], y[train]) for size in sizes]
        errors = [100 * (1 - model.score(X[test], y[test])) for model in models]
        plt.plot(sizes, errors, style, color=color, label=label)
plt.xscale("log", base=2)
plt.yscale("log")
plt.xticks(sizes, sizes)
plt.yticks([3, 5, 10, 20], [3, 5, 10, 20])
plt.minorticks_off()
plt.xlabel("features")
plt.ylabel("wrong on test rows, %")
plt.legend(frameon=False)
plt.show()
