"""Recommend a preparation, kernel and size, with reasons and a ready estimator."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from craftmaps.learn import KernelClassifier, KernelRegressor
from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS, sample_size, sampled
from craftmaps.search import AutoMap, Report
from craftmaps.search.auto_map import MIN_ROWS, is_constant
from craftmaps.search.targets import is_classification
from craftmaps.tables.table import has_gaps, is_table, table_of


@dataclass(frozen=True)
class Advice:
    """A recommended, unfitted estimator and the search that found it.

    Attributes
    ----------
    estimator : KernelClassifier or KernelRegressor
        The learner, around a `ScaledMap` or an `ImageMap` and a `Nystroem` map.
    report : Report
        What the search tried.
    """

    estimator: Any
    report: Report

    @property
    def learner(self) -> Any:
        """The same as `estimator`."""
        return self.estimator

    @property
    def feature_map(self) -> Any:
        """The recommended map, unfitted, including the scaling of columns and rows."""
        return self.estimator.feature_map

    @property
    def error(self) -> float:
        """Expected error: share of wrong classes, or RMSE / standard deviation of the target."""
        return self.report.error

    @property
    def interval(self) -> tuple[float, float]:
        """An interval that contains the expected error with a probability of about 90%."""
        return self.report.interval

    @property
    def rounds(self) -> list[list[Any]]:
        """All candidates and their errors, round by round, the best one first."""
        return self.report.rounds

    @property
    def classification(self) -> bool:
        """Whether the task is classification."""
        return self.report.classification

    @property
    def seconds(self) -> float:
        """Duration of the search."""
        return self.report.seconds

    def reasons(self) -> list[str]:
        """Return a list with one sentence for each choice."""
        report, size = self.report, self.feature_map.n_components
        lines = [
            f"Preparation: {report.preparation}.{self._preparations()}",
            f"Kernel: {report.kernel}.",
            f"Size: {size} Nyström features (budget: {report.budget}).",
        ]
        if len(report.rounds[-1]) > 1:
            (_, own), (name, error) = report.rounds[-1][:2]
            lines.append(
                f"Next best: {name}, with an error of {report.text_of(error)} against "
                f"{report.text_of(own)} in the last round."
            )
        lines.append(
            f"Expected error: {report.expectation()}, on rows left out while "
            f"{report.round_rows[-1]:,} rows are learned from."
        )
        return lines

    def __str__(self) -> str:
        name, n_trials = type(self.estimator).__name__, self.report.n_trials
        head = f"{name} advised by {n_trials} trials in {self.seconds:.1f} s:"
        return "\n".join([head, *(f"- {line}" for line in self.reasons())])

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the errors of the candidates; returns the figure, see `Report.plot`."""
        return self.report.plot(path)

    def _preparations(self) -> str:
        texts = [f"{name} {self.report.text_of(e)}" for name, e in self.report.preparations]
        if len(texts) < 2:
            return ""
        rows = self.report.round_rows[0]
        return f" Errors of the best kernel with each one, on {rows:,} rows: {'; '.join(texts)}."


def recommend(
    X: Any,
    y: Any,
    budget: Any = 1024,
    *,
    task: str = "auto",
    images: bool | tuple[int, int] = False,
    random_state: Any = 0,
) -> Advice:
    """Recommend an estimator for these data, with reasons.

    This function runs the search of `KernelClassifier(feature_map="auto")`, see `AutoMap`. It
    returns an unfitted learner, and explains how it was chosen.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows of numbers, or a table, which is encoded as the learner would encode it. Dense rows may
        have missing values.
    y : array-like of shape (n_samples,), or (n_samples, n_targets) for regression
    budget : int, str or None, default=1024
        A number of components; a training time, "60s" or "5min"; a memory for training, "200MB"; a
        prediction time, "1ms/row"; "unlimited"; or None, see `AutoMap`. Sizes for times are
        estimated from the speed of this machine.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" means regression if the targets are numbers with more than 100 different values, or
        if some of them are not integers.
    images : bool or (height, width), default=False
        Whether rows are gray images, square ones or of that shape. If so, their oriented gradients
        are tried too, see `ImageMap`.
    random_state : int, RandomState instance, Generator or None, default=0
        Seed for the samples and the map. With a number of components as budget, the advice depends
        only on the data and on this seed.

    Returns
    -------
    Advice
        `print(advice)` shows the reasons, `advice.estimator.fit(X, y)` fits the recommended
        learner, and `advice.plot()` shows the candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from craftmaps.diagnose import recommend
    >>> X, y = load_wine(return_X_y=True)
    >>> advice = recommend(X[::2], y[::2], budget=64)
    >>> model = advice.estimator.fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.92)
    True
    """
    X, y = _rows(X), np.asarray(y)
    check_consistent_length(X, y)
    if images is not False and (is_table(X) or has_gaps(X)):
        raise ValueError("images must be an array of numbers, none of them missing.")
    classification = is_classification(task, y)
    kind = KernelClassifier if classification else KernelRegressor
    search = AutoMap(
        task="classification" if classification else "regression",
        budget=budget,
        n_rows=X.shape[0],
        images=images,
        random_state=random_state,
    )
    some = sampled(X, y, sample_size(search, DEFAULT_MAP_ROWS))
    searched = kind(search, random_state=random_state).begin(*some).feature_map_
    if searched.report_ is None:
        raise ValueError(_nothing_to_learn(y))
    return Advice(kind(clone(searched.feature_map_)), searched.report_)


def _rows(X: Any) -> Any:
    """Return X as a table, a sparse matrix or an array, whose rows can be indexed."""
    if is_table(X):
        return table_of(X)
    return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)


def _nothing_to_learn(y: np.ndarray) -> str:
    """Return why there was no search."""
    if len(y) < MIN_ROWS:
        return f"advice needs at least {MIN_ROWS} rows, got {len(y)}."
    if is_constant(y):
        return f"all targets are {y[0]}: there is nothing to learn."
    return "all rows of X are the same: there is nothing to tell them apart by."
