"""The learners of this package: a function for each makes one for a case, unfitted."""

from typing import Any

import pandas as pd
from sklearn.pipeline import make_pipeline

from benchmarks.league.case import Case

N_COMPONENTS = 1024
TIMES_LIGHTGBM = 10
LEAST_SECONDS = 0.1  # a budget below this pays for no search at all


def auto(case: Case, budget: Any) -> Any:
    """A kernel machine that chooses its own map; a table is encoded first."""
    from craftmaps import KernelClassifier, KernelRegressor, TableEncoder

    kind = case.choose(KernelClassifier, KernelRegressor)
    learner = kind("auto", budget=budget, random_state=case.seed)
    is_table = isinstance(case.X, pd.DataFrame)
    return make_pipeline(TableEncoder(), learner) if is_table else learner


def by_default(case: Case) -> Any:
    return auto(case, None)


def of_1024_components(case: Case) -> Any:
    return auto(case, N_COMPONENTS)


def of_ten_times_lightgbm(case: Case) -> Any:
    if case.lightgbm_seconds is None:
        raise ValueError("the time of LightGBM is not known: run lightgbm on this table first")
    return auto(case, f"{max(TIMES_LIGHTGBM * case.lightgbm_seconds, LEAST_SECONDS):.2f}s")


def unlimited(case: Case) -> Any:
    return auto(case, "unlimited")


def expectations(model: Any) -> dict[str, Any]:
    """What a fitted learner expects of itself: its error, the 90 % interval, and its choice."""
    learner = model[-1] if hasattr(model, "steps") else model
    report = learner.report_
    if report is None:
        return {}
    return {
        "expected_error": float(report.error),
        "expected_interval": [float(bound) for bound in report.interval],
        "chosen": report.rounds[-1][0][0],
    }
