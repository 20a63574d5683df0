"""
A table with text and missing values
====================================

``KernelRegressor`` takes a data frame directly. It encodes the columns, searches for a kernel,
learns from all rows, and reports what it did.
"""

# %%
# The table describes apartments, with numbers, categories, free text, a date, and missing values.
# The target is the rent.

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
# One line fits the model. ``budget=256`` limits it to 256 features, so that this page is quick to
# build. By default, a table of this size gets one feature for each training row.

model = KernelRegressor(budget=256, random_state=0).fit(flats[:700], rents[:700])

# %%
# The summary shows how each column was encoded, which kernels were tried, and what error to expect
# on new rows.

print(model.summary())

# %%
# ``plot`` draws the search. Each candidate was scored on rows that it had not learned from.
# ``model.plot("search.png")`` saves the figure. With matplotlib 3.11, ``plt.figure`` shows it.

plt.figure(model.plot())
plt.show()

# %%
# The last 300 rows were not used above. These are their predictions, with intervals that should
# contain nine of ten rents.

new, true = flats[700:], rents[700:]
predicted = model.predict(new)
low, high = model.predict_interval(new, coverage=0.9).T
inside = (low <= true) & (true <= high)
print(
    f"R2 {model.score(new, true):.3f}, {inside.mean():.0%} of the rents are inside their interval"
)

# %%
# The intervals are slightly too short. The search used the same rents to weight the columns, and
# leaving rows out for the intervals does not undo that.
#
# The right panel shows what the model has learned about size: the predicted rents of three
# apartments if their size were different and everything else stayed the same.

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
# New tables can have their columns in another order, more columns, or words that were not in the
# training rows. ``model.save("flats.craft")`` keeps the encoding and the model in one file,
# and ``craftmaps.export_onnx(model, "flats.onnx")`` writes an ONNX model with one input for each
# column.

odd = {"words": ["sunny loft with a view"], "district": ["Seaside"], "size": [64.0]}
odd |= {"built": [np.nan], "floor": [None], "listed": ["2024-05-01"], "page": [3]}
print(f"rent of a flat in an unknown district: {model.predict(odd)[0]:.0f}")
