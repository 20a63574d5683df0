"""One candidate, learnt on some rows and judged on others, for all alphas at once."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.one_pass import SAMPLE_ROWS
from craftmaps.learn.solvers.ridge import RidgePath
from craftmaps.learn.solvers.solution import LeftOut
from craftmaps.maps import Nystroem

_ROWS = 4096
_AROUND = 10.0 ** np.arange(-1, 1.6, 0.5)  # alphas that are tried, relative to a learner's choice


@dataclass(frozen=True)
class Split:
    """Prepared rows to learn from, and others to judge by; `classes` is None for regression.

    `row_seconds` is what it took to prepare a row.
    """

    preparation: str
    X: Any
    y: np.ndarray
    X_left: Any
    y_left: np.ndarray
    classes: np.ndarray | None
    row_seconds: float

    def targets(self, y: np.ndarray) -> np.ndarray:
        """One column per class with 1 and -1, or the targets themselves."""
        if self.classes is None:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return np.asarray(2.0 * (y[:, None] == self.classes) - 1)

    def error(self, predicted: np.ndarray) -> float:
        """Share of wrong labels, or root mean square error in standard deviations of the target."""
        if self.classes is not None:
            return float(np.mean(self.classes[predicted.argmax(axis=1)] != self.y_left))
        return float(np.sqrt(self.loss(predicted)))

    def loss(self, predicted: np.ndarray) -> float:
        """Mean squared error of the targets, relative to their variance."""
        targets = self.targets(self.y_left)
        spread = float(np.var(targets, axis=0).sum()) or 1.0
        return float(np.mean(np.sum((predicted - targets) ** 2, axis=1)) / spread)


@dataclass(frozen=True)
class Trial:
    """What became of a candidate.

    Attributes
    ----------
    preparation : name of the preprocessing
    feature_map : unfitted map
    error : on the rows left out at the best alpha, see `Split.error`
    score : what candidates are ranked by. For labels, the geometric mean of the error and of the
        squared loss, which tells good candidates apart where there are few errors to count.
    alpha, gcv_error : the best alpha, and the error at the one that a learner takes by itself
    n_rows : rows learnt from
    fit_seconds, feature_seconds, update_seconds, solve_seconds : to draw the map, to turn the rows
        into features, to add them to the normal equations, and to solve these for all alphas
    row_seconds : to turn one row into features
    prepare_seconds : to prepare one row before
    """

    preparation: str
    feature_map: Any
    error: float
    score: float
    alpha: float
    gcv_error: float
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
        """Expected for another number of rows and another size."""
        rows, size = n_rows / self.n_rows, n_components / self.feature_map.n_components
        per_row = (self.fit_seconds + self.feature_seconds) * size + self.update_seconds * size**2
        prepared = n_rows * self.prepare_seconds
        return float(prepared + rows * per_row + self.solve_seconds * size**3)

    def predicting_seconds(self, n_components: int) -> float:
        """Expected per row for another size; whitening is quadratic in it."""
        size = n_components / self.feature_map.n_components
        power = 2 if isinstance(self.feature_map, Nystroem) and size > 1 else 1
        return float(self.prepare_seconds + self.row_seconds * size**power)


def attempt(split: Split, feature_map: Any) -> Trial:
    """Fit the map and one ridge path, and take the alpha that does best on the rows left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of alphas that are tried and not taken
        times = [time.perf_counter()]
        fitted = clone(feature_map).fit(split.X, split.y)
        times.append(time.perf_counter())
        Y, equations = split.targets(split.y), NormalEquations()
        features = update = 0.0
        for first in range(0, split.X.shape[0], _ROWS):
            start = time.perf_counter()
            Z = fitted.transform(split.X[first : first + _ROWS])
            features += time.perf_counter() - start
            equations.update(Z, Y[first : first + _ROWS], overwrite=True)
            update += time.perf_counter() - start
        times.append(time.perf_counter())
        path = RidgePath(equations, True)
        alphas = _AROUND * _learners_choice(path, equations, fitted, split)
        times.append(time.perf_counter())
        Z = fitted.transform(split.X_left)
        times.append(time.perf_counter())
        predicted = []
        for alpha in alphas:
            solution = path.solution(np.asarray(alpha))
            predicted.append(Z @ solution.coef.astype(Z.dtype) + solution.intercept)
    errors = np.array([split.error(p) for p in predicted])
    scores = errors
    if split.classes is not None:
        losses = np.array([split.loss(p) for p in predicted])
        scores = np.sqrt((errors + 0.5 / len(Z)) * losses)
    best = int(np.argmin(scores))
    fit, _, solve, judge = np.diff(times)
    return Trial(
        preparation=split.preparation,
        feature_map=feature_map,
        error=float(errors[best]),
        score=float(scores[best]),
        alpha=float(alphas[best]),
        gcv_error=float(errors[_AROUND == 1][0]),
        n_rows=split.X.shape[0],
        fit_seconds=float(fit),
        feature_seconds=features,
        update_seconds=update - features,
        solve_seconds=float(solve),
        row_seconds=float(judge) / len(Z),
        prepare_seconds=split.row_seconds,
    )


def _learners_choice(
    path: RidgePath, equations: NormalEquations, fitted: Any, split: Split
) -> float:
    """The alpha that a learner takes by itself, or one near it."""
    grid = path.grid()
    if equations.weight > equations.n_features:
        scores = path.gcv(grid)
    else:
        some = slice(None, None, -(-split.X.shape[0] // SAMPLE_ROWS))
        Z, Y = fitted.transform(split.X[some]), split.targets(split.y[some])
        scores = path.left_out(grid, LeftOut(Z, Y, np.ones(len(Z))))
    return float(grid[scores.sum(axis=1).argmin()])
