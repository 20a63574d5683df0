"""The tree that splits rows into leaves."""

import numpy as np
import pytest

from craftmaps.search.row_tree import RowTree

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n_values", [2, 5, None], ids=["two values", "five", "all different"])
def test_rows_are_found_again_in_the_leaves_of_the_fit(n_values):
    X = RNG.standard_normal((3000, 12))
    X = X if n_values is None else np.floor(n_values * RNG.random((3000, 12)))
    tree, leaves = RowTree.of(X, 100)
    assert sum(map(len, leaves)) == 3000
    assert tree.n_leaves == len(leaves)
    found = tree.leaf_of(X)
    for leaf, rows in enumerate(leaves):
        assert (found[rows] == leaf).all()
    tree.check(12)


def test_leaves_are_balanced_and_follow_the_largest_variance():
    X = RNG.standard_normal((4096, 3)) * [1.0, 10.0, 1.0]
    tree, leaves = RowTree.of(X, 1024)
    assert [len(rows) for rows in leaves] == [1024] * 4
    assert tree.columns.tolist() == [1, 1, 1]


def test_equal_rows_stay_together():
    X = np.repeat(RNG.standard_normal((3, 2)), [500, 20, 5], axis=0)
    _, leaves = RowTree.of(X, 50)
    assert sorted(map(len, leaves)) == [5, 20, 500] or sorted(map(len, leaves)) == [25, 500]
    tree, leaves = RowTree.of(np.ones((200, 2)), 50)
    assert len(leaves) == 1
    assert tree.leaf_of(np.zeros((3, 2))).tolist() == [0, 0, 0]


def test_a_threshold_is_between_two_values():
    X = np.repeat([1.0, 2.0, 3.0], [10, 30, 60])[:, None]
    tree, _ = RowTree.of(X, 60)
    assert tree.thresholds.tolist() == [2.5]


def test_neighboring_floats_are_separated():
    low = 1.0
    X = np.repeat([low, np.nextafter(low, 2)], 50)[:, None]
    tree, leaves = RowTree.of(X, 50)
    assert [len(rows) for rows in leaves] == [50, 50]
    assert len(np.unique(tree.leaf_of(X))) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"columns": np.array([3, 0])},
        {"columns": np.array([0])},
        {"children": np.array([[0, -1], [-2, -3]])},  # a cycle
        {"children": np.array([[1, -1], [-2, -2]])},  # a leaf that is reached twice
        {"children": np.array([[1, -1], [-2, -9]])},
        {"thresholds": np.array([0, 1])},
    ],
)
def test_trees_that_do_not_end_in_their_leaves_are_refused(change):
    good = {
        "columns": np.array([0, 2]),
        "thresholds": np.array([0.0, 1.0]),
        "children": np.array([[1, -1], [-2, -3]]),
    }
    RowTree(**good).check(3)
    with pytest.raises(ValueError, match="RowTree"):
        RowTree(**good | change).check(3)
