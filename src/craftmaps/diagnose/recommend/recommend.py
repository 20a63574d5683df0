"""Which preprocessing, kernel, map, size and alpha: advice from a subsample."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, column_or_1d

from craftmaps.diagnose.recommend import candidates
from craftmaps.diagnose.recommend.advice import Advice
from craftmaps.diagnose.recommend.budget import Budget
from craftmaps.diagnose.recommend.preparation import Preparation, fit_preparation, preparations
from craftmaps.diagnose.recommend.rounds import (
    at_own_size,
    first_round,
    second_round,
    third_round,
)
from craftmaps.diagnose.recommend.trial import Split, Trial
from craftmaps.learn import OnePassClassifier, OnePassRegressor
from craftmaps.maps.parts.images import image_shape
from craftmaps.validation import check_choice, generator, is_continuous

_MIN_ROWS = 20
_MAX_HELD_OUT_ROWS = 10_000  # rows by which the last candidates are judged
_WORTHWHILE_GAIN = 0.98  # share of the default error that a searched alpha must reach to be taken


def recommend(
    X: Any,
    y: Any,
    budget: Any = 1024,
    *,
    task: str = "auto",
    images: bool | tuple[int, int] = False,
    random_state: Any = 0,
) -> Advice:
    """Recommend a learner for these data: a ready estimator, and the reasons for it.

    Candidates are trained on a subsample and judged on other rows of it, in three rounds of
    successive halving. The first round tries all kernels with all preparations on a few rows. The
    second one tries the best of these and their neighbors on more rows. The third one tries the
    maps of the best kernels, beside two plain defaults, at the size that the budget pays for. One
    factorization of each candidate gives the errors for all alphas.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        NaN is allowed where X is dense; columns are then imputed by their means.
    y : array-like of shape (n_samples,)
    budget : int or str, default=1024
        A number of components; a training time, "60s" or "5min"; a memory for training, "200MB";
        or a prediction time, "1ms/row", in batches. Sizes for times are extrapolated from
        measurements on this machine.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes numbers for regression if they have more than 100 different values, or are
        not whole.
    images : bool or (height, width), default=False
        Whether rows are gray images, square ones or of that shape. If so, their oriented gradients
        are tried too, see `ImageMap`.
    random_state : int, RandomState instance, Generator or None, default=0
        Draws the subsample and seeds the maps. The advice for a number of components depends on
        nothing else.

    Returns
    -------
    Advice
        `print(advice)` shows the reasons, `advice.estimator.fit(X, y)` follows them, and
        `advice.plot()` shows the candidates. The estimator is a `OnePassClassifier` or
        `OnePassRegressor` around a `ScaledMap` or an `ImageMap`, so that it can be saved, streamed,
        merged, sent to a cluster and exported. If X has missing values, it is a scikit-learn
        pipeline of an imputer and that learner, which can be fitted and pickled only.

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
    n_rows, n_targets = X.shape[0], 1 if classes is None else len(classes)
    has_missing = not sparse.issparse(X) and bool(np.isnan(X).any())
    rng = generator(random_state)
    order = rng.permutation(n_rows)
    n_held_out = min(_MAX_HELD_OUT_ROWS, n_rows // 4)
    seed = int(rng.integers(2**31))

    def splits(tried: Iterable[Preparation], n: int) -> dict[Preparation, Split]:
        held_out, rows = order[: min(n_held_out, n)], order[n_held_out : n_held_out + n]
        new, old = X[held_out], X[rows]
        if has_missing:
            imputer = _imputer().fit(old)
            new, old = imputer.transform(new), imputer.transform(old)
        return {one: _split(one, old, new, y[rows], y[held_out], classes) for one in tried}

    size = limit.search_size(n_rows, n_targets)
    first = first_round(splits, preparations(X, shape), n_rows, size, seed)
    second = second_round(splits, first, size, seed)
    third = third_round(splits, second, candidates.defaults(X, size, seed), size, seed)
    if limit.kind != "components":
        third = at_own_size(splits, third, limit, n_rows, n_targets)
    best = limit.best(third, n_rows, n_targets)
    learner = _learner(best, limit.components(best, n_rows, n_targets), n_rows, classes)
    return Advice(
        estimator=make_pipeline(_imputer(), learner) if has_missing else learner,
        best=best,
        rounds=(first, second, third),
        budget=limit,
        n_rows=n_rows,
        n_targets=n_targets,
        classification=classes is not None,
        seconds=time.perf_counter() - start,
    )


def _learner(best: Trial, n_components: int, n_rows: int, classes: Any) -> Any:
    """The learner that the best trial recommends, unfitted."""
    inner = clone(best.feature_map).set_params(n_components=n_components)
    if hasattr(inner, "landmarks"):  # there are no more landmarks than rows
        inner.set_params(n_components=min(n_components, n_rows))
    learner_class = OnePassRegressor if classes is None else OnePassClassifier
    learner = learner_class(best.preparation.around(inner))
    trained_on_most = 2 * best.n_rows > n_rows  # alpha was found on about as many rows
    if trained_on_most and best.error < _WORTHWHILE_GAIN * best.default_alpha_error:
        learner.set_params(alpha=best.alpha)
    return learner


def _imputer() -> SimpleImputer:
    """Means of columns; a column without a value in a sample may have values in other rows."""
    return SimpleImputer(keep_empty_features=True)


def _split(
    preparation: Preparation, X: Any, X_held_out: Any, y: Any, y_held_out: Any, classes: Any
) -> Split:
    prepare = fit_preparation(preparation, X)
    rows = _single(prepare(X))
    start = time.perf_counter()
    held_out = _single(prepare(X_held_out))
    seconds = (time.perf_counter() - start) / len(y_held_out)
    return Split(preparation, rows, y, held_out, y_held_out, classes, seconds)


def _single(X: Any) -> Any:
    return X.astype(np.float32) if sparse.issparse(X) else np.asarray(X, dtype=np.float32)


def _checked(X: Any, y: Any, task: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """X, y and the classes (None for regression), or an error that says why there is no advice."""
    check_choice("task", task, ("auto", "classification", "regression"))
    finite = True if sparse.issparse(X) else "allow-nan"
    X = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=finite
    )
    y = column_or_1d(y)
    check_consistent_length(X, y)
    if X.shape[0] < _MIN_ROWS:
        raise ValueError(
            f"advice needs at least {_MIN_ROWS} rows, got {X.shape[0]}; with so few, try a "
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
