"""A feature map that chooses its own scaling, kernel and size."""

from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.kernels import Matern
from craftmaps.maps.base import FeatureMap, onnx_features
from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.parts.images import image_shape
from craftmaps.maps.wrapped import WrappedMap
from craftmaps.search.budget import EXACT_ROWS, Budget
from craftmaps.search.candidates import Candidate
from craftmaps.search.clock import Clock
from craftmaps.search.preparation import Scaling
from craftmaps.search.report import Report, Search
from craftmaps.search.rounds import halving
from craftmaps.search.sized import affordable_size, feature_map, sized_rounds
from craftmaps.search.targets import is_classification
from craftmaps.search.trials import Rows, Trial
from craftmaps.storage.expect import expect_array
from craftmaps.storage.packing import storable

MIN_ROWS = 10  # fewer rows cannot tell kernels apart
_SHARE_OF_SEARCH = 0.5  # share of a budget of training time


@storable
class AutoMap(FeatureMap):
    """Search for the kernel that suits rows and targets best, and approximate it by features.

    `fit` searches: it tries preparations of the columns (standardized, mapped by quantiles, unit
    norm), kernels (Gaussian, Matérn, Laplacian, polynomial) of many widths, sums of the best ones,
    and learned weights of columns or of other directions. Candidates are compared by exact
    leave-one-out predictions of kernel ridge regression, on few rows at first, and the best ones on
    more rows. The result is a `ScaledMap` around a `Nystroem` map, with all rows as landmarks if
    the budget allows it. There is no search for fewer than 10 rows, equal rows or equal targets,
    which get a Matérn kernel.

    Parameters
    ----------
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" means regression if the targets are numbers with more than 100 different values, or
        if some of them are not integers.
    budget : int, str or None, default=None
        A number of components; a training time, "10s" or "5min", half of which is for the search;
        a memory for training, "200MB"; a prediction time, "1ms/row"; or "unlimited". None takes
        one component for each row if there are at most 4,096 rows. With more rows, the number of
        components falls to 2,048.
    n_rows : int or None, default=None
        Total number of rows that a learner will see, if `fit` gets only a sample of them.
    images : bool or (height, width), default=False
        Whether rows are gray images, square ones or of that shape. If so, their oriented gradients
        are tried too, and the result may be an `ImageMap`.
    random_state : int, RandomState instance, Generator or None, default=None
        Draws the samples and the landmarks.

    Attributes
    ----------
    feature_map_ : ScaledMap, LevelsMap or ImageMap
        The chosen map, fitted.
    report_ : Report or None
        What was tried, and the expected error; None if there was no search.
    alpha_ : float or None
        The best penalty of kernel ridge regression in the search. Learners start their own search
        for alpha from it.
    target_ends_ : ndarray of shape (2, n_targets) or None
        The least and the largest target, which limit predictions; None for classes, and for a
        linear model.

    See Also
    --------
    craftmaps.KernelClassifier, craftmaps.KernelRegressor : learners that use this map by default.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from craftmaps import AutoMap
    >>> X, y = load_wine(return_X_y=True)
    >>> feature_map = AutoMap(random_state=0).fit(X, y)
    >>> bool(feature_map.report_.error < 0.05)
    True
    """

    feature_map_: FeatureMap
    report_: Report | None
    alpha_: float | None
    target_ends_: np.ndarray | None

    def __init__(
        self,
        *,
        task: str = "auto",
        budget: Any = None,
        n_rows: int | None = None,
        images: bool | tuple[int, int] = False,
        random_state: Any = None,
    ) -> None:
        self.task = task
        self.budget = budget
        self.n_rows = n_rows
        self.images = images
        self.random_state = random_state

    @property
    def n_components(self) -> int:
        """The largest number of output columns; `fit` takes at most one for each row."""
        budget = Budget.parse(self.budget)
        return int(budget.amount) if budget.kind == "components" else EXACT_ROWS

    @n_components.setter
    def n_components(self, value: int) -> None:
        self.budget = value

    @property
    def kernel_(self) -> Any:
        """The chosen kernel."""
        inner = self.feature_map_
        while isinstance(inner, WrappedMap):
            inner = inner.feature_map_
        return inner.kernel_

    def take_search(self) -> Search | None:
        """Return the search of the last fit, if there was one, and keep it no longer."""
        search: Search | None = self.__dict__.pop("_search", None)
        return search

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        if y is None:
            raise ValueError(
                "AutoMap requires y to be passed, but the target y is None: call fit(X, y)."
            )
        y = np.asarray(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"y has {len(y)} targets for the {X.shape[0]} rows of X.")
        classification = is_classification(self.task, y)
        seed = int(rng.integers(2**31))
        chosen, size, search, alpha = self._searched(X, y, classification, rng, seed)
        fitted, report = feature_map(chosen, size, X.shape[0], seed).fit(X, y), None
        if search is not None:
            budget, total = Budget.parse(self.budget), max(X.shape[0], self.n_rows or 0)
            report = Report.of(search, classification, budget.text, total)
        return {
            "feature_map_": fitted,
            "report_": report,
            "_search": search,
            "alpha_": alpha,
            "target_ends_": None if classification or chosen.is_linear else _ends(y),
            "_n_features_out": int(fitted._n_features_out),
        }

    def _searched(
        self, X: Any, y: np.ndarray, classification: bool, rng: np.random.Generator, seed: int
    ) -> tuple[Candidate, int, Search | None, float | None]:
        """Return the best candidate, its size, the search that found it, and the best penalty."""
        shape = self._shape_of_images(X)
        budget = Budget.parse(self.budget)
        total = max(X.shape[0], self.n_rows or 0)
        limit = None if budget.seconds is None else _SHARE_OF_SEARCH * budget.seconds
        clock = Clock(limit)
        if X.shape[0] < MIN_ROWS or is_constant(X) or is_constant(y):
            columns = "none" if sparse.issparse(X) else "standard"
            plain = Candidate(Scaling(columns), Matern(gamma="median"))
            return plain, self.n_components, None, None
        rows = Rows(X, y, classification, rng)
        rounds, sized = halving(rows, clock, shape), []
        left = (budget.seconds or np.inf) - clock.elapsed
        n_classes = len(np.unique(y)) if classification else 0
        size = budget.components(total, X.shape[1], left, n_classes)
        trial_size = affordable_size(size, total, X.shape[1], clock.remaining)
        if size < len(rows) and clock.has_time and trial_size:
            sized = sized_rounds(rows, rounds, size, total, seed, trial_size)
        search = Search(rounds, sized, clock.elapsed)
        best: Trial = search.rounds[-1][0]
        alpha = best.alpha if np.isfinite(best.alpha) else None  # infinite if the mean is best
        if best.candidate.is_linear:
            size = min(size, X.shape[1] + 1)  # the dimension of all linear functions
        return best.candidate, size, search, alpha

    def _shape_of_images(self, X: Any) -> tuple[int, int] | None:
        if self.images is False:
            return None
        return image_shape(X, None if self.images is True else self.images)

    def _fill(self, X: Any, out: np.ndarray) -> None:
        self.feature_map_._fill(X, out)

    def _check_stored(self) -> None:
        super()._check_stored()
        inner = self.feature_map_
        check_facts(
            self,
            feature_map_=isinstance(inner, FeatureMap)
            and inner.n_features_in_ == self.n_features_in_
            and inner._n_features_out == self._n_features_out,
        )
        if self.target_ends_ is not None:
            expect_array("target_ends_", self.target_ends_, "f", (2, None))

    def _onnx(self, g: Any, x: str) -> str:
        return onnx_features(g, x, self.feature_map_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _ends(y: np.ndarray) -> np.ndarray:
    """Return the least and the largest value of each target, as two rows."""
    columns = y.reshape(len(y), -1).astype(np.float64)
    return np.stack([columns.min(axis=0), columns.max(axis=0)])


def is_constant(rows: Any) -> bool:
    """Whether all rows, or all targets, are equal."""
    if sparse.issparse(rows):
        return bool((rows.max(axis=0) != rows.min(axis=0)).nnz == 0)
    return bool((rows == rows[:1]).all())
