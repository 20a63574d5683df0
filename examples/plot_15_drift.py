"""
A stream that drifts and is forgotten
=====================================

A stream changes, and a test detects the change. There are three ways to forget: rows that fade, a
window over the last blocks, and rows that are removed on request.
"""

# %%
# In the middle of this stream, the rows move and the rule changes its sign.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator

from craftmaps import FourierFeatures, Gaussian, KernelPCA, OnePassRegressor, Window
from craftmaps.diagnose import drift

rng = np.random.default_rng(0)
N_BLOCKS, CHANGE = 60, 30


def block(number):
    late = number >= CHANGE
    X = rng.normal(0.5 * late, 1.0, size=(50, 2))
    sign = -1.0 if late else 1.0
    return X, sign * np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(0, 0.2, size=50)


# %%
# All learners share one map. The first twenty blocks are the reference of the test, which keeps
# their sums and none of their rows.

first_rows = rng.normal(size=(100, 2))
feature_map = FrozenEstimator(FourierFeatures(Gaussian(0.5), 100, random_state=0).fit(first_rows))
reference = KernelPCA(feature_map)
learners = {
    "remembers all": OnePassRegressor(feature_map),
    "decay=0.997": OnePassRegressor(feature_map, decay=0.997),
    "Window of 8 blocks": Window(OnePassRegressor(feature_map), n_blocks=8),
}
errors = {name: [] for name in learners}
p_values = []
for number in range(N_BLOCKS):
    X, y = block(number)
    p_values.append(drift(reference, X).p_value if number >= 20 else np.nan)
    if number < 20:
        reference.partial_fit(X)
    for name, learner in learners.items():
        if number:  # predict first, then learn
            model = learner.model() if isinstance(learner, Window) else learner
            errors[name].append(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
        learner.partial_fit(X, y)

# %%
# The plots show the error on each block before it is learned, and the p-value of the test that its
# rows come from the same source as the reference.

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(7, 5.2), sharex=True, height_ratios=[2, 1], layout="constrained"
)
for name, values in errors.items():
    top.plot(range(1, N_BLOCKS), values, label=name)
top.set_ylabel("error of the next block")
top.set_ylim(0, None)
top.legend(frameon=False)
bottom.semilogy(range(N_BLOCKS), p_values, "k.", markersize=5)
bottom.axhline(0.01, color="gray", linewidth=0.8, linestyle="--")
bottom.set_ylabel("p-value")
bottom.set_xlabel("block")
for axes in (top, bottom):
    axes.axvline(CHANGE - 0.5, color="gray", linewidth=0.8)
plt.show()

# %%
# ``forget`` removes the given rows exactly, as if they had never been learned.

X, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
model = OnePassRegressor(feature_map, alpha=1.0).fit(X, y).forget(X[:300], y[:300])
never = OnePassRegressor(feature_map, alpha=1.0).fit(X[300:], y[300:])
print(f"{model.n_samples_seen_} rows left")
print(f"largest difference: {np.abs(model.coef_ - never.coef_).max():.0e}")
