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

MANY_ROWS = 2.8  # rows per feature above which the log-loss needs no trial; 8,000 rows by default
SAMPLE_ROWS = 1000
_FOLDS = range(3)  # the folds, of ten, that are held out in a trial
_ALPHA_RATIO = 0.2  # the alpha of the log-loss, relative to the alpha of the squared loss
_LEAST_ALPHA = 1e-5  # in mean squares of features; rounding errors show below it
_MAX_LOSS_RATIO = 0.93  # the slower log-loss is chosen if it lowers the loss to this share
_MAX_PASSES = 100
_MANY_CLASSES = 100  # with this many classes, a trial would take long


def prefers_log(Z: np.ndarray, labels: np.ndarray, n_classes: int, alpha: float) -> bool:
    """Whether the log-loss predicts clearly better probabilities for held-out rows.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_features)
        Features of a sample of the rows.
    labels : ndarray of shape (n_rows,)
        The number of the class of each row.
    n_classes : int
    alpha : float
        A penalty that suits the squared loss.
    """
    held = np.isin(place_priority(np.arange(len(Z))) % np.uint64(N_FOLDS), _FOLDS)
    if n_classes > _MANY_CLASSES or not held.any() or len(np.unique(labels[~held])) < 2:
        return False
    alpha = max(alpha, _LEAST_ALPHA * float(np.mean(np.einsum("ij,ij->i", Z, Z))))
    squared = float(_squared_losses(Z, labels, n_classes, alpha)[held].sum())
    return _log_loss(Z, labels, n_classes, _ALPHA_RATIO * alpha) < _MAX_LOSS_RATIO * squared


def _squared_losses(Z: np.ndarray, labels: np.ndarray, n_classes: int, alpha: float) -> np.ndarray:
    """The log-loss of each row when ridge regression leaves out this row."""
    code = OneBit() if n_classes == 2 else OneVsRest(n_classes)
    Y = code.encode(labels).astype(np.float64)
    centered = Z - Z.mean(axis=0, dtype=np.float64)
    K = centered @ centered.T
    K[np.diag_indices_from(K)] += alpha
    inverse = np.linalg.inv(K)
    inverse -= 1 / (alpha * len(K))  # for the intercept, as K annihilates the constant vector
    left_out = Y - inverse @ Y / inverse.diagonal()[:, None]
    scores = code.scores(left_out)
    factor = temperature(scores, labels, np.ones(len(labels)))
    losses = -log_softmax(factor * scores, axis=1)[np.arange(len(labels)), labels]
    return np.asarray(losses)


def _log_loss(Z: np.ndarray, labels: np.ndarray, n_classes: int, alpha: float) -> float:
    """The sum of the log-losses of held-out rows, one fold at a time."""
    two = n_classes == 2
    code = OneBit() if two else OneVsRest(n_classes)
    rows = RowsAgain(None, Z.shape[1], Z.dtype, code)
    rows.add(Z, labels, None, Progress(None, shown=False))
    fit = Fit(rows, code if two else Unchanged(), 1 if two else n_classes, fit_intercept=True)
    fit.loss = BitLogLoss() if two else LogLoss()
    return float(search(fit.machine(_MAX_PASSES), _FOLDS, [alpha], 0.0).scores[0])
