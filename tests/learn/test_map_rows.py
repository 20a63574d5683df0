"""The rows that a map is fitted on: the same in every way to learn, and a fair sample of all."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.frozen import FrozenEstimator

from craftmaps import Gaussian, Nystroem, OnePassClassifier, OnePassRegressor
from craftmaps.learn.map_rows import StreamSample, sample_places, sample_size
from craftmaps.scale import blocks

N = 700


class Recorder(TransformerMixin, BaseEstimator):
    """Remembers the rows that it was fitted on."""

    def __init__(self, n_components=None):
        self.n_components = n_components

    def fit(self, X, y=None):
        self.seen_ = X.toarray() if sparse.issparse(X) else np.array(X)
        self.targets_ = np.array(y)
        return self

    def transform(self, X):
        return X


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).standard_normal((N, 3))
    return X, X[:, 0] * X[:, 1]


def cut(X, y, size):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, X.shape[0], size)]


def shuffled(sizes):
    """A cut of N rows into blocks of the given sizes, over and over."""
    ends = np.cumsum(np.resize(sizes, N))
    ends = ends[ends < N]
    return list(zip([0, *ends], [*ends, N], strict=True))


@pytest.mark.parametrize("size", [1, 5, 100, N - 1, N, N + 1])
@pytest.mark.parametrize("block", [1, 64, N])
def test_a_stream_of_unknown_length_is_sampled_at_the_same_places(rows, size, block):
    X, y = rows
    sample = StreamSample(size)
    for some_X, some_y in cut(X, y, block):
        sample.add(some_X, some_y)
        assert sample._held <= 2 * size + block
    places = sample_places(N, size)
    assert len(places) == min(size, N)
    np.testing.assert_array_equal(sample.rows()[0], X[places])
    np.testing.assert_array_equal(sample.rows()[1], y[places])


@pytest.mark.parametrize("map_rows", [50, None, N])
@pytest.mark.parametrize("sizes", [(1,), (33,), (400, 7), (N,)])
def test_fit_and_fit_blocks_in_any_cut_give_the_same_map(rows, map_rows, sizes):
    X, y = rows
    whole = OnePassRegressor(Recorder(), map_rows=map_rows).fit(X, y)
    expected = X if map_rows != 50 else X[sample_places(N, 50)]
    np.testing.assert_array_equal(whole.feature_map_.seen_, expected)
    pieces = [(X[start:stop], y[start:stop]) for start, stop in shuffled(sizes)]
    streamed = OnePassRegressor(Recorder(), map_rows=map_rows).fit_blocks(pieces)
    np.testing.assert_array_equal(streamed.feature_map_.seen_, expected)
    np.testing.assert_array_equal(streamed.feature_map_.targets_, whole.feature_map_.targets_)
    np.testing.assert_allclose(streamed.coef_, whole.coef_, atol=1e-9)
    assert streamed.n_samples_seen_ == N


def test_files_and_sparse_blocks_are_sampled_alike(rows, tmp_path):
    X, y = rows
    expected = X[sample_places(N, 50)]
    np.save(tmp_path / "Xy.npy", np.column_stack([X, y]))
    for size in (40, 701):
        read = blocks.read(tmp_path / "Xy.npy", target=-1, block_rows=size)
        model = OnePassRegressor(Recorder(), map_rows=50).fit_blocks(read)
        np.testing.assert_array_equal(model.feature_map_.seen_, expected)
    pieces = [(sparse.csr_matrix(some), target) for some, target in cut(X, y, 90)]
    model = OnePassRegressor(Recorder(), map_rows=50).fit_blocks(pieces)
    np.testing.assert_array_equal(model.feature_map_.seen_, expected)


@pytest.mark.parametrize("size", [1, 30, 50, 64, N])
def test_an_iterator_gives_its_first_rows(rows, size):
    X, y = rows
    whole = OnePassRegressor(Recorder(), alpha=1.0).fit(X, y)
    buffers = np.empty((N, 3)), np.empty(N)

    def once():
        for start in range(0, N, size):
            n = min(size, N - start)
            for buffer, given in zip(buffers, (X, y), strict=True):
                buffer[:n] = given[start : start + n]
            yield buffers[0][:n], buffers[1][:n]  # the same memory for every block

    model = OnePassRegressor(Recorder(), alpha=1.0, map_rows=50).fit_blocks(once())
    np.testing.assert_array_equal(model.feature_map_.seen_, X[:50])
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    few = OnePassRegressor(Recorder(), alpha=1.0, map_rows=10 * N).fit_blocks(once())
    np.testing.assert_array_equal(few.feature_map_.seen_, X)


def test_partial_fit_samples_its_first_block(rows):
    X, y = rows
    model = OnePassRegressor(Recorder(), map_rows=50).partial_fit(X[:600], y[:600])
    model.partial_fit(X[600:], y[600:])
    np.testing.assert_array_equal(model.feature_map_.seen_, X[sample_places(600, 50)])


def test_components_get_two_rows_each():
    assert sample_size(Recorder(), 50) == 50
    assert sample_size(Recorder(20), 50) == 50
    assert sample_size(Recorder(40), 50) == 80
    assert sample_size(Recorder(40), None) is None


def test_a_map_that_is_not_fitted_takes_no_pass_of_its_own(rows):
    X, y = rows

    class Counted:
        """Blocks that can be read again, and count how many were."""

        def __init__(self):
            self.read = 0

        def __iter__(self):
            for block in cut(X, y, 100):
                self.read += 1
                yield block

    frozen = FrozenEstimator(Recorder().fit(X))
    for feature_map, passes in ((None, 1), (frozen, 1), (Recorder(), 2)):
        pieces = Counted()
        OnePassRegressor(feature_map).fit_blocks(pieces)
        assert pieces.read == passes * 7


def test_a_resumed_fit_takes_the_map_from_its_checkpoint(rows, tmp_path):
    X, y = rows
    feature_map = Nystroem(Gaussian(1.0), 20, random_state=0)

    def stopped():
        yield from cut(X, y, 100)[:4]
        raise KeyboardInterrupt

    options = {"checkpoint": tmp_path, "checkpoint_every": 0}
    with pytest.raises(KeyboardInterrupt):
        OnePassRegressor(feature_map, map_rows=100).fit_blocks(stopped(), **options)
    resumed = OnePassRegressor(feature_map, map_rows=100).fit_blocks(cut(X, y, 100), **options)
    first = OnePassRegressor(feature_map, map_rows=100).fit_blocks(iter(cut(X, y, 100)))
    np.testing.assert_array_equal(resumed.coef_, first.coef_)


def test_classes_still_come_from_the_first_block(rows):
    X, labels = rows[0], np.arange(N) // 300
    with pytest.raises(ValueError, match=r"labels \[2\] are not among the 2 classes"):
        OnePassClassifier(Recorder()).fit_blocks(cut(X, labels, 400))
    model = OnePassClassifier(Recorder()).fit_blocks(cut(X, labels, 400), classes=range(3))
    assert model.classes_.tolist() == [0, 1, 2]


def test_a_sorted_stream_gets_as_good_a_map_as_a_shuffled_one():
    """Landmarks of the first rows alone would lie on one side of the data."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (6000, 2))
    y = X[:, 0] + np.sin(3 * X[:, 1])
    train, test = slice(0, 5000), slice(5000, None)
    model = OnePassRegressor(Nystroem(Gaussian(1.0), 60, random_state=0), map_rows=500)
    order = np.argsort(y[train])
    by_target = cut(X[order], y[order], 250)

    def error(blocks):
        return np.sqrt(np.mean((model.fit_blocks(blocks).predict(X[test]) - y[test]) ** 2))

    shuffled, ordered, first_rows = map(
        error, (cut(X[train], y[train], 250), by_target, iter(by_target))
    )
    assert ordered < 1.25 * shuffled
    assert first_rows > 2 * ordered  # so that a map of the first rows would be noticed


def test_wrong_map_rows_are_named(rows):
    for wrong in (0, 2.5, "all"):
        with pytest.raises(ValueError, match="map_rows must be None or an integer"):
            OnePassRegressor(map_rows=wrong).fit(*rows)
