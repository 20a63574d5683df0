"""
How many features: choosing D and E
===================================

``CraftMap`` makes D features and folds them to E. E is what your learner pays for; D is cheap.
What does each buy?
"""

# %%
# The error of kernel values on the digits, measured for several D and E, with a kernel of high
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
# The floor is the least error of any map that does not look at the data: sqrt(k(x,x) k(y,y) +
# k(x,y)^2) / sqrt(E), relative to the kernel.

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
# Four times E halve the error. A larger D helps until the floor is reached, and then no more; a
# small D is not only worse but erratic, since products of degree seven have long tails.
# ``n_up="auto"`` stops where D adds little: it evaluates variance formulas on some pairs of your
# rows before anything is drawn.

for E in sizes:
    feature_map = CraftMap(kernel, E, random_state=0).fit(X)
    print(f"E = {E:>4}: D = {feature_map.n_up_:>5}, expect {feature_map.expected_error_:.3f}")

# %%
# The other way round: how large must E be for a given error?

for wanted in (0.2, 0.1, 0.05):
    print(f"error {wanted:.2f}: E = {components_for(wanted, kernel, X)}")

# %%
# A kernel error of a tenth is often enough, as labels are less delicate than kernel values: let
# the test error of your task decide, with ``craftmaps.diagnose.compare``.
