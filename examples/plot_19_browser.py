"""
A model in a web page
=====================

An exported model runs where there is no Python. Here it reads digits that a visitor draws on a
static page: the browser does all the work, and no drawing leaves it.
"""

# %%
# The model learns from digits of 8 x 8 pixels. ``ImageMap`` shows their strokes to a Nyström map,
# so that it does not matter much where exactly a stroke is drawn.

import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

from craftmaps import ImageMap, KernelClassifier, Nystroem, Polynomial, export_onnx

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32)
feature_map = ImageMap(Nystroem(Polynomial(degree=5), 256, random_state=0))
model = KernelClassifier(feature_map).fit(X[:1400], y[:1400])
print(f"{model.score(X[1400:], y[1400:]):.1%} of the other digits are right")

# %%
# A folder becomes the site: the page, the model, and three files of onnxruntime-web, which come
# from npm:
#
# .. code-block:: sh
#
#    npm install onnxruntime-web
#    cd node_modules/onnxruntime-web/dist
#    cp ort.wasm.min.mjs ort-wasm-simd-threaded.mjs ort-wasm-simd-threaded.wasm ~/site

site = Path(tempfile.mkdtemp(), "site")
site.mkdir()
shutil.copy("digit_page.html", site / "index.html")
export_onnx(model, site / "digits.onnx")
print(f"the model has {(site / 'digits.onnx').stat().st_size / 1e3:.0f} kB")

# %%
# These are the lines of the page that run the model. ``X`` is the name of its input; its outputs
# are the label and the probabilities of all classes.
#
# .. literalinclude:: ../../examples/digit_page.html
#    :language: javascript
#    :start-at: import * as ort
#    :end-before: const paper
#    :dedent: 2
#
# Any web server can serve the folder, for instance ``python -m http.server -d site``. This is the
# page in Chromium, after the mouse has drawn a five:
#
# .. image:: /browser.png
#    :alt: A drawn five, and bars with the probabilities of the ten digits
#    :width: 540

# %%
# The same file gives the same numbers in Python. Here are three digits that the model has not
# learned from, and their probabilities.

session = onnxruntime.InferenceSession(site / "digits.onnx")
rows = [1400 + np.flatnonzero(y[1400:] == digit)[0] for digit in (2, 5, 9)]
label, probabilities = session.run(None, {"X": X[rows]})
figure, panels = plt.subplots(
    1, 6, figsize=(10, 2.2), layout="constrained", width_ratios=[1, 1.4] * 3
)
for image, bars, row, own in zip(panels[::2], panels[1::2], rows, probabilities, strict=True):
    image.imshow(X[row].reshape(8, 8), cmap="gray_r")
    image.set_axis_off()
    bars.bar(range(10), own)
    bars.set(xticks=range(10), ylim=(0, 1))
plt.show()

# %%

difference = np.abs(probabilities - model.predict_proba(X[rows])).max()
print(f"largest difference from the model in Python: {difference:.0e}")
