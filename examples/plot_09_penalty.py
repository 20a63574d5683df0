"""
The penalty, for free
=====================

Ridge regression has one dial, alpha. Cross-validation turns it by fitting again and again; here
every position of it comes from sums that are there anyway.
"""

# %%
# Noisy values of a smooth function in four dimensions.

import matplotlib.pyplot as plt
import numpy as np

from craftmaps import FourierFeatures, Gaussian, OnePassRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(3000, 4))
truth = np.sin(3 * X[:, 0]) * X[:, 1] + np.exp(-((X[:, 2] - X[:, 3]) ** 2))
y = truth + rng.normal(0, 0.5, size=len(X))
train, test = slice(0, 1000), slice(1000, None)

# %%
# One fit. ``alphas_`` and ``scores_`` are the alphas that were tried, and the mean squared error of
# 1,000 rows, each of which was left out in turn.

feature_map = FourierFeatures(Gaussian(gamma=1.0), 512, sampling="orthogonal", random_state=0)
by_rows = OnePassRegressor(feature_map).fit(X[train], y[train])

# %%
# Two other ways in the same pass. Generalised cross-validation takes all rows to be alike. A
# sequence of alphas is judged by five folds, from sums that are
# kept per fold.

by_gcv = OnePassRegressor(feature_map, alpha="gcv").fit(X[train], y[train])
by_folds = OnePassRegressor(feature_map, alpha=np.logspace(-4, 3, 29)).fit(X[train], y[train])

# %%
# The truth, which needs rows that nobody has: the error on new rows, for every alpha.

grid = np.logspace(-4, 3, 15)
fits = [OnePassRegressor(feature_map, alpha=alpha).fit(X[train], y[train]) for alpha in grid]
on_new_rows = [np.mean((fit.predict(X[test]) - y[test]) ** 2) for fit in fits]

plt.figure(figsize=(6.4, 4), layout="constrained")
models = {"rows left out": by_rows, "generalized cross-validation": by_gcv, "folds": by_folds}
for name, model in models.items():
    (line,) = plt.semilogx(model.alphas_, model.scores_.mean(axis=1), label=name)
    plt.axvline(model.alpha_, color=line.get_color(), linestyle=":", linewidth=1)
plt.semilogx(grid, on_new_rows, "ko", markersize=4, label="on new rows")
plt.xlim(grid[0], grid[-1])
plt.ylim(0.2, 1.0)
plt.xlabel("alpha")
plt.ylabel("mean squared error")
plt.legend(frameon=False)
plt.show()

# %%
# Dotted: what each would take. The noise alone is 0.25, so all are close to what can be had.

for name, model in models.items():
    error = np.mean((model.predict(X[test]) - y[test]) ** 2)
    print(f"{name:<30} alpha {model.alpha_:.3g}: {error:.4f} on new rows")
print(f"{'best':<30} alpha {grid[np.argmin(on_new_rows)]:.3g}: {min(on_new_rows):.4f}")
