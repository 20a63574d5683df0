"""
Levels and long tails
=====================

A kernel on numbers assumes that close values have similar effects, and that distances are
comparable. Two maps prepare columns for which this is not true. Both wrap another map.
"""

# %%
# **Levels.** The settings of a machine are numbered, and the numbers say nothing about the effect
# of a setting. ``LevelsMap`` gives each value its own column.

import matplotlib.pyplot as plt
import numpy as np

from craftmaps import Gaussian, LevelsMap, Nystroem, OnePassRegressor, ScaledMap

rng = np.random.default_rng(0)
effect = rng.normal(size=20)
settings = rng.integers(20, size=(2000, 3)).astype(float)
y = effect[settings[:, 0].astype(int)] + rng.normal(scale=0.3, size=2000)
inner = Nystroem(Gaussian("median"), n_components=200, random_state=0)
grid = np.column_stack([np.arange(20.0), np.full(20, 10.0), np.full(20, 10.0)])
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(effect, "k_", markersize=16, label="true effect")
for feature_map in (inner, LevelsMap(inner)):
    predicted = OnePassRegressor(feature_map).fit(settings, y).predict(grid)
    axes.plot(predicted, "o-", label=type(feature_map).__name__)
axes.set_xticks(range(0, 20, 2))
axes.set_xlabel("setting")
axes.set_ylabel("effect")
axes.legend(frameon=False)
plt.show()

# %%
# **Long tails.** A few rows of this column are very large. After standardization, most rows are
# close together, and the kernel hardly distinguishes them. ``ScaledMap(columns="quantile")`` maps
# the column to a normal distribution by a smooth increasing curve.

X = rng.lognormal(sigma=2.0, size=(2000, 1))
y = np.sin(2 * np.log(X[:, 0])) + rng.normal(scale=0.2, size=2000)
inner = Nystroem(Gaussian(gamma=2.0), n_components=100, random_state=0)
order = np.argsort(X[:, 0])[::4]
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.semilogx(X[order, 0], y[order], ".", color="0.8", label="rows")
for columns in ("standard", "quantile"):
    feature_map = ScaledMap(inner, columns=columns, unit_norm=False)
    model = OnePassRegressor(feature_map).fit(X[:1000], y[:1000])
    label = f"{columns}: R2 {model.score(X[1000:], y[1000:]):.2f}"
    axes.semilogx(X[order, 0], model.predict(X[order]), linewidth=2, label=label)
axes.set_ylim(-2, 2)
axes.set_xlabel("column with a long tail (logarithmic)")
axes.set_ylabel("target")
axes.legend(frameon=False)
plt.show()

# %%
# ``KernelClassifier`` and ``KernelRegressor`` try both preparations by themselves.
