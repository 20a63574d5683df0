"""The learners of this package: a function for each makes one for a case, unfitted."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from benchmarks.league.case import Case
from benchmarks.league.columns import one_hot

N_COMPONENTS = 1024


class Advised(BaseEstimator):
    """Fit what `recommend` advises for 1,024 components."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def fit(self, X: Any, y: np.ndarray) -> "Advised":
        from craftmaps.diagnose import recommend

        advice = recommend(X, y, N_COMPONENTS, task=self.case.task, random_state=self.case.seed)
        self.model_ = advice.estimator.fit(X, y)
        self.classes_ = getattr(self.model_, "classes_", None)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model_.predict_proba(X)


def advised(case: Case) -> Any:
    return make_pipeline(one_hot(case.X), Advised(case))
