"""The search for a kernel, and a kernel machine in each leaf of a tree: feature_map="local"."""

from typing import Any

import numpy as np

from craftmaps.kernels import Matern
from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.wrapped import WrappedMap
from craftmaps.search.auto_map import MIN_ROWS, AutoMap, is_constant
from craftmaps.search.budget import MOST_COMPONENTS, Budget, operations_per_second
from craftmaps.search.candidates import Candidate
from craftmaps.search.clock import Clock
from craftmaps.search.leaf_machines import LEAF_ENTRY_BYTES, LeafMachines, LeftOut, Lessons
from craftmaps.search.leaf_round import leaf_round
from craftmaps.search.preparation import Scaling
from craftmaps.search.report import Report, Search
from craftmaps.search.rounds import halving
from craftmaps.search.trials import Rows
from craftmaps.storage.packing import storable

_LEAST_LEAF_ROWS = 4096  # by default, for large tables
_OPERATIONS = 1.3e12  # by default, leaves are as large as so many operations allow
_SEARCH_ROWS = 10_000
_SHARE_OF_SEARCH = 0.3  # share of a budget of training time
_LEAST_AFFORDABLE = 64


@storable
class LocalMap(AutoMap):
    """Predictions of kernel machines, each learned from the rows in one leaf of a tree.

    `fit` takes `Lessons` as y. The search of `AutoMap` finds one preparation and one kernel for all
    leaves, with exact kernels of few rows, and so does the width that suits single leaves.
    `feature_map_` is the preparation around `LeafMachines`, and the budget decides how many rows a
    leaf has.

    Parameters
    ----------
    task : {"classification", "regression"}
    budget : int, str or None, default=None
        As in `AutoMap`, but a number of components is the number of rows in a leaf.
    alpha : float or None, default=None
        The penalty; None chooses it.
    random_state : int, RandomState instance, Generator or None, default=None
    """

    def __init__(
        self,
        *,
        task: str = "regression",
        budget: Any = None,
        alpha: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.task = task
        self.budget = budget
        self.alpha = alpha
        self.random_state = random_state

    @property
    def machines_(self) -> LeafMachines:
        """The machines inside of the maps that prepare rows."""
        inner: Any = self.feature_map_
        while not isinstance(inner, LeafMachines):
            inner = inner.feature_map_
        return inner

    def take_left_out(self) -> LeftOut:
        """Return the leave-one-out predictions of the fit, and keep them no longer."""
        left_out: LeftOut = self.machines_.__dict__.pop("left_out_")
        return left_out

    def _draw(self, X: Any, y: Lessons, rng: np.random.Generator) -> dict[str, Any]:
        classification, seed = self.task == "classification", int(rng.integers(2**31))
        budget, report = Budget.parse(self.budget), None
        size = leaf_rows(budget, len(X), X.shape[1] + y.Y.shape[1])
        if len(X) < MIN_ROWS or is_constant(X) or is_constant(y.y):
            candidate = Candidate(Scaling("standard"), Matern(gamma="median"))
        else:
            search = self._found_in_leaves(X, y, size, rng)
            report = Report.of(search, classification, budget.text, len(X))
            candidate = search.rounds[-1][0].candidate
        n_columns = y.Y.shape[1]
        machines = LeafMachines(candidate.kernel, size, alpha=self.alpha, random_state=seed)
        if budget.kind == "memory":
            machines.set_params(fit_bytes=budget.amount)
        fitted = candidate.preparation.around(machines).fit(X, y)
        return {
            "feature_map_": fitted,
            "report_": report,
            "alpha_": None,
            "target_ends_": None
            if classification
            else np.stack([y.Y.min(axis=0), y.Y.max(axis=0)]),
            "_n_features_out": n_columns,
        }

    def _found_in_leaves(
        self, X: np.ndarray, lessons: Lessons, size: int, rng: np.random.Generator
    ) -> Search:
        """Search with some of the rows, unless this was done before, and then within leaves."""
        some, before = rng.permutation(len(X))[:_SEARCH_ROWS], lessons.search
        seconds = Budget.parse(self.budget).seconds
        clock = Clock(None if seconds is None else _SHARE_OF_SEARCH * seconds)
        if before is None:
            rows = Rows(X[some], lessons.y[some], self.task == "classification", rng)
            before = Search(halving(rows, clock), [], 0.0)
        last = leaf_round(before, X, some, lessons, size, rng)
        sized = [*before.sized, last] if last else before.sized
        return Search(before.exact, sized, before.seconds + clock.elapsed)

    def _check_stored(self) -> None:
        super()._check_stored()
        inner: Any = self.feature_map_
        while isinstance(inner, WrappedMap):
            inner = inner.feature_map_
        check_facts(
            self,
            feature_map_=isinstance(inner, LeafMachines),
            target_ends_=self.target_ends_ is None
            or self.target_ends_.shape == (2, self._n_features_out),
        )


def leaf_rows(budget: Budget, n_rows: int, n_columns: int) -> int:
    """Return the largest number of rows in a leaf within the budget."""
    if budget.kind == "components":
        return int(budget.amount)
    rows: float = max((_OPERATIONS * 3 / n_rows) ** 0.5, _LEAST_LEAF_ROWS)
    if budget.kind == "training":
        operations = (1 - _SHARE_OF_SEARCH) / 2 * budget.amount * operations_per_second()
        rows = (3 * operations / n_rows) ** 0.5
    elif budget.kind == "memory":
        rows = (budget.amount / LEAF_ENTRY_BYTES) ** 0.5
    elif budget.kind == "predicting":
        rows = budget.amount * operations_per_second() / (2 * n_columns)
    return int(np.clip(rows, _LEAST_AFFORDABLE, MOST_COMPONENTS))
