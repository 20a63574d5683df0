"""One candidate, learnt on some rows and judged on others, for all alphas at once."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.ridge import RidgePath

_ROWS = 4096


@dataclass(frozen=True)
class Trial:
    """What became of a candidate.

    Attributes
    ----------
    preparation : name of the preprocessing
    feature_map : unfitted map
    error : share of wrong labels, or root mean square error in standard deviations of the target
    loss : mean squared error of the targets, which tells more about candidates that err seldom
    alpha, ratio : the best alpha, and what the error at GCV's alpha is, relative to `error`
    seconds : to learn, and per row to predict
    """

    preparation: str
    feature_map: Any
    error: float
    loss: float
    alpha: float
    gcv_alpha: float
    gcv_error: float
    n_rows: int
    seconds: float
    row_seconds: float


@dataclass(frozen=True)
class Split:
    """Prepared rows to learn from and to judge by; `classes` is None for regression."""

    X: Any
    y: np.ndarray
    X_left: Any
    y_left: np.ndarray
    classes: np.ndarray | None

    def targets(self, y: np.ndarray) -> np.ndarray:
        if self.classes is None:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return 2.0 * (y[:, None] == self.classes) - 1

    def error(self, predicted: np.ndarray) -> float:
        if self.classes is not None:
            return float(np.mean(self.classes[predicted.argmax(axis=1)] != self.y_left))
        return float(np.sqrt(self.loss(predicted)))

    def loss(self, predicted: np.ndarray) -> float:
        """Mean squared error of the targets, relative to their variance."""
        targets = self.targets(self.y_left)
        spread = np.var(self.targets(self.y), axis=0).sum() or 1.0
        return float(np.mean(np.sum((predicted - targets) ** 2, axis=1)) / spread)


def attempt(split: Split, preparation: str, feature_map: Any) -> Trial:
    """Fit the map and one ridge path, and take the alpha that does best on the rows left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of alphas that are tried and not taken
        start = time.perf_counter()
        fitted = feature_map.fit(split.X, split.y)
        Y = split.targets(split.y)
        equations = NormalEquations()
        for first in range(0, split.X.shape[0], _ROWS):
            rows = slice(first, first + _ROWS)
            equations.update(fitted.transform(split.X[rows]), Y[rows], overwrite=True)
        path = RidgePath(equations, True)
        alphas = path.grid()[::2]
        gcv = int(path.gcv(alphas).sum(axis=1).argmin())
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        Z = fitted.transform(split.X_left)
        row_seconds = (time.perf_counter() - start) / len(Z)
        solutions = [path.solution(np.asarray(alpha)) for alpha in alphas]
        predicted = [Z @ s.coef.astype(Z.dtype) + s.intercept for s in solutions]
    errors = [split.error(p) for p in predicted]
    losses = [split.loss(p) for p in predicted]
    best = int(np.lexsort((losses, errors))[0])
    return Trial(
        preparation,
        feature_map,
        errors[best],
        min(losses),
        float(alphas[best]),
        float(alphas[gcv]),
        errors[gcv],
        split.X.shape[0],
        seconds,
        row_seconds,
    )
