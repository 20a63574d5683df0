"""All learners of the league by name, and the packages whose versions a result carries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.league import ours, rivals
from benchmarks.league.case import Case


@dataclass(frozen=True)
class Method:
    """A learner: its name on the command line, in words, how it is made, and its package."""

    name: str
    words: str
    make: Callable[[Case], Any]
    package: str = "scikit-learn"
    is_ours: bool = False  # takes text and dates as they are, and has expectations of itself


def mine(name: str, words: str, make: Callable[[Case], Any]) -> Method:
    return Method(name, words, make, "craftmaps", is_ours=True)


METHODS = (
    Method("lightgbm", "LightGBM", rivals.lightgbm, "lightgbm"),
    Method("xgboost", "XGBoost", rivals.xgboost, "xgboost"),
    Method("catboost", "CatBoost", rivals.catboost, "catboost"),
    Method("histogram", "HistGB", rivals.hist_gradient_boosting),
    Method("forest", "forest", rivals.forest),
    Method("svm", "SVM grid", rivals.svm),
    Method("nystroem", "Nystroem", rivals.nystroem),
    Method("mlp", "MLP", rivals.mlp),
    Method("xrfm", "xRFM", rivals.xrfm, "xrfm"),
    mine("auto-1024", "auto, 1,024", ours.of_1024_components),
    mine("auto-10x", "auto, 10 x LightGBM", ours.of_ten_times_lightgbm),
    mine("auto-default", "auto", ours.by_default),
    mine("auto-unlimited", "auto, unlimited", ours.unlimited),
)
