"""
The penalty, for free
=====================

Ridge regression has one parameter, alpha. Cross-validation fits a model for every alpha and every
fold. Here the errors for all alphas come from the sums of a single fit.
"""

# %%
# The targets are noisy values of a smooth function in four dimensions.

import matplotlib.pyplot as plt
import numpy as np

from craftmaps import FourierFeatures, Gaussian, OnePassRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(3000, 4))
truth = np.sin(3 * X[:, 0]) * X[:, 1] + np.exp(-((X[:, 2] - X[:, 3]) ** 2))
y = truth + rng.normal(0, 0.5, size=len(X))
train, test = slice(0, 1000), slice(1000, None)

# %%
# There is only one fit. ``alphas_`` are the alphas that were tried, and ``scores_`` the mean
# squared errors of 1,000 rows that were left out one at a time.

feature_map = FourierFeatures(Gaussian(gamma=1.0), 512, sampling="orthogonal", random_state=0)
by_rows = OnePassRegressor(feature_map).fit(X[train], y[train])

# %%
# There are two other ways to choose alpha in the same pass. Generalized cross-validation assumes
# that all rows have the same leverage. A sequence of alphas is compared by five-fold
# cross-validation, from sums that are kept per fold.

by_gcv = OnePassRegressor(feature_map, alpha="gcv").fit(X[train], y[train])
by_folds = OnePassRegressor(feature_map, alpha=np.logspace(-4, 3, 29)).fit(X[train], y[train])

# %%
# For comparison, this is the error on new rows for every alpha. In practice there are no such rows.

grid = np.logspace(-4, 3, 15)
fits = [OnePassRegressor(feature_map, alpha=alpha).fit(X[train], y[train]) for alpha in grid]
on_new_rows = [np.mean((fit.predict(X[test]) - y[test]) ** 2) for fit in fits]

plt.figure(figsize=(6.4, 4), layout="constrained")
models = {"folds": by_folds, "generalized cross-validation": by_gcv, "rows left out": by_rows}
for name, model in models.items():
    style = "o-" if model is by_rows else "-"  # few alphas are tried
    (line,) = plt.semilogx(model.alphas_, model.scores_.mean(axis=1), style, label=name)
    plt.axvline(model.alpha_, color=line.get_color(), linestyle=":", linewidth=1)
plt.semilogx(grid, on_new_rows, "ko", markersize=4, label="on new rows")
plt.xlim(grid[0], grid[-1])
plt.ylim(0.2, 1.0)
plt.xlabel("alpha")
plt.ylabel("mean squared error")
plt.legend(frameon=False)
plt.show()

# %%
# The dotted lines show the alpha that each rule chooses. The noise alone gives an error of 0.25, so
# all choices are close to the best possible error.

for name, model in models.items():
    error = np.mean((model.predict(X[test]) - y[test]) ** 2)
    print(f"{name:<30} alpha {model.alpha_:.3g}: {error:.4f} on new rows")
print(f"{'best':<30} alpha {grid[np.argmin(on_new_rows)]:.3g}: {min(on_new_rows):.4f}")
