"""
A table with text and holes
===========================

``KernelRegressor`` takes a data frame directly. It encodes its columns, searches for a kernel,
learns from all rows, and says what it did.
"""

# %%
# The table lists flats: numbers, categories, free text, a date, and missing values. The target is
# the rent.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from craftmaps import KernelRegressor

flats = pd.read_csv("flats.csv")
rents = flats.pop("rent").to_numpy()
print(flats.head(4).to_string())
print(f"missing values: {flats.isna().sum().sum()}")
# sphinx_gallery_thumbnail_number = 2

# %%
# One line learns the model. ``budget=256`` limits it to 256 features, which keeps this page quick
# to build; the default is up to 2,048.

model = KernelRegressor(budget=256, random_state=0).fit(flats[:700], rents[:700])

# %%
# The summary says what each column became, which kernels were tried, and what error to expect on
# new rows.

print(model.summary())

# %%
# ``plot`` draws the search: each candidate was judged on rows that it had not learned from. It
# returns a figure, which ``plt.figure`` of matplotlib 3.11 puts into a window;
# ``model.plot("search.png")`` saves it.

plt.figure(model.plot())
plt.show()

# %%
# The last 300 rows were not used above. Here are their predictions, with intervals that should
# contain nine rents in ten.

new, true = flats[700:], rents[700:]
predicted = model.predict(new)
low, high = model.predict_interval(new, coverage=0.9).T
inside = (low <= true) & (true <= high)
print(
    f"R2 {model.score(new, true):.3f}, {inside.mean():.0%} of the rents are inside their interval"
)

# %%
# The intervals are somewhat short. The search weighted the columns with the help of the same rents,
# and the rows that are left out for an interval do not undo that.
#
# The right panel shows what the model has learned about size: the predicted rents of three flats,
# if their size were different and everything else stayed the same.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.vlines(true, low, high, color="C0", alpha=0.3)
left.plot(true, predicted, ".", color="C0", markersize=4)
left.axline((150, 150), slope=1, color="0.3", linewidth=1)
left.set(xlabel="rent", ylabel="predicted rent")
sizes = np.linspace(20, 140, 60)
for row in range(3):
    copies = flats[700 + row : 701 + row].loc[lambda rows: rows.index.repeat(60)]
    district = copies["district"].iloc[0]
    right.plot(sizes, model.predict(copies.assign(size=sizes)), label=f"a flat in {district}")
right.set(xlabel="size", ylabel="predicted rent")
right.legend(frameon=False)
plt.show()

# %%
# A table with its columns in another order, with further columns, or with words that ``fit`` has
# not seen works too. ``model.save("flats.craft")`` keeps the encoding and the model in one file,
# and ``craftmaps.export_onnx(model, "flats.onnx")`` writes an ONNX model with one input for each
# column.

odd = {"words": ["sunny loft with a view"], "district": ["Seaside"], "size": [64.0]}
odd |= {"built": [np.nan], "floor": [None], "listed": ["2024-05-01"], "page": [3]}
print(f"rent of a flat in an unknown district: {model.predict(odd)[0]:.0f}")
