"""Kernel ridge regression in each leaf, against plain formulas and refits."""

from itertools import pairwise

import numpy as np
import pytest

from craftmaps import Gaussian, Laplacian, Matern, Nystroem, OnePassRegressor
from craftmaps.search.leaf_machines import LeafMachines, Lessons

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 3))
Y = np.stack([np.sin(4 * X[:, 0]) * X[:, 1], X[:, 2] ** 2], axis=1)
Y += 0.1 * RNG.standard_normal(Y.shape)
WEIGHTS = RNG.uniform(0.5, 2.0, 600)


def lessons(rows=slice(None), n_classes=0):
    return Lessons(Y[rows, 0], Y[rows], WEIGHTS[rows], n_classes)


def ridge(machines, rows, X_new):
    """Kernel ridge regression on some rows, in plain formulas."""
    kernel, weights = machines.kernel_, WEIGHTS[rows]
    middle = np.average(Y[rows], axis=0, weights=weights)
    K = kernel(X[rows]) + machines.alpha_ * np.diag(1 / weights)
    return kernel(X_new, X[rows]) @ np.linalg.solve(K, Y[rows] - middle) + middle


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.5), Matern(gamma=0.5)])
@pytest.mark.parametrize("leaf_rows", [1000, 100], ids=["one leaf", "several leaves"])
def test_each_leaf_is_kernel_ridge_regression_on_its_rows(kernel, leaf_rows):
    machines = LeafMachines(kernel, leaf_rows, random_state=0).fit(X, lessons())
    tree = machines.tree_
    assert tree.n_leaves == (1 if leaf_rows == 1000 else 8)
    X_new = RNG.uniform(-1.2, 1.2, (200, 3))
    found = machines.transform(X_new)
    of_rows, of_new = tree.leaf_of(X), tree.leaf_of(X_new)
    for leaf in range(tree.n_leaves):
        wanted = ridge(machines, of_rows == leaf, X_new[of_new == leaf])
        np.testing.assert_allclose(found[of_new == leaf], wanted, atol=1e-7)


def test_rows_are_left_out_as_in_a_refit():
    machines = LeafMachines(Matern(gamma=0.5), 100, random_state=0).fit(X, lessons())
    left_out, leaf = machines.left_out_, machines.tree_.leaf_of(X)
    assert len(np.unique(left_out.places)) == 600
    for place in (0, 17, 599):
        # The mean of the targets of the leaf still includes the row.
        rows = np.flatnonzero(leaf == leaf[place])
        middle = np.average(Y[rows], axis=0, weights=WEIGHTS[rows])
        others = rows[rows != place]
        K = machines.kernel_(X[others]) + machines.alpha_ * np.diag(1 / WEIGHTS[others])
        k = machines.kernel_(X[[place]], X[others])
        wanted = k @ np.linalg.solve(K, Y[others] - middle) + middle
        found = left_out.predicted[left_out.places == place]
        np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_little_memory_changes_only_how_many_leaves_are_fitted_at_a_time():
    little, much = (
        LeafMachines(Matern(gamma=0.5), 100, fit_bytes=size, random_state=0).fit(X, lessons())
        for size in (1.0, 1e9)
    )
    np.testing.assert_allclose(little.coef_, much.coef_, atol=1e-9)


def test_the_precision_of_rows_hardly_matters():
    double = LeafMachines(Matern(gamma=0.5), 2000, random_state=0).fit(X, lessons())
    single = LeafMachines(Matern(gamma=0.5), 2000, random_state=0)
    single.fit(X.astype(np.float32), lessons())
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    predicted = single.transform(X.astype(np.float32))
    np.testing.assert_allclose(predicted, double.transform(X), atol=2e-3)


def test_a_small_penalty_is_solved_in_double_precision():
    smooth = Lessons(X[:, 0], np.sin(3 * X[:, :1]), np.ones(600))
    machines = LeafMachines(Gaussian(0.5), 300, alpha=1e-9, random_state=0)
    machines.fit(X.astype(np.float32), smooth)
    predicted = machines.transform(X.astype(np.float32))
    assert np.abs(predicted - smooth.Y).max() < 1e-4


def test_many_rows_of_a_leaf_in_single_precision():
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, (2500, 2)).astype(np.float32)
    targets = np.sin(5 * rows[:, :1]) + 0.3 * rng.standard_normal((2500, 1))
    machines = LeafMachines(Matern(gamma=1.0), 1500, alpha=0.5, random_state=0)
    machines.fit(rows, Lessons(targets[:, 0], targets, np.ones(2500)))
    assert machines.coef_.dtype == np.float32
    own = slice(machines.starts_[0], machines.starts_[1])
    kept = machines.rows_[own].astype(np.float64)
    K = machines.kernel_(kept) + 0.5 * np.eye(len(kept))
    leaf = machines.tree_.leaf_of(rows) == 0
    wanted = np.linalg.solve(K, targets[leaf] - targets[leaf].mean(axis=0))
    np.testing.assert_allclose(machines.coef_[own], wanted, atol=2e-3)


def test_the_width_suits_the_leaves():
    """A kernel that is far too narrow for the rows is replaced by a wider one."""
    machines = LeafMachines(Laplacian(20.0), 200, random_state=0).fit(X, lessons())
    assert machines.kernel_.gamma < 5


def test_a_rough_function_needs_leaves():
    """With as many landmarks as a leaf has rows, one machine for all rows cannot learn it."""
    rng = np.random.default_rng(0)
    rows, new = rng.uniform(-1, 1, (4000, 2)), rng.uniform(-1, 1, (1000, 2))

    def target(some):
        return np.sin(30 * some[:, :1]) * np.sin(30 * some[:, 1:])

    machines = LeafMachines(Matern(gamma=5.0), 250, random_state=0)
    machines.fit(rows, Lessons(target(rows)[:, 0], target(rows), np.ones(4000)))
    local = np.square(machines.transform(new) - target(new)).mean()
    one = OnePassRegressor(Nystroem(machines.kernel_, 250, random_state=0))
    whole = np.square(one.fit(rows, target(rows)[:, 0]).predict(new) - target(new)[:, 0]).mean()
    assert local < 0.25 * whole


def test_leaves_with_equal_targets_predict_them():
    spread = X * [10, 1, 1]  # the first split is at the median of the first column
    high = (spread[:, :1] > np.median(spread[:, 0])).astype(float)
    machines = LeafMachines(Laplacian(1.0), 300, random_state=0)
    machines.fit(spread, Lessons(high[:, 0], high, np.ones(600)))
    np.testing.assert_array_equal(machines.transform(spread), high)


def test_the_same_seed_gives_the_same_machines():
    first, second = (
        LeafMachines(Matern(gamma=0.5), 100, random_state=3).fit(X, lessons()) for _ in range(2)
    )
    np.testing.assert_array_equal(first.transform(X), second.transform(X))


def test_blocks_of_rows_do_not_change_predictions():
    machines = LeafMachines(Matern(gamma=0.5), 100, random_state=0).fit(X, lessons())
    whole = machines.transform(X)
    parts = [machines.transform(X[a:b]) for a, b in pairwise([0, 1, 50, 600])]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-10, atol=1e-12)


def test_frozen_predictions():
    machines = LeafMachines(Laplacian(1.0), 100, alpha=0.1, random_state=0).fit(X, lessons())
    found = machines.transform(np.array([[0.1, 0.2, 0.3], [-0.9, 0.5, -0.5]]))
    np.testing.assert_allclose(found, FROZEN, atol=1e-6)


FROZEN = [[0.04867450, 0.06874957], [0.19467311, 0.20771661]]
