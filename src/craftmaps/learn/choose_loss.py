"""Which loss suits a classifier: the squared one or the log-loss.

With many rows for each feature, the log-loss makes far fewer errors. With few rows for each
feature, the features nearly equal the exact kernel. The squared loss is then about as good, often
better, and takes one pass. Tables whose classes follow rules without noise are an exception, so
both losses are tried on a sample of the rows.
"""

import numpy as np
from scipy.special import log_softmax

from craftmaps.learn.calibration import temperature
from craftmaps.learn.codes import OneBit, OneVsRest, Unchanged
from craftmaps.learn.few_pass_fit import Fit
from craftmaps.learn.losses import BitLogLoss, LogLoss
from craftmaps.learn.map_rows import place_priority
from craftmaps.learn.passes import N_FOLDS
from craftmaps.learn.progress import Progress
from craftmaps.learn.rows_again import RowsAgain
from craftmaps.learn.solvers.alpha_path import search

MANY_ROWS = 4  # for each feature, from which the log-loss is taken without a trial
SAMPLE_ROWS = 1000
_FOLDS = range(3)  # of ten, that are held out in a trial
_SHARE_OF_ALPHA = 0.2  # of the penalty that suits the squared loss, for the log-loss
_LEAST_ALPHA = 1e-5  # in mean squares of features: their rounding shows below
_CLEAR_GAIN = 0.93  # share of the loss that must be left for the slower loss to be taken
_MAX_PASSES = 100
_MANY_CLASSES = 100  # from which a trial would take long


def prefers_log(Z: np.ndarray, labels: np.ndarray, n_classes: int, alpha: float) -> bool:
    """Whether the log-loss predicts probabilities of rows held out clearly better.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_features)
        Features of a sample of the rows.
    labels : ndarray of shape (n_rows,)
        Numbers of their classes.
    n_classes : int
    alpha : float
        A penalty that suits the squared loss.
    """
    held = np.isin(place_priority(np.arange(len(Z))) % np.uint64(N_FOLDS), _FOLDS)
    if n_classes > _MANY_CLASSES or not held.any() or len(np.unique(labels[~held])) < 2:
        return False
    alpha = max(alpha, _LEAST_ALPHA * float(np.mean(np.einsum("ij,ij->i", Z, Z))))
    squared = float(_squared_losses(Z, labels, n_classes, alpha)[held].sum())
    return _log_loss(Z, labels, n_classes, _SHARE_OF_ALPHA * alpha) < _CLEAR_GAIN * squared


def _squared_losses(Z: np.ndarray, labels: np.ndarray, n_classes: int, alpha: float) -> np.ndarray:
    """The log-losses of rows that are left out of ridge regression, one at a time."""
    code = OneBit() if n_classes == 2 else OneVsRest(n_classes)
    Y = code.encode(labels).astype(np.float64)
    centered = Z - Z.mean(axis=0, dtype=np.float64)
    K = centered @ centered.T
    K[np.diag_indices_from(K)] += alpha
    inverse = np.linalg.inv(K)
    inverse -= 1 / (alpha * len(K))  # the intercept: K has no part along the constant vector
    left_out = Y - inverse @ Y / inverse.diagonal()[:, None]
    scores = code.scores(left_out)
    factor = temperature(scores, labels, np.ones(len(labels)))
    losses = -log_softmax(factor * scores, axis=1)[np.arange(len(labels)), labels]
    return np.asarray(losses)


def _log_loss(Z: np.ndarray, labels: np.ndarray, n_classes: int, alpha: float) -> float:
    """The sum of the log-losses of rows that are held out, a fold at a time."""
    two = n_classes == 2
    code = OneBit() if two else OneVsRest(n_classes)
    rows = RowsAgain(None, Z.shape[1], Z.dtype, code)
    rows.add(Z, labels, None, Progress(None, shown=False))
    fit = Fit(rows, code if two else Unchanged(), 1 if two else n_classes, fit_intercept=True)
    fit.loss = BitLogLoss() if two else LogLoss()
    return float(search(fit.machine(_MAX_PASSES), _FOLDS, [alpha], 0.0).scores[0])
