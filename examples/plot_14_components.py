"""
Components of digits
====================

``KernelPCA`` finds kernel principal components in one pass: the eigenvectors of sums that add up
over blocks, files and machines.
"""

# %%
# Half of the digits 0 to 5 arrive in blocks, as in a stream.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from craftmaps import FourierFeatures, Gaussian, KernelPCA
from craftmaps.diagnose import anomaly_score

images, labels = load_digits(return_X_y=True)
X = images / 16
known = labels < 6
learned = known & (np.arange(len(X)) % 2 == 0)
feature_map = FourierFeatures(Gaussian(gamma=0.1), 512, random_state=0)

pca = KernelPCA(feature_map, n_components=10)
for rows in np.array_split(X[learned], 8):
    pca.partial_fit(rows)
print(f"{pca.n_samples_seen_} rows, {pca.explained_variance_ratio_.sum():.0%} of the variance")

# %%
# The result equals scikit-learn's PCA on all features at once.

exact = PCA(10, svd_solver="full").fit(pca.feature_map_.transform(X[learned]))
print(f"largest difference: {np.abs(pca.components_ - exact.components_).max():.1e}")

# %%
# The left panel shows the first two components of the digits 0 to 5. The right panel shows scores
# of other digits from the same sums: ``anomaly_score`` is large where the stream had few rows.

coordinates = pca.transform(X[known])
score = anomaly_score(pca, X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for digit in range(6):
    own = labels[known] == digit
    left.plot(*coordinates[own, :2].T, ".", markersize=4, label=str(digit))
left.legend(frameon=False, ncols=3, handletextpad=0.1, loc="lower right")
left.set_xlabel("first component")
left.set_ylabel("second component")
edges = np.linspace(score.min(), np.quantile(score, 0.995), 40)
groups = {
    "digits 0 to 5, learned": learned,
    "digits 0 to 5, other rows": known & ~learned,
    "digits 6 to 9": ~known,
}
for name, rows in groups.items():
    right.hist(score[rows], edges, alpha=0.55, density=True, label=name)
right.set_xlabel("anomaly score")
right.set_yticks([])
right.legend(frameon=False)
plt.show()
