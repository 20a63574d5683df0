"""Other learners, at their defaults: a function for each makes one for a case, unfitted."""

from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.league.case import Case
from benchmarks.league.columns import category_names, numbered, one_hot
from benchmarks.league.grid_svm import GridSVM

N_LANDMARKS = 1024


def lightgbm(case: Case) -> Any:
    import lightgbm

    kind = case.choose(lightgbm.LGBMClassifier, lightgbm.LGBMRegressor)
    return kind(n_jobs=case.threads, random_state=case.seed, verbose=-1)


def xgboost(case: Case) -> Any:
    import xgboost

    kind = case.choose(xgboost.XGBClassifier, xgboost.XGBRegressor)
    return make_pipeline(one_hot(case.X), kind(n_jobs=case.threads, random_state=case.seed))


def catboost(case: Case) -> Any:
    import catboost

    kind = case.choose(catboost.CatBoostClassifier, catboost.CatBoostRegressor)
    return kind(
        thread_count=case.threads,
        random_seed=case.seed,
        cat_features=category_names(case.X),
        verbose=False,
        allow_writing_files=False,
    )


def hist_gradient_boosting(case: Case) -> Any:
    kind = case.choose(HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    categories = np.arange(len(category_names(case.X)))
    return make_pipeline(
        numbered(case.X), kind(random_state=case.seed, categorical_features=categories)
    )


def forest(case: Case) -> Any:
    kind = case.choose(RandomForestClassifier, RandomForestRegressor)
    return make_pipeline(one_hot(case.X), kind(n_jobs=case.threads, random_state=case.seed))


def nystroem(case: Case) -> Any:
    size = min(N_LANDMARKS, len(case.X))
    learner = case.choose(LogisticRegression(max_iter=1000), Ridge())
    features = Nystroem(n_components=size, random_state=case.seed)
    return scaled_target(case, make_pipeline(one_hot(case.X), features, learner))


def mlp(case: Case) -> Any:
    learner = case.choose(MLPClassifier, MLPRegressor)(random_state=case.seed)
    return scaled_target(case, make_pipeline(one_hot(case.X), learner))


def svm(case: Case) -> Any:
    return scaled_target(case, make_pipeline(one_hot(case.X), GridSVM(case)))


def xrfm(case: Case) -> Any:
    from benchmarks.league.recursive_features import RecursiveFeatures

    return scaled_target(case, make_pipeline(one_hot(case.X), RecursiveFeatures(case)))


def scaled_target(case: Case, learner: Any) -> Any:
    """A regressor that is fitted to standardized targets; a classifier as it is."""
    return case.choose(
        learner,
        TransformedTargetRegressor(learner, transformer=StandardScaler(), check_inverse=False),
    )
