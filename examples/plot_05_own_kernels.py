"""
Kernels of your own
===================

You can define a kernel by a list of coefficients, by a function, by a spectrum, or as a power
series of another kernel. All of them have features and exact Gram matrices, and work with the
learners, like the built-in kernels.
"""

# %%
# **A power series.** Any sum of a_n <x, y>^n with a_n >= 0 is a kernel. **A function** that has
# such a series, here cosh, is expanded automatically.

import matplotlib.pyplot as plt
import numpy as np

from craftmaps import (
    Composed,
    CompositionalMap,
    DotProduct,
    FourierFeatures,
    Gaussian,
    Polynomial,
    RandomMaclaurin,
)
from craftmaps.kernels import ShiftInvariant

even = DotProduct([0.2, 0.0, 1.0, 0.0, 0.5])
cosh = DotProduct.from_function(np.cosh)
print(cosh.maclaurin(6).round(4))

# %%
# With a negative coefficient the function would not be a kernel, so this raises an error.

try:
    DotProduct([1.0, -0.5])(np.eye(2))
except ValueError as error:
    print(error)

# %%
# **A spectrum.** A shift-invariant kernel is the mean of cos<w, x - y> over random frequencies w,
# so a function that draws w defines it. Two bands of frequencies give a kernel that oscillates.


def two_bands(n, d, rng):
    centers = rng.choice([-4.0, 4.0], size=(n, 1))
    return np.hstack([centers, np.zeros((n, d - 1))]) + rng.normal(size=(n, d))


def waves(differences):
    return np.cos(4 * differences[..., 0]) * np.exp(-0.5 * (differences**2).sum(axis=-1))


waving = ShiftInvariant(two_bands, value=waves)

# %%
# **A kernel of a kernel.** A polynomial of a Gaussian kernel is a kernel too. Its map combines
# features of the Gaussian kernel.

composed = Composed(Polynomial(degree=3), Gaussian(gamma=2.0))

# %%
# The plots compare features with exact values along a line. The gray lines are twenty draws of 256
# features. Their mean, in blue, agrees with the kernel, because the maps are unbiased.

x = np.linspace(-1, 1, 81)
direction = np.array([[0.1, -0.5, 0.3, 0.6, -0.2, 0.4, 0.3, 0.1]])
direction /= np.linalg.norm(direction)
line, first = x[:, None] * direction, x[:, None] * np.eye(1, 8)
origin = np.zeros((1, 8))
cases = [  # title, kernel, map, rows along a line, the row that they are compared with, scale of x
    ("list: 0.2 + t² + t⁴ / 2", even, RandomMaclaurin, line, direction, 1),
    ("function: cosh t", cosh, RandomMaclaurin, line, direction, 1),
    ("spectrum: two bands", waving, FourierFeatures, 3 * first, origin, 3),
    ("(1 + Gaussian)³", composed, CompositionalMap, 2 * first, origin, 2),
]
figure, panels = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for axes, (title, kernel, kind, rows, point, scale) in zip(panels, cases, strict=True):
    draws = []
    for seed in range(20):
        feature_map = kind(kernel, 256, random_state=seed).fit(np.vstack([rows, point]))
        draws.append((feature_map.transform(rows) @ feature_map.transform(point).T).ravel())
    axes.plot(scale * x, np.transpose(draws), color="0.85", linewidth=1)
    axes.plot(scale * x, np.mean(draws, axis=0), color="C0", linewidth=3, label="mean of draws")
    axes.plot(scale * x, kernel(rows, point), "k--", linewidth=1, label="exact")
    axes.set_title(title, fontsize="medium")
panels[0].legend(frameon=False)
plt.show()
