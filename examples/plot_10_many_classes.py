"""
Many classes, few targets
=========================

With hundreds of classes, one target per class is expensive. Error-correcting codes represent each
class by a few bits, and the learner predicts the bits.
"""

# %%
# There are two hundred classes, and each is a cloud around a random center.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, OnePassClassifier, Polynomial

rng = np.random.default_rng(0)
n_classes = 200
centers = rng.normal(size=(n_classes, 20))
y = rng.integers(n_classes, size=12_000)
X = normalize(centers[y] + 0.8 * rng.normal(size=(len(y), 20))).astype(np.float32)
train, test = slice(0, 9000), slice(9000, None)
feature_map = CraftMap(Polynomial(degree=3), n_components=512, random_state=0)

# %%
# One-vs-rest has 200 targets. Random codes approach its error as the number of bits grows. The
# decoding matters too: Hamming distances ignore how certain each bit is. Losses and squared
# distances agree as long as the predicted bits stay within [-1, 1].
#
# The class with the largest of the 200 predictions is not always the best choice. A class with
# neighbors on all sides seldom gets a large prediction. Linear discriminant analysis uses the mean
# of the predictions for each class instead, and needs only the same sums.

bits = [16, 32, 64, 128, 200]
plt.figure(figsize=(6.4, 4), layout="constrained")
for decoding in ("hamming", "loss", "l2"):
    errors = []
    for n_bits in bits:
        model = OnePassClassifier(
            feature_map, codes="random", n_bits=n_bits, decoding=decoding, random_state=0
        ).fit(X[train], y[train])
        errors.append(100 * (1 - model.score(X[test], y[test])))
    plt.plot(bits, errors, "o-", label=decoding)
for decoding, wins, style in (("l2", "the largest", "--"), ("discriminant", "discriminant", ":")):
    model = OnePassClassifier(feature_map, decoding=decoding).fit(X[train], y[train])
    error = 100 * (1 - model.score(X[test], y[test]))
    plt.axhline(error, color="0.3", linestyle=style, label=f"one-vs-rest, {wins}")
plt.xticks(bits)
plt.ylim(0, None)
plt.xlabel("bits of the code")
plt.ylabel("wrong on test rows, %")
plt.legend(frameon=False)
plt.show()

# %%
# Codes also have probabilities. Of the rows with a probability above 90%, at least nine of ten
# should be classified correctly.

coded = OnePassClassifier(feature_map, codes="random", n_bits=64, random_state=0)
probabilities = coded.fit(X[train], y[train]).predict_proba(X[test])
sure = probabilities.max(axis=1) > 0.9
right = coded.classes_[probabilities.argmax(axis=1)] == y[test]
print(
    f"{sure.mean():.0%} of rows get more than 90%, and {right[sure].mean():.1%} of them are right"
)
