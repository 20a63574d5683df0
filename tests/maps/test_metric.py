"""MetricMap: what matters to the targets is found and used, where there is something to find."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler

from cases import rows
from craftmaps import (
    CraftMap,
    FourierFeatures,
    Gaussian,
    MetricMap,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
)
from craftmaps.maps import craft, metric

INNER = CraftMap(Polynomial(3), 64, random_state=0)


def along(direction, n=600, seed=0):
    """Rows, and targets that change along one direction only."""
    X = np.random.default_rng(seed).normal(size=(n, len(direction)))
    return X, np.sin(2 * X @ direction)


@pytest.mark.parametrize("power", [0.25, "auto"])
def test_the_direction_that_matters_is_stretched(power):
    """Not a column but a sum of columns; targets in disorder have none."""
    direction = np.array([3.0, -4.0, 0, 0, 0, 0, 0, 0]) / 5
    X, y = along(direction)
    found = MetricMap(FourierFeatures(Gaussian("median"), 64, random_state=0), power=power)
    root = found.fit(X, y).metric_root_
    np.testing.assert_allclose(root, root.T)
    values, vectors = np.linalg.eigh(root)
    assert abs(vectors[:, -1] @ direction) > 0.99
    assert values[-1] > 1.5 * values[-2]
    np.testing.assert_allclose(np.linalg.norm(X @ root), np.linalg.norm(X), rtol=0.05)
    shuffled = np.random.default_rng(1).permutation(y)
    lost = clone(found).set_params(power=0.25).fit(X, shuffled).metric_root_
    values, vectors = np.linalg.eigh(lost)
    assert values[-1] < 1.5 * values[-2]


def test_predictions_are_better_than_without():
    """Whether two of twelve columns have the same sign, by kinds of maps and of targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1800, 12))
    product = X[:, 0] * X[:, 1]
    train, test = slice(1000), slice(1000, None)
    same = product > 0
    for inner in (INNER, Nystroem(Polynomial(3), 64, random_state=0)):
        plain, seen = (
            OnePassClassifier(one).fit(X[train], same[train]).score(X[test], same[test])
            for one in (ScaledMap(inner), MetricMap(inner))
        )
        assert seen > plain + 0.1
    both = np.column_stack([product, -product])
    plain, seen = (
        OnePassRegressor(one).fit(X[train], both[train]).score(X[test], both[test])
        for one in (INNER, MetricMap(INNER, unit_norm=False))
    )
    assert seen > plain + 0.1


def test_labels_of_many_classes():
    """More classes than gradients that are taken one by one."""
    direction = np.array([1.0, 0, 0, 0, 0, 0])
    X, _ = along(direction, n=900)
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0, 1, 41)[1:-1])).astype(str)
    assert len(np.unique(y)) == 40
    found = MetricMap(INNER, power=0.25).fit(X, y)
    assert abs(np.linalg.eigh(found.metric_root_)[1][0, -1]) > 0.99


@pytest.mark.parametrize("case", ["power", "targets", "rows"])
def test_rows_stay_as_they_are(case):
    """Where that is asked for, targets are all the same, or rows are few."""
    X, y = along(np.array([1.0, 0, 0]), n=20 if case == "rows" else 100)
    if case == "targets":
        y = np.full(100, 3.0)
    found = MetricMap(INNER, power=0 if case == "power" else "auto").fit(X, y)
    assert found.power_ == 0
    assert found.metric_root_ is None
    expected = ScaledMap(INNER).fit(X).transform(X)
    np.testing.assert_allclose(found.transform(X), expected, rtol=1e-12)


def test_a_choice_that_pays():
    """A steep column that is easy hides one that is not: a metric would harm, and is not taken."""
    X, y = along(np.array([1.0, 0, 0, 0, 0, 0, 0, 0]))
    inner = FourierFeatures(Gaussian("median"), 64, random_state=0)
    assert MetricMap(inner, unit_norm=False).fit(X, y).power_ == 0.25
    X = np.random.default_rng(0).uniform(-1, 1, size=(1500, 2))
    y = 50 * X[:, 0] + np.sin(8 * X[:, 1])
    inner = FourierFeatures(Gaussian(2.0), 128, random_state=0)
    harmed, chosen = (
        OnePassRegressor(MetricMap(inner, power=power, unit_norm=False)).fit(X[:900], y[:900])
        for power in (0.25, "auto")
    )
    assert chosen.feature_map_.power_ == 0
    errors = [np.mean((one.predict(X[900:]) - y[900:]) ** 2) for one in (harmed, chosen)]
    assert errors[0] > 10 * errors[1]


def test_sparse_and_single_rows():
    X, y = along(np.array([0.6, 0.8, 0, 0, 0]), n=200)
    X[np.abs(X) < 0.5] = 0
    dense = MetricMap(INNER).fit(X, y)
    Z = dense.transform(X)
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix):
        np.testing.assert_allclose(dense.transform(make(X)), Z, rtol=1e-9, atol=1e-12)
        from_sparse = MetricMap(INNER).fit(make(X), y)
        np.testing.assert_allclose(from_sparse.transform(X), Z, rtol=1e-6, atol=1e-9)
    single = dense.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=1e-4 * np.abs(Z).max())
    into = np.empty((200, 64))
    np.testing.assert_array_equal(dense.transform_into(X, into), Z)


def test_the_seed_decides():
    X, y = along(np.array([1.0, 0, 0, 0]), n=200)
    first, second = (MetricMap(INNER).fit(X, y).transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    other = MetricMap(clone(INNER).set_params(random_state=1)).fit(X, y).transform(X)
    assert not np.array_equal(first, other)


def test_labels_of_any_kind():
    X, y = along(np.array([1.0, 0, 0, 0]), n=200)
    expected = MetricMap(INNER).fit(X, y > 0).metric_root_
    for labels in (np.where(y > 0, "up", "down"), (y > 0).astype(int).tolist()):
        np.testing.assert_allclose(MetricMap(INNER).fit(X, labels).metric_root_, expected)
        named = np.array(labels, dtype=object)
        np.testing.assert_allclose(MetricMap(INNER).fit(X, named).metric_root_, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "inner",
    [
        RandomMaclaurin(Polynomial(3), 2000, h01="append", random_state=0),
        CraftMap(Polynomial(3), 2000, h01="append", random_state=0),
    ],
)
def test_a_trial_has_room_for_columns_that_stay_exact(inner):
    X, y = along(np.eye(1100)[0], n=60)
    assert MetricMap(inner).fit(X, y).transform(X).shape == (60, 2000)


def test_trials_do_what_the_map_itself_will_do(monkeypatch):
    """Of so many components down="auto" is a fold, so powers are judged with folds."""
    monkeypatch.setattr(metric, "_MAX_PROBE_COMPONENTS", 50)
    monkeypatch.setattr(metric, "_MIN_RANDOM_COMPONENTS", 10)
    monkeypatch.setattr(craft, "_MAX_PRINCIPAL_COMPONENTS", 60)
    X, y = along(np.array([1.0, 0, 0, 0, 0, 0]), n=600)
    tried = []
    draw = CraftMap._draw

    def noted(self, X, y, rng):
        fitted = draw(self, X, y, rng)
        tried.append((self.n_components, fitted["down_"] is None))
        return fitted

    monkeypatch.setattr(CraftMap, "_draw", noted)
    for size, folds in ((100, True), (60, False)):
        tried.clear()
        auto = CraftMap(Polynomial(6), size, down="auto", random_state=0)
        MetricMap(auto).fit(X, y)
        assert tried == [(50, folds)] * 3 + [(size, folds)]
    nested = MetricMap(ScaledMap(auto))._smaller(20)
    assert nested.n_components == 20
    assert nested.feature_map.feature_map.down == "auto"


def test_a_stream_learns_the_metric_from_its_first_block():
    X, y = along(np.array([1.0, 0, 0, 0]), n=400)
    model = OnePassClassifier(MetricMap(INNER))
    for start in range(0, 400, 100):
        block = slice(start, start + 100)
        model.partial_fit(X[block], y[block] > 0, classes=[False, True])
    assert model.score(X, y > 0) > 0.8


def test_complaints():
    X, y = rows(50), np.arange(50.0)
    with pytest.raises(ValueError, match=r"requires y to be passed, .* call fit\(X, y\)"):
        MetricMap(INNER).fit(X)
    for power in (-0.1, 1.5, np.nan, True, "much", None):
        with pytest.raises(ValueError, match="power must be 'auto' or a number from 0 to 1"):
            MetricMap(INNER, power=power).fit(X, y)
    for wrong in ("poly", RBFSampler()):
        with pytest.raises(TypeError, match="feature_map must be a map of this package"):
            MetricMap(wrong).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MetricMap(INNER).fit(X, y[:-1])
    with pytest.raises(ValueError, match="y contains NaN"):
        MetricMap(INNER).fit(X, np.where(y == 3, np.nan, y))
    with pytest.raises(ValueError, match="at most 4,096 columns, got 5,000; reduce them first"):
        MetricMap(INNER).fit(sparse.random_array((40, 5000), density=0.01, format="csr"), y[:40])


def test_the_old_name_of_the_root_works_with_a_warning():
    X, y = along(np.array([1.0, 0, 0]), n=100)
    fitted = MetricMap(INNER, power=0.25).fit(X, y)
    with pytest.warns(FutureWarning, match="root_ is now called metric_root_"):
        assert fitted.root_ is fitted.metric_root_
