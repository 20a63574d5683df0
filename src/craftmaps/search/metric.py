"""A metric learned from the gradients of kernel models (recursive feature machines).

Directions in which predictions do not change need no distance. With G the mean of grad f grad f^T
over rows, distances are those of rows times G^power, or times a power of its diagonal: weights of
columns. Each step takes the gradients of a model of rows that are seen through the metric of the
step before (Radhakrishnan et al., Science 383, 2024).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.kernels import Gaussian, Laplacian, Matern
from craftmaps.search.candidates import Candidate
from craftmaps.search.exact import judge_unseen
from craftmaps.search.gradients import gradient_products
from craftmaps.search.targets import Targets
from craftmaps.search.trials import Rows, Trial
from craftmaps.threads import on_threads

_MAX_COLUMNS_OF_TARGETS = 16  # whose gradients are computed
_MAX_LAPLACIAN_COLUMNS = 300
_MAX_ROTATED_COLUMNS = 300
_LARGEST_ALPHA = 0.01  # a larger penalty would flatten the gradients
_POWERS = (0.25, 0.5)
_MAX_STEPS = 6
_UNSEEN = 3  # one row in three judges the metric, and is not used to find it
_CLEAR_GAIN = 0.95  # share of the score that a metric must reach to be taken
_HOPEFUL = 1.3  # ratio to the best score, beyond which a kernel does not win with a metric


def with_metric(rows: Rows, trials: list[Trial]) -> Candidate | None:
    """The best candidate of a round with a learned metric, if that is clearly better.

    Leaving out a row that had a part in the metric would be no test of it, so that all versions,
    and the best candidate without a metric, are judged by rows that had none.
    """
    n = trials[0].n_rows
    unseen = np.arange(n) % _UNSEEN == 0
    search = _MetricSearch(rows, unseen)
    plain = search.score(trials[0].candidate)[0]
    hopeful = [t.candidate for t in trials if t.score <= _HOPEFUL * trials[0].score]
    weighted = [c for c in hopeful if has_gradients(c, rows.prepared(c.preparation, n))][:1]
    rotated = [c for c in hopeful if can_rotate(c, rows.prepared(c.preparation, n))][:1]
    chains = [(c, False, power) for c in weighted for power in _POWERS]
    chains += [(c, True, power) for c in rotated for power in _POWERS]
    found = [best for best in on_threads(lambda chain: search.chain(*chain), chains) if best]
    score, chosen = min(found, key=lambda one: one[0], default=(np.inf, None))
    return chosen if score < _CLEAR_GAIN * plain else None


def has_gradients(candidate: Candidate, rows: Any) -> bool:
    """Whether weights of columns can be learned with this kernel for rows like these."""
    if sparse.issparse(rows):
        return False
    if isinstance(candidate.kernel, Laplacian):  # whose signs cost a matrix for each column
        return bool(rows.shape[1] <= _MAX_LAPLACIAN_COLUMNS)
    return isinstance(candidate.kernel, Gaussian | Matern)


def can_rotate(candidate: Candidate, rows: Any) -> bool:
    """Whether directions other than those of the columns can be learned: not for L1 distances."""
    rotates = isinstance(candidate.kernel, Gaussian | Matern)
    return rotates and has_gradients(candidate, rows) and 1 < rows.shape[1] <= _MAX_ROTATED_COLUMNS


@dataclass(frozen=True)
class _MetricSearch:
    """Metrics from the first rows that are not `unseen`, judged by those that are."""

    rows: Rows
    unseen: np.ndarray

    def score(self, candidate: Candidate) -> tuple[float, float]:
        """The score of the unseen rows, and the alpha that gives it."""
        n = len(self.unseen)
        K = candidate.gram(self.rows.prepared(candidate.preparation, n))
        best = judge_unseen(K, self.rows.targets(slice(n)), self.unseen, candidate.alpha or 1e-3)
        return best.score, best.alpha

    def chain(
        self, candidate: Candidate, full: bool, power: float
    ) -> tuple[float, Candidate] | None:
        """The best of several steps, which end when unseen rows are predicted no better."""
        preparation, n = candidate.preparation, len(self.unseen)
        targets = self.rows.targets(slice(n)).rows(~self.unseen)
        d = self.rows.prepared(preparation, n).shape[1]
        metric = np.eye(d) if full else np.ones(d)
        best: tuple[float, Candidate] | None = None
        step = candidate
        for _ in range(_MAX_STEPS):
            prepared = self.rows.prepared(step.preparation, n)[~self.unseen]
            products = self._products(step, prepared, targets, full)
            # by the chain rule, gradients by the columns as they were before the metric
            products = metric @ products @ metric if full else products * metric**2
            following = _power(products, power)
            if following is None:
                break
            metric = following
            step = Candidate(preparation.weighted(metric), candidate.kernel, candidate.alpha)
            score, alpha = self.score(step)
            if best is not None and score >= best[0]:
                break
            best = score, Candidate(step.preparation, step.kernel, alpha)
        return best

    def _products(
        self, candidate: Candidate, prepared: np.ndarray, targets: Targets, full: bool
    ) -> np.ndarray:
        K = candidate.gram(prepared)
        K[np.diag_indices_from(K)] += min(candidate.alpha or _LARGEST_ALPHA, _LARGEST_ALPHA)
        Y = targets.Y[:, :_MAX_COLUMNS_OF_TARGETS]
        coef = np.linalg.solve(K, Y - Y.mean(axis=0))
        return gradient_products(candidate.kernel, prepared, coef, full)


def _power(products: np.ndarray, power: float) -> np.ndarray | None:
    """Products to a power, so that all columns together keep their weight; None if all are 0."""
    if products.ndim == 1:
        largest = float(products.max(initial=0.0))
        if not largest > 0:
            return None
        root = (products / largest) ** power
        return np.asarray(root / np.sqrt(np.mean(root**2)))
    values, vectors = np.linalg.eigh(products)
    if not values[-1] > 0:
        return None
    root = (vectors * (np.maximum(values, 0) / values[-1]) ** power) @ vectors.T
    return np.asarray(root * np.sqrt(len(root) / np.sum(root**2)))
