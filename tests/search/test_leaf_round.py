"""The comparison of candidates within the leaves of a tree."""

import numpy as np

from craftmaps.search.candidates import linear
from craftmaps.search.clock import Clock
from craftmaps.search.leaf_machines import Lessons
from craftmaps.search.leaf_round import leaf_round
from craftmaps.search.preparation import Scaling
from craftmaps.search.report import Search
from craftmaps.search.rounds import halving
from craftmaps.search.trials import Rows


def test_a_linear_model_that_won_among_features_is_not_compared():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1])
    rows = Rows(X, y, False, rng)
    exact = halving(rows, Clock(None))
    only_linear = rows.judged([linear(Scaling("standard"))], len(X))
    lessons = Lessons(y, y[:, None], np.ones(len(y)))
    search = Search(exact, [only_linear], 0.0)
    found = leaf_round(search, X, np.arange(len(X)), lessons, 200, rng)
    assert [trial.candidate.is_linear for trial in found] == [False]
