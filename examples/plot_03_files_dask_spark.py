"""
From Parquet files to Dask to Spark
===================================

One estimator learns from files, with Dask, and with Spark. The results are ordinary estimators, and
they agree.
"""

# %%
# The rows are in a few Parquet files.

import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import normalize

from craftmaps import CraftMap, OnePassClassifier, Polynomial
from craftmaps.scale import blocks

X, y = make_classification(
    20_000, 20, n_informative=8, n_redundant=0, n_classes=3, class_sep=1.5, random_state=0
)
X = normalize(X).astype(np.float32)
names = [f"x{i}" for i in range(20)]
folder = Path(tempfile.mkdtemp())
for part in range(4):
    table = pd.DataFrame(X[part::4], columns=names).assign(label=y[part::4])
    table.to_parquet(folder / f"part-{part}.parquet")

# %%
# The map is fitted once, so that all three estimators learn from the same features.

feature_map = CraftMap(Polynomial(degree=4), n_components=256, random_state=0).fit(X[:2000])
estimator = OnePassClassifier(FrozenEstimator(feature_map))

# %%
# **Files, one process.** The next blocks are read while the learner works. The memory does not grow
# with the files.

rows = blocks.read(f"{folder}/*.parquet", target="label")
models = {"files": estimator.fit_blocks(rows, classes=[0, 1, 2])}

# %%
# **Dask.** The same fit runs on the workers of the current client, or on threads, as here.

import dask.dataframe as dd

import craftmaps.scale.dask

frame = dd.read_parquet(f"{folder}/*.parquet")
models["Dask"] = craftmaps.scale.dask.fit(estimator, frame[names], frame["label"])

# %%
# **Spark.** The executors sum up their partitions, and the sums are merged in a tree. Spark needs
# Java.

if shutil.which("java"):
    from pyspark.sql import SparkSession

    import craftmaps.scale.spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    table = spark.read.parquet(str(folder))
    models["Spark"] = craftmaps.scale.spark.fit(estimator, table, features=names, target="label")
    spark.stop()
else:
    print("There is no Java on this machine: Spark is left out.")

# %%
# Each point is a weight. All points lie on the diagonal, because it does not matter where the sums
# were computed.

reference = models["files"].coef_.ravel()
plt.figure(figsize=(4.6, 4.2), layout="constrained")
plt.axline((0, 0), slope=1, color="0.7", linewidth=1)
for (name, model), marker in zip(list(models.items())[1:], "o+", strict=False):
    plt.plot(reference, model.coef_.ravel(), marker, markersize=5, fillstyle="none", label=name)
plt.xlabel("weight learned from files")
plt.ylabel("weight learned on a cluster")
plt.legend(frameon=False)
plt.show()

# %%

print(f"{models['files'].score(X, y):.3f} of the rows right")
for name, model in models.items():
    far = np.abs(model.coef_.ravel() - reference).max() / np.abs(reference).max()
    print(f"{name:<6} {model.n_samples_seen_} rows, weights differ by {far:.0e} of the largest")

shutil.rmtree(folder)
