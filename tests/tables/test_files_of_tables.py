"""Tables of files: the same numbers from CSV and Parquet, and bounded memory."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import tables_of
from craftmaps import FourierFeatures, Gaussian, KernelClassifier, TableEncoder, scale

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_encoded_as_the_table_in_memory(kind, tmp_path):
    data = {name: column for name, column in tables_of.columns(300).items() if name != "took"}
    labels = np.array(["old" if (age or 0) > 45 else "young" for age in data["age"]])
    table = pa.table(data | {"label": labels.tolist()})
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        csv.write_csv(table, path)
    else:
        parquet.write_table(table, path)
    feature_map = FourierFeatures(Gaussian(gamma=0.05), 40, random_state=0)
    learner = KernelClassifier(feature_map, loss="squared", alpha=1.0, map_rows=100)
    expected = learner.fit(data, labels)
    blocks = scale.blocks.read(path, target="label", block_rows=64)
    model = clone(learner).fit_blocks(blocks, classes=np.unique(labels))
    assert model.encoder_.is_like(expected.encoder_)
    encoded = expected.encoder_.transform(data)
    parts = [model.encoder_.transform(X) for X, *_ in blocks]
    np.testing.assert_array_equal(np.concatenate(parts), encoded)
    np.testing.assert_allclose(
        model.predict_proba(data), expected.predict_proba(data), rtol=0, atol=1e-5
    )


def test_lazy_frames_of_other_engines_are_refused():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(tables_of.as_pandas(tables_of.columns()), npartitions=2)
    with pytest.raises(TypeError, match=r"use craftmaps\.scale\.dask or craftmaps\.scale\.spark"):
        TableEncoder().fit(frame)


PROGRAM = """
import resource, sys
import numpy as np
from craftmaps import FourierFeatures, KernelClassifier

class Blocks:  # 100 blocks of as many rows as asked for, each made when it is asked for
    def __init__(self, n_rows):
        self.n_rows_of_block = n_rows // 100

    def __iter__(self):
        for i in range(100):
            rng = np.random.default_rng(i)
            n = self.n_rows_of_block
            x = rng.normal(size=n)
            words = np.array(["red", "green", None], dtype=object)[rng.integers(0, 3, n)]
            names = np.array([f"name {j}" for j in range(1000)], dtype=object)
            X = {"x": np.where(x > 2, np.nan, x), "word": words,
                 "name": names[rng.integers(0, 1000, n)],
                 "day": np.datetime64("2020-01-01") + rng.integers(0, 900, n)}
            yield X, x > 0

def fit(n_rows):
    feature_map = FourierFeatures(n_components=16, random_state=0)
    model = KernelClassifier(feature_map, loss="squared", alpha=1.0, map_rows=1000)
    model.fit_blocks(Blocks(n_rows), classes=[False, True])
    assert model.n_samples_seen_ == n_rows
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

small = fit(10_000)
print(fit(int(sys.argv[1])) - small)
"""


@pytest.mark.slow
def test_a_long_stream_of_tables_takes_the_memory_of_a_few_blocks():
    """Encoded, 10^6 rows would be 350 MB; a block of 10^4 rows is 3.5 MB."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "1000000"], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 120_000  # KiB
