"""
A model in ONNX
===============

A fitted model can be exported to a file that every ONNX runtime executes. The file includes the
scaling of the columns.
"""

# %%
# The model takes raw rows and returns probabilities. ``ScaledMap`` makes standardization and unit
# norm a part of the map, so the file needs nothing else.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx
import onnxruntime
from sklearn.datasets import load_breast_cancer

import craftmaps
from craftmaps import CraftMap, OnePassClassifier, Polynomial, ScaledMap

X, y = load_breast_cancer(return_X_y=True)
X = X.astype(np.float32)
feature_map = ScaledMap(CraftMap(Polynomial(3), 256, random_state=0), columns="standard")
model = OnePassClassifier(feature_map).fit(X[::2], y[::2])
print(f"{model.score(X[1::2], y[1::2]):.3f} right")

# %%
# The exported graph contains only standard operators.

path = Path(tempfile.mkdtemp(), "model.onnx")
craftmaps.export_onnx(model, path)
operators = sorted({node.op_type for node in onnx.load(path).graph.node})
print(f"{path.stat().st_size / 1e3:.0f} kB:", ", ".join(operators))

# %%
# It runs without craftmaps.

session = onnxruntime.InferenceSession(path)
label, probabilities = session.run(None, {"X": X[1::2]})
print("same labels:", bool((label == model.predict(X[1::2])).all()))

# %%
# The probabilities agree up to the rounding errors of float32.

ours = model.predict_proba(X[1::2])[:, 1]
difference = np.abs(probabilities[:, 1] - ours)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
left.plot(ours, probabilities[:, 1], "o", markersize=4, alpha=0.5)
left.set(xlabel="probability, Python", ylabel="probability, ONNX")
right.hist(np.log10(difference + 1e-9), bins=30)
right.set(xlabel="log10 of the difference", ylabel="rows")
plt.show()
