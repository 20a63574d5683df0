"""SVC and SVR with a grid of nine: what a careful user of scikit-learn's kernel machines does."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

from benchmarks.league.case import Case

PENALTIES = (1.0, 10.0, 100.0)
WIDTHS = (0.25, 1.0, 4.0)  # times 1 / n_columns, which is gamma="scale" for standardized columns
MAX_GRID_ROWS = 10_000
N_FOLDS = 3


class GridSVM(BaseEstimator):
    """Choose C and gamma by cross-validation on at most 10,000 rows, then fit all rows."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def fit(self, X: Any, y: np.ndarray) -> "GridSVM":
        grid = {"C": list(PENALTIES), "gamma": [width / X.shape[1] for width in WIDTHS]}
        rows = np.random.default_rng(self.case.seed).permutation(len(y))[:MAX_GRID_ROWS]
        machine = self.case.choose(SVC, SVR)(cache_size=500)
        search = GridSearchCV(machine, grid, cv=N_FOLDS, refit=False).fit(X[rows], y[rows])
        self.machine_ = machine.set_params(**search.best_params_).fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.machine_.predict(X)
