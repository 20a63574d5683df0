"""
How long should a stream remember?
==================================

A learner that remembers everything averages over rules that no longer hold. A learner that forgets
quickly has few rows to learn from. The best memory lies in between, and can be chosen while the
stream runs.
"""

# %%
# The target is a wave whose phase moves with every block. At speed 0 the rule never changes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator

from craftmaps import FourierFeatures, Gaussian, OnePassRegressor, Window


def stream(speed, n_blocks=60, block_rows=40):
    rng = np.random.default_rng(0)
    for number in range(n_blocks):
        X = rng.normal(size=(block_rows, 2))
        y = np.sin(2 * X[:, 0] + speed * number) + X[:, 1]
        yield X, y + rng.normal(0, 0.3, size=block_rows)


# %%
# ``decay`` multiplies the weight of every row by a number below 1 whenever another row arrives. A
# decay of 1 - 1/m remembers about m rows. Each block is predicted first and learned afterwards.
# Errors are averaged over the second half of the stream.

rows = np.random.default_rng(1).normal(size=(500, 2))
feature_map = FrozenEstimator(FourierFeatures(Gaussian(0.5), 64, random_state=0).fit(rows))


def error(learner, speed):
    squares = []
    for X, y in stream(speed):
        if hasattr(learner, "feature_map_"):
            squares.append(np.mean((learner.predict(X) - y) ** 2))
        learner.partial_fit(X, y)
    return np.sqrt(np.mean(squares[30:]))


memories = [40, 80, 160, 320, 640, 1280]
speeds = {"the rule stays": 0.0, "it changes slowly": 0.03, "it changes fast": 0.2}
plt.figure(figsize=(6.4, 4), layout="constrained")
for name, speed in speeds.items():
    learners = [OnePassRegressor(feature_map, alpha=1.0, decay=1 - 1 / m) for m in memories]
    plt.semilogx(memories, [error(learner, speed) for learner in learners], "o-", label=name)
plt.axhline(0.3, color="0.6", linewidth=1, linestyle="--", label="noise alone")
plt.xticks(memories, memories)
plt.minorticks_off()
plt.xlabel("rows that are remembered, 1 / (1 - decay)")
plt.ylabel("error of the next block")
plt.ylim(0, None)
plt.legend(frameon=False)
plt.show()

# %%
# It is not known in advance how fast a stream changes. Several learners with different memories can
# run side by side, because each of them has only 64 x 64 sums. The learner with the best
# predictions for the last five blocks predicts the next block. ``Window`` is another kind of
# memory: it keeps the sums of the last blocks, and older rows are gone entirely.

names = ["decay 1 - 1/100", "window of 5 blocks", "remembers all"]
learners = [
    OnePassRegressor(feature_map, alpha=1.0, decay=0.99),
    Window(OnePassRegressor(feature_map, alpha=1.0), n_blocks=5),
    OnePassRegressor(feature_map, alpha=1.0),
]
errors, chosen = [], []
calm_then_changing = [*stream(0.0), *stream(0.05)]
for number, (X, y) in enumerate(calm_then_changing):
    if number:
        models = [one.model() if isinstance(one, Window) else one for one in learners]
        chosen.append(int(np.mean(errors[-5:], axis=0).argmin()) if errors else 0)
        errors.append([np.mean((model.predict(X) - y) ** 2) for model in models])
    for learner in learners:
        learner.partial_fit(X, y)

errors = np.sqrt(errors)
best = errors[np.arange(len(chosen)), chosen]
for name, own in zip(names, errors.T, strict=True):
    print(f"{name:<20} {own[:59].mean():.3f} while calm, {own[59:].mean():.3f} after the change")
print(f"{'whichever was best':<20} {best[:59].mean():.3f} while calm, {best[59:].mean():.3f} after")

# %%
# This is the chosen learner at each block. While the rule stays the same, all rows are worth
# keeping. After the change, a short memory is better.

plt.figure(figsize=(7, 3.4), layout="constrained")
for place, name in enumerate(names):
    blocks = np.flatnonzero(np.array(chosen) == place) + 1
    plt.plot(blocks, best[blocks - 1], "o", markersize=4, label=name)
plt.plot(range(1, len(best) + 1), best, color="0.8", zorder=0)
plt.axvline(59.5, color="gray", linewidth=0.8)
plt.ylim(0, None)
plt.xlabel("block")
plt.ylabel("error of the next block")
plt.legend(frameon=False, title="predicted by")
plt.show()

# %%
# Given rows can also be removed, for instance because a customer asks for it. ``forget`` subtracts
# them from the sums, and the model is the same as if it had never seen them.

X, y = map(np.concatenate, zip(*stream(0.0), strict=True))
model = OnePassRegressor(feature_map, alpha=1.0).fit(X, y).forget(X[:300], y[:300])
never = OnePassRegressor(feature_map, alpha=1.0).fit(X[300:], y[300:])
print(f"{model.n_samples_seen_} of {len(X)} rows are left")
print(f"largest difference of a weight: {np.abs(model.coef_ - never.coef_).max():.0e}")
