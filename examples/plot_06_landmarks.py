"""
Nyström: where to put the landmarks
===================================

A Nyström map compares rows with landmark rows. Which rows make good landmarks?
"""

# %%
# The density of these rows varies: there are two dense clusters, and a thin spiral of rare rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import Gaussian, Nystroem, Polynomial
from craftmaps.diagnose import gram_error

rng = np.random.default_rng(0)
turn = np.linspace(0.5, 9, 120)
X = np.vstack(
    [
        rng.normal([-4, 6], 0.4, size=(1500, 2)),
        rng.normal([7, -5], 0.4, size=(1500, 2)),
        np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) + rng.normal(0, 0.1, (120, 2)),
    ]
)
choices = ("uniform", "leverage", "rpcholesky", "kmeans")

# %%
# We choose thirty landmarks in each way. Uniform landmarks lie in the clusters, where rows are
# similar and one landmark would be enough. Leverage scores are only a little better here. Pivoted
# Cholesky and k-means spread the landmarks out.

figure, panels = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained", sharey=True)
for axes, landmarks in zip(panels, choices, strict=True):
    feature_map = Nystroem(Gaussian(gamma=0.5), 30, landmarks=landmarks, random_state=0).fit(X)
    found = gram_error(feature_map, X, "frobenius", seeds=None)
    axes.plot(*X.T, ".", color="0.8", markersize=2)
    axes.plot(*feature_map.landmarks_.T, "o", color="C3", markersize=4)
    axes.set_title(f"{landmarks}\nerror {float(found):.3f}", fontsize="medium")
    axes.set_aspect("equal")
plt.show()

# %%
# Does this matter for real data? The rows of the digits are spread more evenly. k-means still helps
# a lot, and the other choices help little. Measure on your own rows before you spend time on a
# clustering.

digits = normalize(load_digits().data)
sizes = [25, 50, 100, 200, 400]
plt.figure(figsize=(6, 3.6), layout="constrained")
for landmarks in choices:
    maps = [Nystroem(Polynomial(degree=5), size, landmarks=landmarks) for size in sizes]
    errors = [float(gram_error(m, digits, "frobenius", n_rows=500, seeds=3)) for m in maps]
    plt.loglog(sizes, errors, "o-", label=landmarks)
plt.xticks(sizes, sizes)
plt.minorticks_off()
plt.xlabel("landmarks")
plt.ylabel("relative error of the kernel")
plt.legend(frameon=False)
plt.show()

# %%
# You can also pass landmarks as an array: prototypes, medoids, or rows that an expert has chosen.

prototypes = np.array([digits[load_digits().target == digit].mean(axis=0) for digit in range(10)])
feature_map = Nystroem(Polynomial(degree=5), landmarks=prototypes).fit(digits)
print(feature_map.transform(digits).shape)
