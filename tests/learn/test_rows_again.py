"""Rows that are read several times: small blocks, and arrays that change."""

import numpy as np
import pytest

from craftmaps import KernelClassifier
from craftmaps.learn.codes import Unchanged
from craftmaps.learn.progress import Progress
from craftmaps.learn.rows_again import RowsAgain

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2600, 5))
Y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("cuts", [range(1, len(X)), [7, 8, 1500, 1501], []])
def test_small_blocks_are_gathered(cuts, kept):
    parts = [(X[part], Y[part], None) for part in np.split(np.arange(len(X)), cuts)]
    rows = RowsAgain(None, X.shape[1], X.dtype, Unchanged(), lambda: parts)
    if not kept:
        rows._room_left = 0
    for part in parts:
        rows.add(*part, Progress(None))
    assert rows.keeps_features == kept
    blocks = list(rows.features())
    assert len(blocks) <= 3
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    np.testing.assert_array_equal(np.concatenate(list(rows.features())), X)


def test_rows_that_are_features_are_not_copied():
    whole = X.copy()
    rows = RowsAgain(None, X.shape[1], X.dtype, Unchanged())
    rows.add(whole, Y, None, Progress(None))
    assert np.shares_memory(next(rows.features()), whole)


class OneArray:
    """Blocks that are read into the same array again and again."""

    def __iter__(self):
        block = np.empty((100, X.shape[1]))
        for start in range(0, len(X), 100):
            block[:] = X[start : start + 100]
            yield block, Y[start : start + 100]


def test_blocks_may_reuse_their_memory():
    learner = KernelClassifier(None, loss="log", alpha=1.0)
    expected = learner.fit(X, Y).decision_function(X)
    found = learner.fit_blocks(OneArray()).decision_function(X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
