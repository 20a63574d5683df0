"""Learners on Dask: real processes, real losses, the same result."""

import os
import signal
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_info

from craftmaps import (
    Gaussian,
    KernelClassifier,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
)
from craftmaps.learn.map_rows import sample_places
from craftmaps.scale.cluster import fold
from craftmaps.threads import n_threads
from rounding import assert_equal_to_rounding

dask = pytest.importorskip("dask", reason="Dask is missing: pip install 'craftmaps[dask]'")
distributed = pytest.importorskip("distributed", reason="distributed is missing")
pd = pytest.importorskip("pandas", reason="pandas is missing")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from craftmaps.scale.dask import fit, predict  # noqa: E402

METHODS = ("predict", "predict_proba", "decision_function")


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).standard_normal((3000, 6))
    return X, np.array(["no", "yes", "maybe"])[(X[:, 0] * X[:, 1] > 0) + 1 * (X[:, 2] > 1)]


@pytest.fixture(scope="module")
def feature_map(data):
    return FrozenEstimator(RandomMaclaurin(Polynomial(2), 50, random_state=0).fit(data[0]))


@pytest.fixture(scope="module")
def local(data, feature_map):
    return OnePassClassifier(feature_map).fit(*data)


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as running,
        distributed.Client(running) as client,
    ):
        yield client


def arrays(data, rows=400):
    X, y = data
    return da.from_array(X, chunks=(rows, 6)), da.from_array(y, chunks=rows)


def assert_same(found, local, X):
    np.testing.assert_array_equal(found.classes_, local.classes_)
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    np.testing.assert_allclose(found.predict_proba(X), local.predict_proba(X), atol=1e-8)
    assert found.n_samples_seen_ == len(X)


def test_equals_the_local_fit_bit_for_bit_the_same_again(cluster, data, feature_map, local):
    X, y = arrays(data)
    found, again = (fit(OnePassClassifier(feature_map), X, y) for _ in range(2))
    assert_same(found, local, data[0])
    np.testing.assert_array_equal(found.coef_, again.coef_)
    assert found.temperature_ == again.temperature_
    for method in METHODS:
        lazy = predict(found, X, method)
        expected = getattr(found, method)(data[0])
        assert lazy.chunks[0] == X.chunks[0]
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        assert_equal_to_rounding(lazy.compute(), expected)


@pytest.mark.slow
def test_the_log_loss_equals_the_local_fit(cluster, data, feature_map):
    """Chunks of known and of unknown lengths, for the same places of rows."""
    X, y = arrays(data)
    estimator = KernelClassifier(feature_map, class_weight="balanced", alpha=[100.0, 1000.0])
    local = clone(estimator).fit(*data)
    for rows in ((X, y), (X[X[:, 0] > -100], y[X[:, 0] > -100])):
        found = fit(estimator, *rows)
        assert found.alpha_ == local.alpha_
        scores = predict(found, X, "decision_function").compute()
        np.testing.assert_allclose(scores, local.decision_function(data[0]), atol=1e-5)


def test_class_sums_equal_the_local_fit(cluster, data, feature_map):
    local = OnePassClassifier(feature_map, class_weight="balanced").fit(*data)
    model = OnePassClassifier(feature_map, class_weight="balanced", class_sums=True)
    assert_same(fit(model, *arrays(data)), local, data[0])


def test_other_cuts_of_columns_labels_and_rows(cluster, data, feature_map, local):
    X, y = da.from_array(data[0], chunks=(700, 4)), da.from_array(data[1], chunks=900)
    assert_same(fit(OnePassClassifier(feature_map), X, y), local, data[0])


def test_a_map_is_fitted_once(cluster, data):
    drawn = RandomMaclaurin(Polynomial(2), 50, projection="gaussian")  # no random_state
    X, y = arrays(data)
    found = fit(OnePassClassifier(drawn), X, y, map_rows=1000)
    again = OnePassClassifier(FrozenEstimator(found.feature_map_)).fit(*data)
    assert_same(found, again, data[0])


def test_a_map_is_fitted_on_the_rows_of_a_local_fit(cluster, data):
    """Also where the rows are sorted, and whatever is known about the partitions."""
    X, y = (part[np.argsort(data[0][:, 0])] for part in data)
    places = sample_places(len(X), 300)
    landmarks = Nystroem(Gaussian(0.1), 40, landmarks="kmeans", random_state=0)
    fixed = FrozenEstimator(clone(landmarks).fit(X[places], y[places]))
    local = OnePassClassifier(fixed).fit(X, y)
    known, unknown = arrays((X, y)), arrays((X, y))
    unknown = [part[known[0][:, 0] > -100] for part in unknown]
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=y)
    frame = dd.from_pandas(frame, npartitions=5)
    cuts = [0, 0, 500, 1700, 3000]  # the first is empty
    delayed = [dask.delayed((X[i:j], y[i:j])) for i, j in pairwise(cuts)]
    for given in (known, unknown, (frame[list("abcdef")], frame["label"]), (delayed,)):
        for classes in (None, np.unique(y)):
            model = OnePassClassifier(landmarks)
            found = fit(model, *given, classes=classes, map_rows=300)
            np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-6, atol=1e-9)
    assert np.abs(local.coef_).max() > 0.1
    regressor = fit(
        OnePassRegressor(landmarks, alpha=1.0), *known[:1], known[0][:, 1], map_rows=300
    )
    expected = OnePassRegressor(fixed, alpha=1.0).fit(X, X[:, 1])
    np.testing.assert_allclose(regressor.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


def test_columns_of_frames_go_by_name(cluster, data, feature_map):
    """Partitions of one frame may have them in another order; a wrong set is named."""
    names = list("abcdef")
    frame = pd.DataFrame(data[0], columns=names)
    parts = [(frame[:1000], data[1][:1000]), (frame[names[::-1]][1000:], data[1][1000:])]
    found = fit(OnePassClassifier(feature_map), [dask.delayed(part) for part in parts])
    expected = OnePassClassifier(feature_map).fit(frame, data[1])
    assert_same(found, expected, frame)
    turned = dd.from_pandas(frame[names[::-1]], npartitions=3)
    np.testing.assert_array_equal(predict(found, turned).compute(), expected.predict(frame))
    for wrong, complaint in (
        (frame.rename(columns={"b": "z"}), "X has no column 'b'; it has a, z, c"),
        (frame.assign(z=0), "X has a column 'z', which was not learned from"),
    ):
        broken = [dask.delayed(part) for part in (parts[0], (wrong[1000:], data[1][1000:]))]
        with pytest.raises(ValueError, match=f"^partition 1: {complaint}"):
            fit(OnePassClassifier(feature_map), broken)
        with pytest.raises(ValueError, match=f"^{complaint}"):
            predict(found, dd.from_pandas(wrong, npartitions=3))


def test_threads_of_dask_and_none_at_all(data, feature_map, local):
    X, y = arrays(data)
    for scheduler in ("threads", "synchronous"):
        with dask.config.set(scheduler=scheduler):
            assert_same(fit(OnePassClassifier(feature_map), X, y), local, data[0])


def test_sparse_chunks(cluster, data, feature_map, local):
    X, y = arrays(data)
    X = X.map_blocks(sparse.csr_matrix)
    found = fit(OnePassClassifier(feature_map), X, y)
    assert_same(found, local, data[0])
    np.testing.assert_array_equal(predict(found, X).compute(), local.predict(data[0]))


def test_data_frames(cluster, data, feature_map):
    frame = pd.DataFrame(data[0], columns=list("abcdef")).assign(label=data[1])
    frame = dd.from_pandas(frame, npartitions=4)
    X = frame[list("abcdef")]
    found = fit(OnePassClassifier(feature_map), X, frame["label"])
    named = OnePassClassifier(feature_map).fit(X.compute(), data[1])
    assert_same(found, named, X.compute())
    assert list(found.feature_names_in_) == list("abcdef")
    for method in METHODS:
        answer = predict(found, X, method).compute()
        assert answer.index.equals(X.index.compute())
        assert_equal_to_rounding(answer, getattr(found, method)(X.compute()))
    several = fit(OnePassRegressor(feature_map, alpha=1.0), X, frame[["a", "b"]])
    assert predict(several, X).compute().shape == (3000, 2)
    only_some = X.loc[10:20]  # three of four partitions are empty
    assert len(predict(found, only_some).compute()) == 11


def test_parquet_files_of_which_one_column_is_the_label(
    cluster, data, feature_map, local, tmp_path
):
    """Dask would read the one column of several files at once, and all columns file by file."""
    names = list("abcdef")
    frame = pd.DataFrame(data[0], columns=names).assign(label=data[1])
    for number, start in enumerate(range(0, len(frame), 700)):
        frame.iloc[start : start + 700].to_parquet(tmp_path / f"part-{number}.parquet")
    rows = dd.read_parquet(str(tmp_path / "*.parquet"))
    assert len(rows["label"].to_delayed()) < rows.npartitions, "Dask no longer does this"
    found = fit(OnePassClassifier(feature_map), rows[names], rows["label"])
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)


def test_delayed_blocks_weights_and_several_targets(cluster, data, feature_map):
    X, weights = data[0], np.random.default_rng(1).uniform(0, 2, 3000)
    targets = X[:, :2] ** 2
    cuts = [0, 0, 500, 1700, 3000]  # the first is empty
    blocks = [dask.delayed((X[i:j], targets[i:j], weights[i:j])) for i, j in pairwise(cuts)]
    local = OnePassRegressor(feature_map, alpha=1.0).fit(X, targets, weights)
    found = fit(OnePassRegressor(feature_map, alpha=1.0), blocks)
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    whole = [da.from_array(a, chunks=(600, *a.shape[1:])) for a in (X, targets, weights)]
    found = fit(OnePassRegressor(feature_map, alpha=1.0), *whole[:2], sample_weight=whole[2])
    np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-9)
    assert predict(found, whole[0]).shape == (3000, 2)


def test_unknown_chunks(cluster, data, feature_map):
    X, y = arrays(data)
    some = X[:, 0] > 0
    found = fit(OnePassClassifier(feature_map), X[some], y[some])
    mask = data[0][:, 0] > 0
    assert_same(found, OnePassClassifier(feature_map).fit(*(a[mask] for a in data)), data[0][mask])


def test_a_worker_that_is_killed_changes_nothing(cluster, data, feature_map, tmp_path):
    """The process that loads block 3 for the first time is killed after it did other blocks."""
    before = set(cluster.run(os.getpid).values())
    died = tmp_path / "died"

    def load(number, fatal):
        if fatal and number == 3 and not died.exists():
            died.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        rows = slice(number * 375, number * 375 + 375)
        return data[0][rows], data[1][rows]

    def fitted(fatal):
        blocks = [dask.delayed(load, pure=False)(i, fatal) for i in range(8)]
        return fit(OnePassClassifier(feature_map), blocks, classes=np.unique(data[1]))

    found, undisturbed = fitted(fatal=True), fitted(fatal=False)
    assert int(died.read_text()) in before
    np.testing.assert_array_equal(found.coef_, undisturbed.coef_)
    np.testing.assert_array_equal(found.predict_proba(data[0]), undisturbed.predict_proba(data[0]))
    cluster.wait_for_workers(2, timeout=60)


def test_tasks_keep_to_the_thread_of_their_worker(cluster):
    """Whatever the environment says: here it may well allow each of them all cores."""

    def block(number):
        X = np.random.default_rng(number).standard_normal((100, 3))
        return X, X[:, 0]

    class Spy(RandomMaclaurin):
        def transform_into(self, X, out):
            blas = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
            out[:] = max(n_threads(), *blas)
            return out

    spy = FrozenEstimator(Spy(Polynomial(2), 4).fit(block(0)[0]))
    found = fit(OnePassRegressor(spy, alpha=1.0), [dask.delayed(block)(i) for i in range(6)])
    np.testing.assert_array_equal(found._stream.folds[0].z_mean, 1.0)


def test_the_scheduler_sends_one_sum(cluster, data, feature_map, monkeypatch):
    """Sums of partitions stay on the workers: what the caller computes is a single value."""
    computed = []
    original = dask.compute
    monkeypatch.setattr(dask, "compute", lambda *a: computed.append(original(*a)) or computed[-1])
    fit(OnePassClassifier(feature_map), *arrays(data), classes=np.unique(data[1]))
    assert [len(result) for result in computed] == [1, 1]  # the first row, and the sums
    assert isinstance(computed[1][0], bytes)


def test_intervals_and_sets(data, feature_map):
    X, y = arrays(data)
    regressor = fit(OnePassRegressor(feature_map), X, X[:, 0])
    ends = predict(regressor, X, "predict_interval")
    assert ends.shape == (3000, 2)
    np.testing.assert_allclose(
        ends.compute(), regressor.predict_interval(data[0]), rtol=1e-4, atol=1e-4
    )
    classifier = fit(OnePassClassifier(feature_map), X, y)
    sets = predict(classifier, X, "predict_set").compute()
    assert np.array_equal(sets, classifier.predict_set(data[0]))
    frame = dd.from_pandas(pd.DataFrame(data[0]), npartitions=4)
    columns = predict(regressor, frame, "predict_interval").compute().columns
    assert columns.tolist() == ["lower", "upper"]


def test_complaints(data, feature_map):
    X, y = arrays(data)
    model = OnePassClassifier(feature_map)
    with pytest.raises(ValueError, match=r"^X has 3000 rows and y has 2000\.$"):
        fit(model, X, y[:2000])
    with pytest.raises(ValueError, match="X has 8 partitions and y has 5, whose lengths are not"):
        fit(model, X[X[:, 0] > 0], y.rechunk(600))
    with pytest.raises(TypeError, match=r"y must be a Dask array or data frame, .* got ndarray"):
        fit(model, X, data[1])
    with pytest.raises(TypeError, match="not a FrozenEstimator; put any other transformer into"):
        fit(feature_map, X, y)
    with pytest.raises(ValueError, match="hold y and sample_weight themselves"):
        fit(model, [dask.delayed(data)], y)
    with pytest.raises(ValueError, match="must be a matrix, got 1 dim"):
        fit(model, y, y)
    frame = dd.from_pandas(pd.DataFrame(data[0]), npartitions=4)
    shorter = dd.from_pandas(pd.Series(data[1][:2000]), npartitions=4)
    with pytest.raises(ValueError, match=r"^partition \d: X has 750 rows and y has 500\.$"):
        fit(model, frame, shorter)
    with pytest.raises(ValueError, match="all partitions are empty"):
        fit(model, X[:0], y[:0], classes=np.unique(data[1]))
    with pytest.raises(ValueError, match=r"^partition 4: Input X contains NaN\.$"):
        fit(model, da.where(da.arange(3000, chunks=400)[:, None] == 1700, np.nan, X), y)
    with pytest.raises(TypeError, match="X must be a Dask array or data frame, got ndarray"):
        predict(model.fit(*data), data[0])
    assert X.npartitions > fold.FAN_IN  # so that the tree of these tests has two levels
