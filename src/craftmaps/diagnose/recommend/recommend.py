"""Which preprocessing, kernel, map, size and alpha: advice from a subsample."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, column_or_1d

from craftmaps.diagnose.recommend import candidates
from craftmaps.diagnose.recommend.advice import Advice
from craftmaps.diagnose.recommend.budget import Budget
from craftmaps.diagnose.recommend.trial import Split, Trial, attempt
from craftmaps.learn import OnePassClassifier, OnePassRegressor
from craftmaps.maps import ImageMap
from craftmaps.maps.parts.images import image_shape
from craftmaps.validation import check_choice, generator, is_continuous

_LEAST_ROWS = 20
_LEFT_OUT = 10_000  # rows to judge the last candidates by, at most
_ROWS = (750, 3000, 16_000)  # to learn from in each round, at most
_PROBE = (192, 512)  # components of the map with which kernels are compared
_KEPT = (10, 2)  # kernels that survive the first and the second round
_GAIN = 0.98  # of GCV's error that an alpha must reach to be taken instead


def recommend(
    X: Any,
    y: Any,
    budget: Any = 1024,
    *,
    task: str = "auto",
    images: bool | tuple[int, int] = False,
    random_state: Any = 0,
) -> Advice:
    """What to use for these data: a ready estimator, and the reasons for it.

    Candidates are learnt on a subsample and judged on other rows of it, in three rounds of
    successive halving: all kernels with all preprocessings on a few rows; the best of these and
    their neighbours on more; the maps of the best kernels, beside two plain defaults, at the size
    that the budget pays for. Of each candidate, one factorisation gives the errors for all alphas.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        NaN is allowed where X is dense; columns are then imputed by their means.
    y : array-like of shape (n_samples,)
    budget : int or str, default=1024
        A number of components; a training time, "60s" or "5min"; a memory for training, "200MB";
        or a time of prediction, "1ms/row", in batches. Sizes for times are extrapolated from
        measurements on this machine.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes numbers for regression if they have more than 100 different values, or are
        not whole.
    images : bool or (height, width), default=False
        Whether rows are gray images, square ones or of that shape: then their oriented gradients
        are tried too, see `ImageMap`.
    random_state : int, RandomState instance, Generator or None, default=0
        Draws the subsample and seeds the maps; the advice for a number of components depends on
        nothing else.

    Returns
    -------
    Advice
        `print(advice)` tells the reasons, `advice.estimator.fit(X, y)` follows them, and
        `advice.plot()` shows the candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from craftmaps.diagnose import recommend
    >>> X, y = load_digits(return_X_y=True)
    >>> advice = recommend(X[:1000], y[:1000], budget=256)
    >>> model = advice.estimator.fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.93)
    True
    """
    start = time.perf_counter()
    limit = Budget.parse(budget)
    X, y, classes = _checked(X, y, task)
    shape = None if images is False else image_shape(X, None if images is True else images)
    scalers = candidates.preparations(X, shape)
    rng = generator(random_state)
    order = rng.permutation(X.shape[0])
    n_left = min(_LEFT_OUT, X.shape[0] // 4)
    seed = int(rng.integers(2**31))
    n_targets = 1 if classes is None else len(classes)

    def prepared(names: Any, n_rows: int) -> dict[str, Split]:
        left = order[: min(n_left, n_rows)]
        rows = order[n_left : n_left + n_rows]
        return {name: _split(name, scalers[name], X, y, rows, left, classes) for name in names}

    size = limit.search_size(X.shape[0], n_targets)
    first = _first_round(prepared, list(scalers), X, size, seed)
    second = _second_round(prepared, first, size, seed)
    third = _third_round(prepared, second, X, size, seed)
    if limit.kind != "components":
        third = _at_own_size(prepared, third, limit, X.shape[0], n_targets)
    best = limit.best(third, X.shape[0], n_targets)
    n_components = limit.components(best, X.shape[0], n_targets)
    return Advice(
        estimator=_estimator(best, scalers[best.preparation], n_components, X, classes, shape),
        best=best,
        rounds=(first, second, third),
        budget=limit,
        n_rows=X.shape[0],
        n_targets=n_targets,
        classification=classes is not None,
        seconds=time.perf_counter() - start,
    )


def _first_round(
    prepared: Callable[..., Any], names: list[str], X: Any, size: int, seed: int
) -> list[Trial]:
    n_rows = min(_ROWS[0], max(X.shape[0] // 8, min(200, X.shape[0] // 2)))
    found = []
    for split in prepared(names, n_rows).values():
        probe_size = min(size, _PROBE[0], split.X.shape[0] // 2)
        found += [
            attempt(split, candidates.probe(kernel, probe_size, seed))
            for kernel in candidates.kernels(split.X)
        ]
    return found


def _second_round(
    prepared: Callable[..., Any], first: list[Trial], size: int, seed: int
) -> list[Trial]:
    kept = _varied(first, _KEPT[0])
    n_rows = 4 * first[0].n_rows
    splits = prepared({trial.preparation for trial in kept}, n_rows)
    probe_size = min(size, _PROBE[1], n_rows // 4)
    found = [
        attempt(splits[trial.preparation], candidates.probe(trial.kernel, probe_size, seed))
        for trial in kept
    ]
    for trial in _best(found, _KEPT[1]):
        tried = [(t.preparation, t.kernel) for t in found]
        found += [
            attempt(splits[trial.preparation], candidates.probe(kernel, probe_size, seed))
            for kernel in candidates.neighbours(trial.kernel)
            if (trial.preparation, kernel) not in tried
        ]
    return found


def _third_round(
    prepared: Callable[..., Any], second: list[Trial], X: Any, size: int, seed: int
) -> list[Trial]:
    kept = _best(second, _KEPT[1])
    plain = candidates.defaults(X, size, seed)
    names = {trial.preparation for trial in kept} | {name for name, _ in plain}
    splits = prepared(names, _ROWS[2])
    found = []
    for trial in kept:
        split = splits[trial.preparation]
        n_rows, n_columns = split.X.shape
        options = candidates.maps(trial.kernel, size, n_rows, n_columns, seed)
        found += [attempt(split, feature_map) for feature_map in options]
    best = min(found, key=lambda trial: trial.score)
    split = splits[best.preparation]
    costly = candidates.costly_map(best.kernel, size, split.X.shape[0], seed)
    found.append(attempt(split, costly))
    return found + [attempt(splits[name], feature_map) for name, feature_map in plain]


def _at_own_size(
    prepared: Callable[..., Any], third: list[Trial], limit: Budget, n_rows: int, n_targets: int
) -> list[Trial]:
    """The best maps again, each as large as the budget allows (and the search can afford)."""
    kept = [trial for trial in third if limit.components(trial, n_rows, n_targets)]
    kept = _best(kept, 4) or [limit.best(third, n_rows, n_targets)]
    splits = prepared({trial.preparation for trial in kept}, _ROWS[2])
    found = []
    for trial in kept:
        size = min(1024, limit.components(trial, n_rows, n_targets))
        split = splits[trial.preparation]
        size = min(size, split.X.shape[0])
        found.append(attempt(split, clone(trial.feature_map).set_params(n_components=size)))
    return found


def _best(trials: list[Trial], n: int) -> list[Trial]:
    return sorted(trials, key=lambda trial: trial.score)[:n]


def _varied(trials: list[Trial], n: int) -> list[Trial]:
    """The best with each preprocessing, then the best of the rest."""
    ranked = _best(trials, len(trials))
    first = {trial.preparation: trial for trial in reversed(ranked)}.values()
    rest = [trial for trial in ranked if trial not in first]
    return [*first, *rest][: max(n, len(first))]


def _estimator(
    best: Trial, scaler: Pipeline, n_components: int, X: Any, classes: Any, shape: Any
) -> Pipeline:
    """Preprocessing and learner, unfitted."""
    feature_map = clone(best.feature_map).set_params(n_components=n_components)
    if hasattr(feature_map, "landmarks"):
        feature_map.set_params(n_components=min(n_components, X.shape[0]))
    near = 2 * best.n_rows > X.shape[0]  # where alpha was found on about as many rows
    alpha = best.alpha if near and best.error < _GAIN * best.gcv_error else "gcv"
    learner = OnePassRegressor if classes is None else OnePassClassifier
    steps: list[Any] = [step for _, step in clone(scaler).steps]
    if best.preparation == candidates.GRADIENTS:  # in the map, where model files keep them
        steps.pop()
        feature_map = ImageMap(feature_map, cells=candidates.cells_of(shape), shape=shape)
    return make_pipeline(*steps, learner(feature_map, alpha=alpha))


def _split(
    name: str, scaler: Pipeline, X: Any, y: Any, rows: Any, left: Any, classes: Any
) -> Split:
    scaler = clone(scaler).fit(X[rows])
    some = _single(scaler.transform(X[rows]))
    start = time.perf_counter()
    others = _single(scaler.transform(X[left]))
    took = (time.perf_counter() - start) / len(left)
    return Split(name, some, y[rows], others, y[left], classes, took)


def _single(X: Any) -> Any:
    return X.astype(np.float32) if sparse.issparse(X) else np.asarray(X, dtype=np.float32)


def _checked(X: Any, y: Any, task: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """X, y and the classes, None for regression; or one sentence why there is no advice."""
    check_choice("task", task, ("auto", "classification", "regression"))
    finite = True if sparse.issparse(X) else "allow-nan"
    X = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=finite
    )
    y = column_or_1d(y)
    check_consistent_length(X, y)
    if X.shape[0] < _LEAST_ROWS:
        raise ValueError(
            f"advice takes at least {_LEAST_ROWS} rows, got {X.shape[0]}; with so few, try a "
            f"kernel machine itself, such as sklearn.svm.SVC."
        )
    if not sparse.issparse(X) and np.isnan(X).all(axis=0).any():
        column = int(np.flatnonzero(np.isnan(X).all(axis=0))[0])
        raise ValueError(f"column {column} of X is all NaN; leave it out.")
    spread = X.max(axis=0) - X.min(axis=0)
    spread = spread.toarray() if sparse.issparse(spread) else spread
    if not np.nan_to_num(spread, nan=1.0).any():
        raise ValueError("all rows of X are the same: there is nothing to tell them apart by.")
    if task == "regression" or (task == "auto" and is_continuous(y)):
        y = check_array(y, ensure_2d=False, dtype=np.float64)
        if np.ptp(y) == 0:
            raise ValueError(f"all targets are {y[0]:g}: there is nothing to learn.")
        return X, y, None
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()}: there is nothing to tell apart."
        )
    return X, y, classes
