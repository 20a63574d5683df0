"""xRFM, kernel machines with a learned metric, behind the interface of scikit-learn."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from xrfm import xRFM

from benchmarks.league.case import Case

VALIDATION_SHARE = 0.2


class RecursiveFeatures(BaseEstimator):
    """xRFM at its defaults; it needs validation rows, here a fifth of the training rows."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def fit(self, X: Any, y: np.ndarray) -> "RecursiveFeatures":
        X, y = np.asarray(X, dtype=np.float32), self._targets(y)
        parts = train_test_split(X, y, test_size=VALIDATION_SHARE, random_state=self.case.seed)
        model = xRFM(
            device="cpu",
            n_threads=self.case.threads,
            random_state=self.case.seed,
            verbose=False,
        )
        self.classes_ = np.unique(y)
        self.model_ = model.fit(parts[0], parts[2], parts[1], parts[3])
        return self

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return self.case.choose(np.asarray(y), np.asarray(y, dtype=np.float32))

    def predict(self, X: Any) -> np.ndarray:
        return np.ravel(self.model_.predict(np.asarray(X, dtype=np.float32)))

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model_.predict_proba(np.asarray(X, dtype=np.float32))
