"""
Bands around a curve
====================

A regressor that keeps the sums of its rows knows more than a curve. It also knows how large its
errors are, where it has seen no rows, and which other curves would fit as well.
"""

# %%
# The rows are noisy values of a curve, with a gap.

import matplotlib.pyplot as plt
import numpy as np

from craftmaps import FourierFeatures, Gaussian, OnePassRegressor

rng = np.random.default_rng(0)


def curve(x):
    return np.sin(2.5 * x) + 0.4 * x


x = np.concatenate([rng.uniform(-4, -0.5, 160), rng.uniform(1.5, 3, 80)])
y = curve(x) + rng.normal(0, 0.3, size=len(x))
grid = np.linspace(-5, 4, 400)

# %%
# One fit is enough. ``return_std`` gives the standard deviation of a new target, including the
# noise, by Bayesian linear regression on the features. The noise is estimated from leave-one-out
# residuals.

feature_map = FourierFeatures(Gaussian(gamma=0.8), 200, random_state=0)
model = OnePassRegressor(feature_map).fit(x[:, None], y)
mean, std = model.predict(grid[:, None], return_std=True)

# %%
# ``sample_y`` draws whole functions from the posterior. ``predict_interval`` makes no assumption
# about the noise. It uses quantiles of the leave-one-out errors.

drawn = model.sample_y(grid[:, None], 5, random_state=0)
lower, upper = model.predict_interval(grid[:, None], coverage=0.9).T

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
left.fill_between(grid, mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2, linewidth=0)
left.plot(grid, drawn, color="C0", linewidth=0.7, alpha=0.7)
left.plot(grid, mean, color="C0", linewidth=2)
left.set_title("two standard deviations, and five draws")
right.fill_between(grid, lower, upper, color="C1", alpha=0.25, linewidth=0)
right.plot(grid, mean, color="C1", linewidth=2)
right.set_title("an interval for 90% of the targets")
for axes in (left, right):
    axes.plot(x, y, "k.", markersize=3)
    axes.plot(grid, curve(grid), "k--", linewidth=1)
    axes.set_ylim(-5, 5)
    axes.set_xlabel("x")
plt.show()

# %%
# The dashed line is the true curve. Both bands are wide in the gap and beyond the ends. On new rows
# from the same source, the interval has the coverage that was asked for:

new = np.concatenate([rng.uniform(-4, -0.5, 2000), rng.uniform(1.5, 3, 1000)])
targets = curve(new) + rng.normal(0, 0.3, size=len(new))
for coverage in (0.5, 0.8, 0.9, 0.95):
    lower, upper = model.predict_interval(new[:, None], coverage).T
    print(f"promised {coverage:.2f}, found {np.mean((lower <= targets) & (targets <= upper)):.3f}")
