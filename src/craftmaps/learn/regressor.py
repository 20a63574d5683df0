"""Ridge regression on features, from one pass."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from craftmaps.learn.codes import Unchanged
from craftmaps.learn.one_pass import (
    FLOATS,
    SAMPLE_ROWS,
    begin,
    check_mergeable,
    fit_blocks,
    fit_whole,
    predictions,
    sample_weights,
    save,
    solution_of,
    solved,
    stream_of,
)
from craftmaps.learn.progress import Progress
from craftmaps.learn.stored import check_regressor
from craftmaps.learn.stream import FeatureStream
from craftmaps.storage.packing import storable


@storable
class OnePassRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Exact ridge regression on the features of a map: min |Y - Z W - c|^2 + alpha |W|^2.

    One pass over the rows keeps sums of size n_components^2; W, c and alpha come from them. The
    result is the same whether rows come at once, in blocks, or merged from several learners.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Turns rows into features: a map of this package or any scikit-learn transformer. None
        takes the rows as they are. A clone of it is fitted on the rows of `fit` or on the first
        block; wrap a fitted one in `sklearn.frozen.FrozenEstimator` to have it used as it is.
    alpha : "gcv", float or sequence of floats, default="gcv"
        The penalty, on the scale of scikit-learn's Ridge. "gcv" takes the minimum of generalised
        cross-validation, from the sums alone, or, where there are no more rows than features, of
        the squared errors of up to 1,024 rows that are left out one by one; of a sequence the alpha
        with the least K-fold error, for which sums are kept per fold.
    fit_intercept : bool, default=True
        Whether to fit c, which is not penalised.
    alpha_per_target : bool, default=False
        Whether each target may get its own alpha.
    n_folds : int, default=5
        Folds for a sequence of alphas; row i of the stream belongs to fold i mod n_folds.
    block_rows : int, default=4096
        Rows whose features are held at a time and enter the sums together.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
    intercept_ : float or ndarray of shape (n_targets,)
    alpha_ : float or ndarray of shape (n_targets,)
    jitter_ : float or ndarray
        The most that had to be added to `alpha_` because the system was singular to working
        precision; 0 usually, and a warning otherwise. Where alpha was given, a feature gets the
        more the longer it is.
    condition_ : float or ndarray
        Condition number of the system that was solved: of extreme eigenvalues where alpha was
        searched, otherwise LAPACK's estimate in the 1-norm, with features scaled to equal lengths;
        of many rows with still more features an estimate of the former, from a sample of the rows.
    alphas_, scores_ : ndarray of shape (n_alphas,) and (n_alphas, n_targets), or None
        The alphas that were tried, and their GCV score, loss of rows left out, or mean squared
        K-fold error. The log-loss by which a classifier of few rows chooses is one for all targets.
    feature_map_ : fitted transformer or None
    n_samples_seen_ : int

    Notes
    -----
    Features of float32 rows are float32. The sums of their products are float64; beyond 2048
    features the products within a block of rows are float32, at half the time, which bounds from
    below the alpha that makes a difference. A row of sample_weight 2 counts as two rows, in GCV
    too: give weights of mean 1 there.

    `fit` keeps rows that are fewer than their features. More than 16,384 of them are solved for by
    conjugate gradients, to 2/3 of the digits of features. "gcv" is then the best of half-decades
    for a tenth of the rows that is left out.

    A map may offer `penalty()`, a positive semi-definite matrix P: then alpha w^T P w is penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import OnePassRegressor, Polynomial, RandomMaclaurin
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 5)) / 3
    >>> y = X[:, 0] * X[:, 1] + 0.01 * rng.standard_normal(2000)
    >>> feature_map = RandomMaclaurin(Polynomial(degree=2), n_components=200, random_state=0)
    >>> model = OnePassRegressor(feature_map).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.99
    """

    feature_map_: Any
    _stream: FeatureStream
    _probe: Any = None  # a row of the data, if the sums of rows are kept
    _probe_features: Any = None
    _one_target: bool
    _n_targets: int

    def __init__(
        self,
        feature_map: Any = None,
        *,
        alpha: Any = "gcv",
        fit_intercept: bool = True,
        alpha_per_target: bool = False,
        n_folds: int = 5,
        block_rows: int = 4096,
    ) -> None:
        self.feature_map = feature_map
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.alpha_per_target = alpha_per_target
        self.n_folds = n_folds
        self.block_rows = block_rows

    alpha_ = solved("alpha")
    jitter_ = solved("jitter")
    condition_ = solved("condition")
    alphas_ = solved("alphas")
    scores_ = solved("scores")

    @property
    def coef_(self) -> np.ndarray:
        coef = solution_of(self).coef
        return np.asarray(coef[:, 0] if self._one_target else coef.T)

    @property
    def intercept_(self) -> Any:
        intercept = solution_of(self).intercept
        return float(intercept[0]) if self._one_target else intercept

    @property
    def n_samples_seen_(self) -> int:
        return stream_of(self).n_rows

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and targets y, forgetting what was learnt before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        """
        fit_whole(self, X, y, sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from further rows. The system is solved when a result is first asked for."""
        return self._add(X, y, sample_weight, Progress(None, shown=False))

    def fit_blocks(
        self,
        blocks: Iterable[Any],
        *,
        checkpoint: Any = None,
        every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Learn from an iterable of (X, y) or (X, y, sample_weight), whatever its length.

        Parameters
        ----------
        blocks : iterable
            Such as `craftmaps.scale.blocks.read` gives it.
        checkpoint : path of a folder, default=None
            Where to write what was learnt, so that the same call goes on from there after the
            process was killed; the model is the same, to the last bit on the same machine. After
            the end it gives the model without learning a row again. A folder of other rows or
            parameters is refused.
        every : float, default=60.0
            Seconds between two checkpoints.
        progress : bool or None, default=None
            None shows a line of progress if standard error is a terminal.
        """
        fit_blocks(self, blocks, checkpoint, every, progress)
        return self

    def merge(self, other: "OnePassRegressor") -> Self:
        """Learn what `other` has learnt from its rows with the same map; it stays as it is."""
        check_mergeable(self, other)
        if other._n_targets != self._n_targets:
            raise ValueError(
                f"the two regressors have {self._n_targets} and {other._n_targets} targets, so "
                f"their sums do not add; give both the same targets."
            )
        self._stream.merge(other._stream)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, of the shape of y."""
        predicted = np.concatenate(list(predictions(self, X)))
        return predicted[:, 0] if self._one_target else predicted

    def save(self, path: Any, *, resumable: bool = False) -> None:
        """Write the model to one file, from which `craftmaps.load` gives it back.

        Parameters
        ----------
        path : path of the file
        resumable : bool, default=False
            Whether to store the sums of the rows too, 4 n_components^2 bytes per fold, so that
            `partial_fit` and `merge` can go on after loading. Without them the model predicts.
        """
        save(self, path, resumable)

    def _add(
        self, X: Any, y: Any, sample_weight: Any, progress: Progress, whole: bool = False
    ) -> Self:
        first = not hasattr(self, "_stream")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=FLOATS,
            multi_output=True,
            y_numeric=True,
            reset=first,
        )
        weights = sample_weights(sample_weight, X)
        targets = y[:, None] if y.ndim == 1 else y
        if first:
            n_rows = len(y) if whole else None
            begin(
                self,
                X,
                y,
                Unchanged(),
                n_targets=targets.shape[1],
                n_rows=n_rows,
                sample_rows=SAMPLE_ROWS if isinstance(self.alpha, str) else 0,
            )
            self._one_target, self._n_targets = y.ndim == 1, targets.shape[1]
        elif targets.shape[1] != self._n_targets:
            raise ValueError(f"y has {targets.shape[1]} targets, and had {self._n_targets} before.")
        self._stream.add(X, targets.astype(np.float64), weights, progress)
        return self

    def _check_stored(self) -> None:
        check_regressor(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
