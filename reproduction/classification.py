"""Test errors of classifiers on features (CRAFT Table 1)."""

import functools
import json
import time

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from craftmaps.diagnose import recommend
from craftmaps.kernels import Gaussian
from craftmaps.learn import KernelClassifier, OnePassClassifier
from craftmaps.learn.solvers.choose import MANY_ROWS as MANY
from craftmaps.maps import FourierFeatures
from reproduction import dual
from reproduction.datasets import Dataset
from reproduction.methods import (
    CRAFT_DISCRIMINANT,
    GAUSSIAN,
    LOG_LOSS,
    OURS,
    feature_map,
    kernel_of,
)
from reproduction.rows import raw_rows, unit_rows
from reproduction.spec import Run, key_of

_MAX_SEARCHED_UNKNOWNS = 8000  # up to here alpha is searched for the model itself
_SIZE_OF_ALPHA = 4096  # larger models take the alpha of the same map with so many features
_ADVISED_COMPONENTS = 1024  # the budget of the advice
RECOMMENDED = f"Recommended{LOG_LOSS}"


def measure(run: Run) -> dict[str, float]:
    """Test error in per cent, alpha, and seconds of the fit.

    With the squared loss the papers' methods learn codes of 200 random bits, as published, and ours
    one-vs-rest. There the learner chooses alpha, and a model of more than 8,000 unknowns takes the
    alpha that it chooses for 4,096 features of the same map; where all rows of a large set are
    landmarks, the system of their kernel matrix is solved instead. With the log-loss
    alpha is chosen at every size. "Recommended" is the learner that is advised
    for 1,024 components on the rows as they are, at the size of the run.
    """
    data, X, y = _rows(run)
    model = model_of(run, data, run["size"])
    if not run["method"].endswith(LOG_LOSS):
        if run["size"] >= len(X) > MANY and dual.has_landmarks(model):
            return _of_all_rows(run, data, X, y)
        if min(run["size"], len(X)) > _MAX_SEARCHED_UNKNOWNS:
            model[-1].set_params(alpha=_alpha(key_of(run | {"size": _SIZE_OF_ALPHA})))
    start = time.perf_counter()
    model.fit(X, y)
    took = time.perf_counter() - start
    error = 100 * (1 - model.score(data.X_test, data.y_test))
    return {"error": float(error), "alpha": float(model[-1].alpha_), "fit_seconds": took}


def _of_all_rows(run: Run, data: Dataset, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    model = model_of(run, data, _SIZE_OF_ALPHA).fit(X, y)
    start = time.perf_counter()
    found = dual.predictions(model, X, y, data.X_test)
    took = time.perf_counter() - start
    error = 100 * float(np.mean(found != data.y_test))
    return {"error": error, "alpha": float(model[-1].alpha_), "fit_seconds": took}


def model_of(run: Run, data: Dataset, size: int) -> Pipeline:
    """The map and the learner of a run, with so many features; not fitted."""
    method, seed = run["method"], run["seed"]
    if method == RECOMMENDED:
        advised = clone(_advice(run["data"], seed, run.get("train_rows")))
        return make_pipeline(
            "passthrough",
            advised.set_params(feature_map__n_components=size, loss="log", random_state=seed),
        )
    kernel = kernel_of(run)
    if method.removesuffix(LOG_LOSS) in GAUSSIAN:
        kernel = gaussian(run["data"], run.get("train_rows"))
    n_columns = data.X_train.shape[1]
    chosen = feature_map(method, kernel, size, n_columns=n_columns, seed=seed)
    if method.endswith(LOG_LOSS):
        return make_pipeline("passthrough", KernelClassifier(chosen, loss="log", random_state=seed))
    codes = {} if method in OURS else {"codes": "random", "n_bits": run["bits"]}
    if method == CRAFT_DISCRIMINANT:
        codes = {"decoding": "discriminant"}
    return make_pipeline("passthrough", OnePassClassifier(chosen, random_state=seed, **codes))


@functools.cache
def _advice(name: str, seed: int, train_rows: int | None) -> KernelClassifier:
    data = raw_rows(name, seed)
    X, y = data.X_train[:train_rows], data.y_train[:train_rows]
    advised: KernelClassifier = recommend(X, y, _ADVISED_COMPONENTS, random_state=seed).estimator
    return advised


@functools.cache
def _alpha(key: str) -> float:
    """The alpha that the learner chooses in a run, given as its key: the same for larger sizes."""
    run: Run = json.loads(key)
    data, X, y = _rows(run)
    return float(model_of(run, data, run["size"]).fit(X, y)[-1].alpha_)


def _rows(run: Run) -> tuple[Dataset, np.ndarray, np.ndarray]:
    """The data set of a run, and the rows and labels that it trains on."""
    data = (raw_rows if run["method"] == RECOMMENDED else unit_rows)(run["data"], run["seed"])
    few = slice(run.get("train_rows"))
    return data, data.X_train[few], data.y_train[few]


@functools.cache
def gaussian(name: str, train_rows: int | None) -> Gaussian:
    """The width with the least GCV score of 1,024 features on 10,000 training rows.

    No paper of the tables says how it was chosen.
    """
    data = unit_rows(name)
    few = slice(min(train_rows or 10_000, 10_000))
    X, y = data.X_train[few], data.y_train[few]
    gammas = [0.5 * 2.0**k for k in range(6)]

    def score(gamma: float) -> float:
        features = FourierFeatures(Gaussian(gamma), 1024, sampling="orthogonal", random_state=0)
        scores = OnePassClassifier(features, alpha="gcv").fit(X, y).scores_
        assert scores is not None  # alpha was searched
        return float(np.min(scores))

    return Gaussian(min(gammas, key=score))
