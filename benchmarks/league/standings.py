"""Ranks, ratios and shares over all tables: the numbers of the report."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from benchmarks.league.datasets import CLASSIFICATION, DATASETS
from benchmarks.league.methods import METHODS, Method
from benchmarks.league.results import Result

CLOSE = 1.05
MOST = 2 / 3  # of all tables
MAX_RATIO = 10.0  # in means: where the best has no error at all, ratios are in the hundreds
LEAST_SECONDS = 0.01  # processor time of several threads is counted in steps of 4 ms


@dataclass(frozen=True)
class Table:
    """A data set with its training rows, as it was run by each learner."""

    label: str
    results: dict[str, Result]
    base: Method  # times are compared with it

    @property
    def about(self) -> Result:
        return self.results[self.base.name]

    @property
    def is_classification(self) -> bool:
        return self.about["task"] == CLASSIFICATION

    def value(self, method: str, measure: str) -> float:
        """A measure of a run; NaN if the run failed or the learner has no such measure."""
        value = self.results[method].get(measure)
        return np.nan if value is None else float(value)

    def ratios(self, methods: Iterable[Method]) -> dict[str, float]:
        """Each error over the least one; half a wrong row is added to both of a classifier."""
        half_row = 0.5 / self.about["n_test"] if self.is_classification else 0.0
        errors = {one.name: self.value(one.name, "error") + half_row for one in methods}
        least = np.nanmin(list(errors.values()))
        return {name: error / least for name, error in errors.items()}

    def ranks(self, methods: Iterable[Method]) -> dict[str, float]:
        """Ranks by error from 1; equal errors share the mean of theirs, failures are last."""
        names = [one.name for one in methods]
        errors = np.nan_to_num([self.value(name, "error") for name in names], nan=np.inf)
        return dict(zip(names, rankdata(errors).tolist(), strict=True))

    def over(self, method: str, other: str, measure: str) -> float:
        """A measure of one learner over the same of another; very short times count as equal."""
        least = LEAST_SECONDS if measure.endswith("seconds") else 0.0
        value, base = (self.value(name, measure) for name in (method, other))
        return float(np.maximum(value, least) / np.maximum(base, least))  # NaN stays NaN


def tables(results: Iterable[Result]) -> list[Table]:
    """Tables with a result of the base, the first learner of the league that has results."""
    groups: dict[tuple[str, int | None], dict[str, Result]] = {}
    for result in results:
        key = (result["dataset"], result.get("max_rows"))
        groups.setdefault(key, {})[result["method"]] = result
    names = {name for group in groups.values() for name in group}
    base = next((one for one in METHODS if one.name in names), METHODS[0])
    order = [one.name for one in DATASETS]
    keys = sorted(groups, key=lambda key: (order.index(key[0]), key[1] or 0))
    return [
        Table(name if cap is None else f"{name}, {cap:,} rows", groups[name, cap], base)
        for name, cap in keys
        if base.name in groups[name, cap]
    ]


def compared(methods: Iterable[Method], rows: list[Table]) -> tuple[list[Method], list[Table]]:
    """Learners that ran on two thirds of the tables, and the tables that all of those ran on.

    A failure that is written down is a run. Others are work in progress, and are left out.
    """
    ran = {one: sum(one.name in table.results for table in rows) for one in methods}
    kept = [one for one, number in ran.items() if number >= MOST * len(rows)]
    return kept, [table for table in rows if all(one.name in table.results for one in kept)]


@dataclass(frozen=True)
class Standing:
    """One learner among its rivals, over several tables."""

    method: Method
    mean_rank: float
    wins: int
    close: float  # share of tables with an error within 5 % of the best
    ratio: float  # geometric mean of error over best error, where the run succeeded
    worst_ratio: float
    time: float  # median of processor time to fit over the base's
    predict_time: float
    memory: float  # median, in bytes
    failures: int


def standings(methods: list[Method], rows: list[Table]) -> list[Standing]:
    """All learners, the best mean rank first.

    Learners of this package are budgets of one method. Each of them is ranked beside the rivals
    without the others, and the rivals are ranked beside the last of them.
    """
    rivals = [one for one in methods if not one.is_ours]
    ours = [one for one in methods if one.is_ours]
    found = [standing(one, [*rivals, one], rows) for one in ours]
    found += [standing(one, rivals + ours[-1:], rows) for one in rivals]
    return sorted(found, key=lambda one: one.mean_rank)


def standing(method: Method, field: list[Method], rows: list[Table]) -> Standing:
    name = method.name
    ranks = [table.ranks(field)[name] for table in rows]
    ratios = np.array([table.ratios(field)[name] for table in rows])
    finished = ratios[~np.isnan(ratios)]
    return Standing(
        method,
        mean_rank=float(np.mean(ranks)),
        wins=int(np.sum(finished <= 1)),
        close=float(np.sum(finished <= CLOSE) / len(rows)),
        ratio=float(np.exp(np.mean(np.log(np.minimum(finished, MAX_RATIO)))))
        if len(finished)
        else np.nan,
        worst_ratio=float(finished.max()) if len(finished) else np.nan,
        time=median(table.over(name, table.base.name, "fit_cpu_seconds") for table in rows),
        predict_time=median(
            table.over(name, table.base.name, "predict_cpu_seconds") for table in rows
        ),
        memory=median(table.value(name, "peak_bytes") for table in rows),
        failures=len(rows) - len(finished),
    )


def median(values: Iterable[float]) -> float:
    """The median of those that are numbers."""
    kept = [value for value in values if not np.isnan(value)]
    return float(np.median(kept)) if kept else np.nan


def share_below(method: str, other: str, rows: list[Table]) -> tuple[int, int]:
    """On how many tables the log-loss is below the other's, of those where both have one."""
    ratios = np.array([table.over(method, other, "log_loss") for table in rows])
    return int(np.sum(ratios < 1)), int(np.sum(~np.isnan(ratios)))


def coverage(method: str, rows: list[Table]) -> tuple[int, int]:
    """On how many tables the test error lies in the interval that the learner expected."""
    kept = [table.results[method] for table in rows]
    kept = [result for result in kept if result.get("expected_interval")]
    inside = [
        low <= one["error"] <= high for one in kept for low, high in [one["expected_interval"]]
    ]
    return sum(inside), len(inside)
