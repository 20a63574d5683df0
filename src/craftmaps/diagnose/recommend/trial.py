"""One candidate, trained on some rows and judged on others, for all alphas at once."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from craftmaps.diagnose.prediction_error import prediction_error
from craftmaps.diagnose.recommend.preparation import Preparation
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.one_pass import SAMPLE_ROWS
from craftmaps.learn.solvers.path import RidgePath
from craftmaps.learn.solvers.solution import LeftOut
from craftmaps.maps import Nystroem

_BLOCK_ROWS = 4096
_ALPHA_FACTORS = 10.0 ** np.arange(-1, 1.6, 0.5)  # alphas to try, relative to a learner's choice


@dataclass(frozen=True)
class Split:
    """Prepared rows to learn from, and held-out rows to judge by.

    `classes` is None for regression. `prepare_seconds` is the time that it took to prepare a row.
    """

    preparation: Preparation
    X: Any
    y: np.ndarray
    X_held_out: Any
    y_held_out: np.ndarray
    classes: np.ndarray | None
    prepare_seconds: float

    def targets(self, y: np.ndarray) -> np.ndarray:
        """One column per class with 1 and -1, or the targets themselves."""
        if self.classes is None:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return np.asarray(2.0 * (y[:, None] == self.classes) - 1)

    def error(self, predicted: np.ndarray) -> float:
        """The `prediction_error` of predicted targets on the held-out rows."""
        if self.classes is None:
            return prediction_error(predicted[:, 0], self.y_held_out, classification=False)
        labels = self.classes[predicted.argmax(axis=1)]
        return prediction_error(labels, self.y_held_out, classification=True)

    def loss(self, predicted: np.ndarray) -> float:
        """Mean squared error of the targets, relative to their variance."""
        targets = self.targets(self.y_held_out)
        spread = float(np.var(targets, axis=0).sum()) or 1.0
        return float(np.mean(np.sum((predicted - targets) ** 2, axis=1)) / spread)


@dataclass(frozen=True)
class Trial:
    """How a candidate did.

    Attributes
    ----------
    preparation : Scaling or Gradients
        How rows were prepared.
    feature_map : unfitted map
    error : float
        On the held-out rows at the best alpha, see `prediction_error`.
    score : float
        What candidates are ranked by: the error for regression. For labels it is the geometric
        mean of the error and the squared loss, because the loss tells good candidates apart
        where there are few errors to count.
    alpha, default_alpha_error : float
        The best alpha, and the error at the alpha that a learner chooses by itself.
    n_rows : int
        Rows learned from.
    fit_seconds, feature_seconds, update_seconds, solve_seconds : float
        Time to fit the map, to turn the rows into features, to add them to the normal equations,
        and to solve these for all alphas.
    row_seconds : float
        Time to turn one prepared row into features.
    prepare_seconds : float
        Time to prepare one row.
    """

    preparation: Preparation
    feature_map: Any
    error: float
    score: float
    alpha: float
    default_alpha_error: float
    n_rows: int
    fit_seconds: float
    feature_seconds: float
    update_seconds: float
    solve_seconds: float
    row_seconds: float
    prepare_seconds: float

    @property
    def kernel(self) -> Any:
        return self.feature_map.kernel

    def training_seconds(self, n_rows: int, n_components: int) -> float:
        """Expected time of training for another number of rows and another size."""
        rows, size = n_rows / self.n_rows, n_components / self.feature_map.n_components
        per_row = (self.fit_seconds + self.feature_seconds) * size + self.update_seconds * size**2
        prepared = n_rows * self.prepare_seconds
        return float(prepared + rows * per_row + self.solve_seconds * size**3)

    def predicting_seconds(self, n_components: int) -> float:
        """Expected time per row for another size; the whitening of Nyström is quadratic in it."""
        size = n_components / self.feature_map.n_components
        power = 2 if isinstance(self.feature_map, Nystroem) and size > 1 else 1
        return float(self.prepare_seconds + self.row_seconds * size**power)


def attempt(split: Split, feature_map: Any) -> Trial:
    """Fit the map and one ridge path, and take the alpha that does best on the held-out rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about alphas that are tried and not taken
        times = [time.perf_counter()]
        fitted = clone(feature_map).fit(split.X, split.y)
        times.append(time.perf_counter())
        equations, feature_seconds = _sums(fitted, split)
        times.append(time.perf_counter())
        path = RidgePath(equations, True)
        alphas = _ALPHA_FACTORS * _default_alpha(path, equations, fitted, split)
        times.append(time.perf_counter())
        Z = fitted.transform(split.X_held_out)
        times.append(time.perf_counter())
        predicted = []
        for alpha in alphas:
            solution = path.solve(np.asarray(alpha))
            predicted.append(Z @ solution.coef.astype(Z.dtype) + solution.intercept)
    errors = np.array([split.error(p) for p in predicted])
    scores = errors
    if split.classes is not None:
        losses = np.array([split.loss(p) for p in predicted])
        scores = np.sqrt((errors + 0.5 / len(Z)) * losses)
    best = int(np.argmin(scores))
    fit_seconds, sum_seconds, solve_seconds, judge_seconds = np.diff(times).tolist()
    return Trial(
        preparation=split.preparation,
        feature_map=feature_map,
        error=float(errors[best]),
        score=float(scores[best]),
        alpha=float(alphas[best]),
        default_alpha_error=float(errors[_ALPHA_FACTORS == 1][0]),
        n_rows=split.X.shape[0],
        fit_seconds=fit_seconds,
        feature_seconds=feature_seconds,
        update_seconds=sum_seconds - feature_seconds,
        solve_seconds=solve_seconds,
        row_seconds=judge_seconds / len(Z),
        prepare_seconds=split.prepare_seconds,
    )


def _sums(fitted: Any, split: Split) -> tuple[NormalEquations, float]:
    """The normal equations of the rows to learn from, and the seconds that the features took."""
    Y, equations, feature_seconds = split.targets(split.y), NormalEquations(), 0.0
    for first in range(0, split.X.shape[0], _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        start = time.perf_counter()
        Z = fitted.transform(split.X[block])
        feature_seconds += time.perf_counter() - start
        equations.update(Z, Y[block], overwrite=True)
    return equations, feature_seconds


def _default_alpha(path: RidgePath, equations: NormalEquations, fitted: Any, split: Split) -> float:
    """The alpha that a learner chooses by itself, or one near it."""
    grid = path.grid()
    if equations.weight > equations.n_features:
        scores = path.gcv(grid)
    else:
        some = slice(None, None, -(-split.X.shape[0] // SAMPLE_ROWS))
        Z, Y = fitted.transform(split.X[some]), split.targets(split.y[some])
        scores = path.left_out(grid, LeftOut(Z, Y, np.ones(len(Z))))
    return float(grid[scores.sum(axis=1).argmin()])
