"""
A map of your own
=================

A feature map from outside of the package works like a built-in one: it streams, it can be saved,
and it becomes an ONNX model. One class with three short methods is enough.
"""

# %%
# The arc-cosine kernel of Cho and Saul is the kernel of a layer of ReLU units with random weights:
# the mean of 2 max(0, <w, x>) max(0, <w, y>) over normal vectors w. A map for it draws such vectors
# in ``_draw``, and computes the units in ``_fill``. ``_onnx`` adds the same computation to an ONNX
# graph. ``FeatureMap`` does the rest.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

import craftmaps
from craftmaps import FeatureMap, FourierFeatures, Gaussian, OnePassClassifier
from craftmaps.storage import storable


@storable
class RandomRelu(FeatureMap):
    """z(x) = sqrt(2 / n) max(0, W x) with a normal matrix W."""

    weights_: np.ndarray

    def __init__(self, n_components=256, *, random_state=None):
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, X, y, rng):
        return {"weights_": rng.standard_normal((X.shape[1], self.n_components))}

    def _fill(self, X, out):
        np.maximum(X @ self.weights_.astype(out.dtype), 0, out=out)
        out *= np.sqrt(2 / self.n_components)

    def _onnx(self, g, x):
        units = g.add("Relu", g.add("MatMul", x, g.floats(self.weights_)))
        return g.add("Mul", units, float(np.sqrt(2 / self.n_components)))


# %%
# Does it approximate the kernel? For two rows of length 1 with an angle t between them, the kernel
# is (sin t + (pi - t) cos t) / pi. Each gray line is one draw of 256 units, and their mean is blue.

angle = np.linspace(0, np.pi, 60)
circle = np.column_stack([np.cos(angle), np.sin(angle)])
draws = []
for seed in range(30):
    Z = RandomRelu(random_state=seed).fit_transform(circle)
    draws.append(Z @ Z[0])
exact = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi

plt.figure(figsize=(6, 3.6), layout="constrained")
plt.plot(angle, np.transpose(draws), color="0.85", linewidth=1)
plt.plot(angle, np.mean(draws, axis=0), color="C0", linewidth=3, label="mean of 30 draws")
plt.plot(angle, exact, "k--", linewidth=1, label="arc-cosine kernel")
plt.xlabel("angle between two rows")
plt.ylabel("inner product of features")
plt.legend(frameon=False)
plt.show()

# %%
# The map can be used wherever a built-in map can. These are the errors on the digits, compared with
# Fourier features of a Gaussian kernel.

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
sizes = [64, 128, 256, 512]
plt.figure(figsize=(6, 3.6), layout="constrained")
for name, feature_map in (
    ("RandomRelu", RandomRelu(random_state=0)),
    ("FourierFeatures", FourierFeatures(Gaussian(gamma=0.1), random_state=0)),
):
    errors = []
    for size in sizes:
        model = OnePassClassifier(feature_map.set_params(n_components=size))
        errors.append(100 * (1 - model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])))
    plt.semilogx(sizes, errors, "o-", label=name)
plt.xticks(sizes, sizes)
plt.minorticks_off()
plt.ylim(0, None)
plt.xlabel("features")
plt.ylabel("wrong on test rows, %")
plt.legend(frameon=False)
plt.show()

# %%
# A model with the new map can be saved and exported. ``@storable`` allows the class in model files,
# and the annotation ``weights_: np.ndarray`` names what a file has to hold.

model = OnePassClassifier(RandomRelu(512, random_state=0)).fit(X[:1000], y[:1000])
with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder, "model.craft"))
    again = craftmaps.load(Path(folder, "model.craft"))
    craftmaps.export_onnx(model, Path(folder, "model.onnx"))
    session = onnxruntime.InferenceSession(Path(folder, "model.onnx"))
    (label,) = session.run(["label"], {"X": X[1000:]})
print("file:", bool((again.predict(X) == model.predict(X)).all()))
print(f"ONNX: {np.mean(label == model.predict(X[1000:])):.1%} of the labels are the same")

# %%
# The page "A map of your own" of the guide explains each method, and how to run scikit-learn's
# checks on such a class.
