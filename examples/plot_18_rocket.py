"""
Time series: ROCKET without running out of memory
=================================================

ROCKET describes a time series by thousands of random convolutions, and a ridge classifier learns
from them. The usual ``RidgeClassifierCV`` needs the features of all series at once.
``OnePassClassifier`` finds the same kind of model from sums, block by block.
"""

# %%
# Series of 128 values in four classes. Each has a short pattern somewhere in noise, and the class
# depends on the pattern alone. ``blocks`` generates them in blocks, as a stream would.

import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from craftmaps import FeatureMap, OnePassClassifier

LENGTH, CLASSES = 128, 4
t = np.linspace(0, 1, 32)
PATTERNS = np.array([np.sin(14 * t), np.sin(20 * t**2), np.sign(np.sin(14 * t)), 2 * t - 1])


def series(n_rows, rng):
    y = rng.integers(CLASSES, size=n_rows)
    X = rng.normal(size=(n_rows, LENGTH))
    for row, start in enumerate(rng.integers(LENGTH - 32, size=n_rows)):
        X[row, start : start + 32] += rng.uniform(1.5, 2.5) * PATTERNS[y[row]]
    return X.astype(np.float32), y


def blocks(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n_rows // 250):
        yield series(250, rng)


X_test, y_test = series(1000, np.random.default_rng(1))
figure, panels = plt.subplots(1, CLASSES, figsize=(9, 1.8), layout="constrained", sharey=True)
for label, axes in enumerate(panels):
    axes.plot(X_test[y_test == label][0], linewidth=0.8)
    axes.set_title(f"class {label}", fontsize="medium")
plt.show()

# %%
# The transform: kernels of nine normal weights with mean zero, a random bias, and a dilation that
# sets how far apart the nine values are. Each kernel gives two features, the largest value and the
# share of values above zero. As a ``FeatureMap`` it goes into any learner of this package.


class Rocket(FeatureMap):
    """Random convolutions of series, with their maximum and their share of positive values."""

    def __init__(self, n_components=400, *, random_state=None):
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, X, y, rng):
        weights = rng.standard_normal((9, self.n_components // 2)).astype(np.float32)
        biases = rng.uniform(-1, 1, self.n_components // 2).astype(np.float32)
        dilations = 2 ** rng.integers(4, size=self.n_components // 2)
        return {
            "weights_": weights - weights.mean(axis=0),
            "biases_": biases,
            "dilations_": np.sort(dilations),
        }

    def _fill(self, X, out):
        for dilation in np.unique(self.dilations_):
            own = np.flatnonzero(self.dilations_ == dilation)
            windows = sliding_window_view(X, 8 * dilation + 1, axis=1)[:, :, ::dilation]
            convolved = windows @ self.weights_[:, own] + self.biases_[own]
            out[:, own] = convolved.max(axis=1)
            out[:, own + len(self.dilations_)] = (convolved > 0).mean(axis=1)


rocket = Rocket(random_state=0).fit(X_test[:1])

# %%
# Both learners get the same features and choose their penalty by leave-one-out errors.
# ``RidgeClassifierCV`` is fitted on as many rows as it can hold. ``OnePassClassifier`` sees one
# block at a time. ``tracemalloc`` measures the most memory that each of them takes.


def ridge(n_rows):
    parts = [(rocket.transform(X), y) for X, y in blocks(n_rows)]
    Z, y = map(np.concatenate, zip(*parts, strict=True))
    return make_pipeline(rocket, RidgeClassifierCV(alphas=np.logspace(-3, 3, 10)).fit(Z, y))


def one_pass(n_rows):
    model = OnePassClassifier(rocket)
    for X, y in blocks(n_rows):
        model.partial_fit(X, y, classes=range(CLASSES))
    model.predict(X_test[:1])  # solves the equations
    return model


one_pass(250)  # imports what it needs before memory is measured
sizes = {ridge: [1000, 2000, 4000], one_pass: [1000, 2000, 4000, 8000]}
errors, megabytes = {}, {}
for fit, n_rows in sizes.items():
    errors[fit], megabytes[fit] = [], []
    for n in n_rows:
        tracemalloc.start()
        model = fit(n)
        megabytes[fit].append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
        errors[fit].append(100 * (1 - model.score(X_test, y_test)))

# %%
# The errors agree, up to the sampling error of 1,000 test series. The memory of
# ``RidgeClassifierCV`` grows with the number of series. ``OnePassClassifier`` holds one block, its
# sums and a sample of at most 1,024 rows, which it uses to choose the penalty.

names = {ridge: "RidgeClassifierCV", one_pass: "OnePassClassifier"}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for fit, marker in ((ridge, "s--"), (one_pass, "o-")):
    left.plot(sizes[fit], errors[fit], marker, label=names[fit])
    right.plot(sizes[fit], megabytes[fit], marker, label=names[fit])
left.set(xlabel="series learned from", ylabel="wrong on test series, %", ylim=(0, None))
right.set(xlabel="series learned from", ylabel="most memory, MB", ylim=(0, None))
left.legend(frameon=False)
plt.show()

# %%
# With E features the sums take 8 E² bytes: 1.3 MB here, and 0.8 GB for the 10,000 features of
# MiniRocket, however many series there are. A hundred thousand series with 10,000 features are 8 GB
# in float64 before a solver begins. The transform of aeon or sktime can take the place of
# ``rocket``: give its output to ``OnePassClassifier().partial_fit(Z, y, classes=...)`` block by
# block.
