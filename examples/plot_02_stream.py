"""
Learning from a stream
======================

Rows arrive in blocks and are not stored. The learner keeps sums of a fixed size, and the final
model is the same as after one fit on all rows.
"""

# %%
# The stream never ends: it consists of digits with new noise. It is a generator, so nothing is
# stored.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, OnePassClassifier, Polynomial

images, labels = load_digits(return_X_y=True)
train, test = np.arange(0, 1200), np.arange(1200, 1797)


def stream(n_blocks, block_rows=250, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n_blocks):
        chosen = rng.choice(train, block_rows)
        rows = images[chosen] + 2 * rng.normal(size=(block_rows, 64))
        yield normalize(rows), labels[chosen]


X_test = normalize(images[test])

# %%
# ``partial_fit`` takes one block after another. The system is solved when a prediction is needed.
# Here this happens after every block, to show how the model improves.

feature_map = CraftMap(Polynomial(degree=5), n_components=512, random_state=0)
model = OnePassClassifier(feature_map)
seen, errors = [], []
for X, y in stream(20):
    model.partial_fit(X, y, classes=range(10))
    seen.append(model.n_samples_seen_)
    errors.append(100 * (1 - model.score(X_test, labels[test])))

plt.figure(figsize=(6, 3.4), layout="constrained")
plt.plot(seen, errors, "o-")
plt.xlabel("rows seen")
plt.ylabel("wrong on test rows, %")
plt.ylim(0, None)
plt.show()

# %%
# Nothing is lost without the rows. The same rows in one array, with the same map, give the same
# weights:

X_all, y_all = map(np.concatenate, zip(*stream(20), strict=True))
whole = OnePassClassifier(FrozenEstimator(model.feature_map_)).fit(X_all, y_all)
difference = np.abs(whole.coef_ - model.coef_).max() / np.abs(whole.coef_).max()
print(f"largest relative difference of a weight: {difference:.1e}")

# %%
# Two streams can be learned separately, for instance on two machines, and then merged. Only the
# sums have to be sent.

halves = [OnePassClassifier(FrozenEstimator(model.feature_map_)) for _ in range(2)]
for number, (X, y) in enumerate(stream(20)):
    halves[number % 2].partial_fit(X, y, classes=range(10))
merged = halves[0].merge(halves[1])
difference = np.abs(whole.coef_ - merged.coef_).max() / np.abs(whole.coef_).max()
print(f"after merging two halves: {difference:.1e}")
