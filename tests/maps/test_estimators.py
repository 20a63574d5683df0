"""What every feature map does alike: the scikit-learn way, for any rows, threads and blocks."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import CASES, LEARNING, every_map, innermost, rows
from craftmaps import threads as row_blocks
from craftmaps.diagnose.errors import exact_gram


@parametrize_with_checks([*(case.estimator for case in CASES if case.any_rows), *LEARNING])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def fitted(case, X=None):
    return clone(case.estimator).fit(rows() if X is None else X)


def assert_close(case, found, expected):
    if case.same_bits:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def named(*names):
    return [case for case in CASES if case.name in names]


@every_map
def test_a_fit_that_fails_changes_nothing(case):
    """Half of a new map with half of an old one would write beyond its arrays."""
    X = rows()
    feature_map = fitted(case, X)
    before = feature_map.transform(X)
    feature_map.set_params(n_components=1)
    innermost(feature_map).kernel = "no kernel"
    for wrong in (X[:, :2], np.full_like(X, np.nan)):
        with pytest.raises(ValueError):  # noqa: PT011
            feature_map.fit(wrong)
        assert_close(case, feature_map.transform(X), before)
    fresh = clone(feature_map)
    with pytest.raises(ValueError):  # noqa: PT011
        fresh.fit(X)
    with pytest.raises(NotFittedError):
        fresh.transform(X)


@every_map
def test_clone_pickle_and_memory_maps(case, tmp_path):
    feature_map, X = fitted(case), rows(seed=1)
    Z = feature_map.transform(X)
    unfitted = clone(feature_map)
    with pytest.raises(NotFittedError):
        unfitted.transform(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(feature_map)).transform(X), Z)
    joblib.dump(feature_map, tmp_path / "map.joblib")
    read_only = joblib.load(tmp_path / "map.joblib", mmap_mode="r")
    np.testing.assert_array_equal(read_only.transform(X), Z)


@every_map
def test_the_seed_decides(case):
    X = rows()
    Z = fitted(case).transform(X)
    feature_map = fitted(case)
    np.testing.assert_array_equal(feature_map.transform(X), Z)
    np.testing.assert_array_equal(feature_map.transform(X), Z)  # applying draws nothing
    np.testing.assert_array_equal(feature_map.fit(X).transform(X), Z)
    np.testing.assert_array_equal(feature_map.fit_transform(X), Z)
    assert not np.array_equal(clone(case.estimator).set_params(random_state=1).fit_transform(X), Z)


@every_map
def test_kinds_of_random_state(case):
    X = rows()

    def features(state):
        feature_map = clone(case.estimator)
        innermost(feature_map).random_state = state
        return feature_map.fit_transform(X)

    def states():
        return np.random.RandomState(7), np.random.default_rng(7)

    for one, same in zip(states(), states(), strict=True):
        np.testing.assert_array_equal(features(one), features(same))
        assert not np.array_equal(features(one), features(same)[:, ::-1])
    np.testing.assert_array_equal(features(7), features(np.int64(7)))
    assert not np.array_equal(features(None), features(None))
    with pytest.raises(ValueError, match="seven"):
        features("seven")


@every_map
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_are_the_same_rows(case, make):
    X = rows()
    dense = fitted(case)
    from_sparse = clone(case.estimator).fit(make(X))
    for feature_map in (dense, from_sparse):
        Z = feature_map.transform(make(X))
        assert type(Z) is np.ndarray
        np.testing.assert_allclose(Z, dense.transform(X), rtol=1e-9, atol=1e-11)


@every_map
def test_sparse_rows_in_disorder(case):
    """Unsorted columns, explicit zeros, empty rows, entries that come twice."""
    data = np.array([0.25, 0.5, 0.0, 0.25, -0.5, 0.25])
    indices = np.array([7, 2, 3, 7, 12, 0])
    S = sparse.csr_matrix((data, indices, [0, 4, 4, 6]), shape=(3, 13))
    before = S.copy()
    Z = fitted(case).transform(S)
    np.testing.assert_allclose(Z, fitted(case).transform(before.toarray()), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(S.data, data)
    np.testing.assert_array_equal(S.indices, indices)


@every_map
def test_single_precision(case):
    X = rows()
    feature_map = fitted(case)
    expected = feature_map.transform(X)
    for make in (np.asarray, sparse.csr_matrix):
        single = feature_map.transform(make(X.astype(np.float32)))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    both = clone(case.estimator).fit(X.astype(np.float32)).transform(X.astype(np.float32))
    gram = both.astype(float) @ both.T
    assert np.abs(gram - expected @ expected.T).max() <= 0.2 * np.abs(gram).max()


@every_map
def test_rows_in_any_form(case):
    X = rows()
    feature_map = fitted(case)
    Z = feature_map.transform(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    wide = np.zeros((40, 26))
    wide[:, ::2] = X
    for same in (read_only, np.asfortranarray(X), wide[:, ::2], X.tolist(), X[::-1].copy()[::-1]):
        assert_close(case, feature_map.transform(same), Z)
        assert_close(case, clone(case.estimator).fit(same).transform(X), Z)
    np.testing.assert_array_equal(read_only, X)
    assert not Z.flags.owndata or Z.flags.writeable
    whole = (10 * X).round().astype(int)
    small = clone(case.estimator).fit(whole / 20)
    assert small.transform(np.sign(whole)).dtype == np.float64
    np.testing.assert_array_equal(
        small.transform(np.sign(whole)), small.transform(np.sign(whole).astype(float))
    )


@every_map
def test_one_row_and_blocks_of_rows(case):
    """A row's features are its own: the same whichever rows come with it."""
    X = rows(700)
    feature_map = fitted(case)
    Z = feature_map.transform(X)
    for cuts in ([1, 2, 3], [100, 101, 613], [512]):
        blocks = [feature_map.transform(block) for block in np.split(X, cuts)]
        assert_close(case, np.concatenate(blocks), Z)
    assert_close(case, feature_map.transform(X[5:6]), Z[5:6])
    if not case.landmarks:
        assert fitted(case, X[:1]).transform(X[:1]).shape == (1, feature_map.n_components)


@every_map
def test_threads_do_not_matter(case, monkeypatch):
    X = rows(700)
    feature_map = fitted(case)
    Z = feature_map.transform(X)
    for threads in (1, 2, 3):
        monkeypatch.setattr(row_blocks.config, "NUMBA_NUM_THREADS", threads)
        assert_close(case, feature_map.transform(X), Z)
        np.testing.assert_array_equal(fitted(case).transform(X[:3]), feature_map.transform(X[:3]))
    with ThreadPoolExecutor(4) as pool:
        for same in pool.map(feature_map.transform, [X] * 8):
            assert_close(case, same, Z)


@every_map
@pytest.mark.parametrize("d", [1, 2, 3, 8, 100])
def test_any_number_of_columns(case, d):
    X = rows(10, d)
    size = 10 if case.landmarks else 700
    estimator = clone(case.estimator).set_params(n_components=size)
    Z = estimator.fit_transform(X)
    assert Z.shape == (10, size)
    assert np.isfinite(Z).all()
    truth = exact_gram(estimator, X)
    assert np.abs(Z @ Z.T - truth).max() <= 0.9 * truth.max()
    if d == 1 and case.name in ("maclaurin-default", "maclaurin-h01", "maclaurin-complex"):
        np.testing.assert_allclose(Z @ Z.T, truth)  # every product of signs is exact


@every_map
def test_constant_columns_and_rows_of_zeros(case):
    X = rows()
    X[:, 3] = 0.0
    X[:, 4] = 0.25
    X[7] = 0.0
    for given in (X, sparse.csr_matrix(X)):
        Z = clone(case.estimator).fit(given).transform(given)
        assert np.isfinite(Z).all()
    small = clone(case.estimator).set_params(n_components=4) if case.landmarks else case.estimator
    zeros = clone(small).fit(np.zeros((4, 13)))
    Z = zeros.transform(np.zeros((4, 13)))
    np.testing.assert_allclose(Z @ Z.T, exact_gram(zeros, np.zeros((4, 13))), atol=1.5)
    assert np.ptp(Z, axis=0).max() == 0
    assert zeros.transform(X).std() > 0  # what was fitted on zeros still tells rows apart


@every_map
def test_transform_into_a_larger_buffer(case):
    X = rows()
    feature_map = fitted(case)
    Z = feature_map.transform(X)
    for dtype in (np.float64, np.float32):
        out = np.full((50, Z.shape[1]), np.nan, dtype=dtype)
        filled = feature_map.transform_into(X, out)
        assert filled.base is out
        assert filled.shape == Z.shape
        np.testing.assert_allclose(filled, Z, rtol=0, atol=2e-5 * np.abs(Z).max())
        assert np.isnan(out[40:]).all()
    out = np.empty_like(Z)
    assert_close(case, feature_map.transform_into(X, out), Z)
    assert_close(case, feature_map.transform_into(sparse.csr_matrix(X), out), Z)


@every_map
def test_buffers_that_do_not_fit_are_refused(case):
    X = rows()
    feature_map = fitted(case)
    D = feature_map.n_components
    locked = np.empty((40, D))
    locked.flags.writeable = False
    bad = [
        np.empty((39, D)),
        np.empty((40, D + 1)),
        np.empty((40, D - 1)),
        np.empty(40 * D),
        np.empty((40, D), order="F"),
        np.empty((40, 2 * D))[:, ::2],
        np.empty((40, D), dtype=int),
        np.empty((40, D), dtype=np.float16),
        locked,
    ]
    for out in bad:
        with pytest.raises(ValueError, match=rf"at least 40 rows and exactly {D} columns, got "):
            feature_map.transform_into(X, out)
    with pytest.raises(NotFittedError):
        clone(feature_map).transform_into(X, locked)


@every_map
def test_bad_rows_meet_the_usual_errors(case):
    feature_map, X = fitted(case), rows()
    for value, words in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = X.copy()
        bad[3, 2] = value
        for given in (bad, sparse.csr_matrix(bad)):
            with pytest.raises(ValueError, match=words):
                feature_map.transform(given)
            with pytest.raises(ValueError, match=words):
                clone(case.estimator).fit(given)
            with pytest.raises(ValueError, match=words):
                feature_map.transform_into(given, np.empty((40, feature_map.n_components)))
    with pytest.raises(ValueError, match=r"12 features, but .* is expecting 13"):
        feature_map.transform(X[:, :12])
    with pytest.raises(ValueError, match="could not convert string to float"):
        feature_map.transform([["a"] * 13])
    for empty, words in ((np.empty((0, 13)), "0 sample"), (np.empty((3, 0)), "0 feature")):
        with pytest.raises(ValueError, match=words):
            clone(case.estimator).fit(empty)
    with pytest.raises(ValueError, match="0 sample"):
        feature_map.transform(np.empty((0, 13)))
    with pytest.raises(ValueError, match="2D array"):
        feature_map.transform(X[0])


@every_map
@pytest.mark.parametrize("size", [0, -3, 2.5, "many", None, True])
def test_number_of_components_is_checked(case, size):
    with pytest.raises(ValueError, match=rf"n_components must be an integer .*got {size!r}"):
        clone(case.estimator).set_params(n_components=size).fit(rows())


@every_map
def test_unknown_kernels_are_named(case):
    feature_map = clone(case.estimator)
    innermost(feature_map).kernel = "cubic"
    with pytest.raises(ValueError, match=r"kernel must be .* got 'cubic'"):
        feature_map.fit(rows())


@every_map
def test_names_and_frames(case):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rows(), columns=[f"c{i}" for i in range(13)])
    feature_map = clone(case.estimator).set_output(transform="pandas").fit(X)
    assert feature_map.feature_names_in_.tolist() == list(X.columns)
    frame = feature_map.transform(X)
    name = type(feature_map).__name__.lower()
    assert list(frame.columns) == [f"{name}{i}" for i in range(feature_map.n_components)]
    assert feature_map.get_feature_names_out().tolist() == list(frame.columns)
    assert_close(case, frame.to_numpy(), fitted(case).transform(rows()))
    with pytest.raises(ValueError, match="feature names"):
        feature_map.transform(X[X.columns[::-1]])


@every_map
def test_a_fitted_map_keeps_what_was_fitted(case):
    """Parameters that are set later wait for the next `fit`, those of the kernel too."""
    X = rows()
    feature_map = clone(case.estimator).fit(X)
    Z = feature_map.transform(X)
    gamma = "kernel__inner__gamma" if case.name == "compositional" else "kernel__gamma"
    feature_map.set_params(n_components=33, random_state=5)
    innermost(feature_map).set_params(**{gamma: 0.25})
    np.testing.assert_array_equal(feature_map.transform(X), Z)
    assert feature_map.fit_transform(X).shape == (40, 33)
    while hasattr(feature_map, "feature_map_"):
        feature_map = feature_map.feature_map_
    assert feature_map.kernel_.get_params()[gamma.removeprefix("kernel__")] == 0.25
    assert innermost(case.estimator).get_params()[gamma] != 0.25


@pytest.mark.parametrize(
    "case", named("maclaurin-default", "tensor-sketch", "craft"), ids=lambda case: case.name
)
def test_grid_search_over_the_kernel(case):
    X = rows(120)
    y = X[:, 1] * X[:, 2] > 0
    pipeline = make_pipeline(clone(case.estimator), RidgeClassifier())
    step = pipeline.steps[0][0]
    grid = {f"{step}__kernel__degree": [1, 2, 3], f"{step}__n_components": [50, 200]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise")
    search.set_params(n_jobs=2 if case.name == "craft" else None).fit(X, y)
    assert search.best_params_[f"{step}__kernel__degree"] > 1  # the sign of a product
    assert search.best_estimator_[0].kernel_.degree > 1
    assert case.estimator.kernel.degree == 3


@pytest.mark.parametrize(
    "case",
    named("maclaurin-default", "maclaurin-complex", "tensor-sketch"),
    ids=lambda case: case.name,
)
def test_memory_of_transform_is_its_output(case):
    """Whatever rows, columns and components: a few MB beside the output, and no D x d matrix."""
    X = np.random.default_rng(0).random((300, 3000), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    feature_map = clone(case.estimator).set_params(n_components=20_000).fit(X)
    assert len(pickle.dumps(feature_map)) < 0.05 * 4 * 3000 * 20_000
    feature_map.transform(X[:2])
    out = np.empty((300, 20_000), dtype=np.float32)
    tracemalloc.start()
    feature_map.transform_into(X, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6
