"""
How many features: choosing D and E
===================================

``CraftMap`` computes D features and projects them to E columns. The cost of the learner depends on
E, and D is cheap. How do D and E affect the error?
"""

# %%
# We measure the error of kernel values on the digits for several D and E, with a kernel of high
# degree.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, Polynomial
from craftmaps.diagnose import components_for, gram_error

X = normalize(load_digits().data)
kernel = Polynomial(degree=7)
sizes = [64, 128, 256, 512, 1024]


def error(n_components, n_up):
    feature_map = CraftMap(kernel, n_components, n_up=n_up, h01="none")
    return float(gram_error(feature_map, X, "frobenius", n_rows=400, seeds=5))


# %%
# The floor is the smallest error that a map can have that does not look at the data: sqrt(k(x,x)
# k(y,y) + k(x,y)^2) / sqrt(E), relative to the kernel.

K = kernel(X[:400])
floor = np.sqrt(np.mean(np.outer(np.diag(K), np.diag(K)) + K**2) / np.mean(K**2))

plt.figure(figsize=(6.4, 4), layout="constrained")
for ratio in (1, 2, 8, 32):
    plt.loglog(sizes, [error(E, ratio * E) for E in sizes], "o-", label=f"D = {ratio} E")
plt.loglog(sizes, floor / np.sqrt(sizes), color="black", label="floor")
plt.xticks(sizes, sizes)
plt.minorticks_off()
plt.xlabel("E, output columns")
plt.ylabel("relative error of the kernel")
plt.legend(frameon=False)
plt.show()

# %%
# Four times as many columns E halve the error. A larger D helps until the floor is reached. A small
# D is not only worse but also erratic, because products of degree seven have long tails.
# ``n_up="auto"`` chooses a D beyond which the error falls little. It evaluates variance formulas on
# some pairs of your rows before anything is drawn.

for E in sizes:
    feature_map = CraftMap(kernel, E, random_state=0).fit(X)
    print(f"E = {E:>4}: D = {feature_map.n_up_:>5}, expect {feature_map.expected_error_:.3f}")

# %%
# Conversely, how large must E be for a given error?

for wanted in (0.2, 0.1, 0.05):
    print(f"error {wanted:.2f}: E = {components_for(wanted, kernel, X)}")

# %%
# A kernel error of 0.1 is often small enough, because labels are less sensitive than kernel values.
# Use ``craftmaps.diagnose.compare`` to measure the test error of your task.
