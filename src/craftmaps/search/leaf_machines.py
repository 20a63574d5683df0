"""Kernel ridge regression with an exact kernel in each leaf of a tree of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.kernels import Kernel
from craftmaps.loops import cholesky
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts.base import check_facts, is_sorted
from craftmaps.search.candidates import Candidate, neighbors
from craftmaps.search.leaf_sample import LeafSample, at_most
from craftmaps.search.preparation import Scaling
from craftmaps.search.report import Search
from craftmaps.search.row_tree import RowTree
from craftmaps.search.targets import Targets
from craftmaps.storage.packing import storable
from craftmaps.threads import on_threads

_TUNING_LEAVES, _TUNING_ROWS = 4, 2000  # leaves and rows of each that choose the width and alpha
_BETTER = 0.998  # another width must lower the score to this share
_SINGLE_ALPHA = 3e-3  # with a larger alpha, relative to k(x, x), single precision is enough
_MANY_ROWS = 1000  # with fewer rows, double precision costs next to nothing
_BLOCK_ENTRIES = 1 << 22  # entries of the kernel matrix of a block of rows to predict
LEAF_ENTRY_BYTES = 16  # bytes of a fit for each entry of the kernel matrix of a leaf
_FIT_BYTES = 1 << 32  # for the kernel matrices of the leaves that are fitted at the same time
_LEFT_OUT_ROWS = 4096  # about so many rows are left out, in all leaves together


@dataclass(frozen=True)
class Lessons:
    """What rows teach: labels or numbers `y`, the columns `Y` to predict, and weights of rows.

    `n_classes` is 0 unless the largest column, or the sign of a single column, tells the class.
    `search` is what a search with the same rows has found already.
    """

    y: np.ndarray
    Y: np.ndarray
    weights: np.ndarray
    n_classes: int = 0
    search: Search | None = None


@dataclass(frozen=True)
class LeftOut:
    """Predictions for some rows by models that have not learned from them."""

    places: np.ndarray
    predicted: np.ndarray


@storable
class LeafMachines(FeatureMap):
    """Predictions of a kernel machine for each leaf of a tree of rows.

    A row x in leaf l gets f(x) = m_l + sum_i c_i k(x, x_i) over the training rows x_i in l, with
    c = (K_l + alpha W^-1)^-1 (Y_l - m_l) for their weights W and the weighted mean m_l of their
    targets. One leaf is kernel ridge regression on all rows.

    Parameters
    ----------
    kernel : kernel
        It is made wider or narrower if this lowers the leave-one-out error in a few of the leaves.
    leaf_rows : int, default=4096
        Largest number of rows in a leaf. The fit takes n leaf_rows^2 / 3 operations.
    alpha : float or None, default=None
        The penalty; None takes the one with the least leave-one-out error in a few of the leaves.
    fit_bytes : float, default=2**32
        About how much memory the leaves that are fitted at the same time may take. One leaf takes
        16 bytes for each pair of its rows.
    random_state : int, RandomState instance, Generator or None, default=None
        Draws the leaves that choose the width, and the rows that are left out.

    Attributes
    ----------
    kernel_ : kernel
    alpha_ : float
    tree_ : RowTree
    rows_ : ndarray of shape (n_rows, n_features)
        Training rows, sorted by leaf.
    starts_ : ndarray of shape (n_leaves + 1,)
        The place in `rows_` at which each leaf begins.
    coef_ : ndarray of shape (n_rows, n_columns)
    middles_ : ndarray of shape (n_leaves, n_columns)
    left_out_ : LeftOut
        Leave-one-out predictions for some of the rows, in float64. It is not stored.
    """

    kernel_: Kernel
    alpha_: float
    tree_: RowTree
    rows_: np.ndarray
    starts_: np.ndarray
    coef_: np.ndarray
    middles_: np.ndarray

    def __init__(
        self,
        kernel: Any,
        leaf_rows: int = 4096,
        *,
        alpha: float | None = None,
        fit_bytes: float = _FIT_BYTES,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.leaf_rows = leaf_rows
        self.alpha = alpha
        self.fit_bytes = fit_bytes
        self.random_state = random_state

    @property
    def n_components(self) -> int:  # type: ignore[override]
        """Largest number of rows in a leaf."""
        return self.leaf_rows

    def _draw(self, X: np.ndarray, y: Lessons, rng: np.random.Generator) -> dict[str, Any]:
        Y, weights = y.Y.astype(np.float64), y.weights
        tree, leaves = RowTree.of(X, self.leaf_rows)
        leaves = [at_most(rows, self.leaf_rows, rng) for rows in leaves]
        picked = [leaves[leaf] for leaf in rng.permutation(len(leaves))[:_TUNING_LEAVES]]
        sample = LeafSample.of(X, Targets(Y, y.n_classes), picked, _TUNING_ROWS, rng)
        kernel, alpha = _tuned(self.kernel.resolved(X), sample)
        alpha = alpha if self.alpha is None else float(self.alpha)
        is_single = _is_enough(kernel, alpha, X)
        share = min(1.0, _LEFT_OUT_ROWS / sum(map(len, leaves)))
        probed = [
            np.sort(rng.permutation(len(rows))[: int(np.ceil(share * len(rows)))])
            for rows in leaves
        ]

        def fitted(leaf: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            rows = leaves[leaf]
            return _ridge(kernel, alpha, X[rows], Y[rows], weights[rows], probed[leaf])

        at_once = max(1, int(self.fit_bytes // (LEAF_ENTRY_BYTES * max(map(len, leaves)) ** 2)))
        results = on_threads(fitted, range(len(leaves)), at_once)
        middles, coefs, predicted = zip(*results, strict=True)
        places = [rows[some] for rows, some in zip(leaves, probed, strict=True)]
        return {
            "kernel_": kernel,
            "alpha_": alpha,
            "tree_": tree,
            "rows_": X[np.concatenate(leaves)],
            "starts_": np.cumsum([0, *map(len, leaves)]),
            "coef_": np.concatenate(coefs).astype(X.dtype if is_single else np.float64),
            "middles_": np.array(middles),
            "left_out_": LeftOut(np.concatenate(places), np.concatenate(predicted)),
            "_n_features_out": Y.shape[1],
        }

    def _fill(self, X: np.ndarray, out: np.ndarray) -> None:
        leaf = self.tree_.leaf_of(X)
        order, dtype = np.argsort(leaf, kind="stable"), np.promote_types(X.dtype, self.coef_.dtype)
        ends = np.searchsorted(leaf[order], np.arange(self.tree_.n_leaves + 1))

        def fill(leaf: int) -> None:
            own = slice(self.starts_[leaf], self.starts_[leaf + 1])
            coef = self.coef_[own].astype(dtype, copy=False)
            kernel = self.kernel_.against(self.rows_[own].astype(dtype, copy=False), dtype)
            step = max(1, _BLOCK_ENTRIES // len(coef))
            for start in range(ends[leaf], ends[leaf + 1], step):
                places = order[start : min(start + step, ends[leaf + 1])]
                K = np.empty((len(places), len(coef)), dtype)
                kernel(X[places].astype(dtype, copy=False), K)
                out[places] = K @ coef + self.middles_[leaf]

        on_threads(fill, np.flatnonzero(np.diff(ends)).tolist())

    def _check_stored(self) -> None:
        super()._check_stored()
        self.tree_.check(self.n_features_in_)
        n, k, starts = len(self.rows_), self._n_features_out, self.starts_
        check_facts(
            self,
            rows_=self.rows_.shape == (n, self.n_features_in_) and self.rows_.dtype.kind == "f",
            coef_=self.coef_.shape == (n, k) and self.coef_.dtype.kind == "f",
            middles_=self.middles_.shape == (self.tree_.n_leaves, k)
            and self.middles_.dtype.kind == "f",
            starts_=starts.shape == (self.tree_.n_leaves + 1,)
            and is_sorted(starts, n)
            and bool((np.diff(starts) > 0).all())
            and (int(starts[0]), int(starts[-1])) == (0, n),
        )

    def _onnx(self, g: Any, x: str) -> str:
        x = g.double(x)
        leaf, kernel = self.tree_.onnx(g, x), self.kernel_
        places, parts = [], []
        for number, middle in enumerate(self.middles_):
            own = slice(self.starts_[number], self.starts_[number + 1])
            here = g.add("NonZero", g.add("Equal", leaf, np.int64(number)))  # of shape (1, rows)
            rows = g.add("Gather", x, g.add("Squeeze", here, [0]), axis=0)
            K = kernel.onnx(g, rows, self.rows_[own].astype(np.float64))
            product = g.add("MatMul", K, self.coef_[own].astype(np.float64))
            places.append(g.transpose(here))
            parts.append(g.single(g.add("Add", product, middle.astype(np.float64))))
        nothing = g.repeated(np.zeros(self._n_features_out, np.float32), x)
        return str(g.add("ScatterND", nothing, g.concat(places, 0), g.concat(parts, 0)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.target_tags.required = True
        return tags


def _tuned(kernel: Any, sample: LeafSample) -> tuple[Any, float]:
    """Return the kernel with the best width for a few leaves, and the best alpha."""
    if not sample.parts:  # the targets are constant, so that all coefficients are 0
        return kernel, 1.0
    first = best = sample.trial(Candidate(Scaling("none"), kernel))
    for side in (0, 1):  # wider as long as the score falls, or else narrower
        while near := neighbors(best.candidate)[side : side + 1]:
            trial = sample.trial(near[0])
            if not trial.score < _BETTER * best.score:
                break
            best = trial
        if best is not first:
            break
    return best.candidate.kernel, best.alpha


def _ridge(
    kernel: Any, alpha: float, X: np.ndarray, Y: np.ndarray, weights: np.ndarray, probed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean of the targets, the coefficients, and leave-one-out predictions."""
    # Probed rows come last, because then their entries on the diagonal of the inverse come from the
    # last corner of the factor U alone: (U^T U)^-1 has squared lengths of rows of U^-1 there.
    order = np.concatenate([np.setdiff1d(np.arange(len(X)), probed), probed])
    middle = np.average(Y, axis=0, weights=weights)
    factor = _factor(kernel, alpha, X[order], weights[order])
    coef = np.empty(Y.shape)
    coef[order] = cholesky.solve(factor, (Y - middle)[order])
    corner = factor[-len(probed) :, -len(probed) :].copy()
    cholesky.invert(corner)
    diagonal = np.square(np.triu(corner)).sum(axis=1, dtype=np.float64)
    left_out = Y[probed] - coef[probed] / diagonal[:, None]
    return middle, coef, left_out


def _factor(kernel: Any, alpha: float, X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of K + alpha W^-1, with a larger alpha if it is singular."""
    is_single = len(X) > _MANY_ROWS and _is_enough(kernel, alpha, X)
    least = float(np.finfo(np.float64).eps) * len(X) * _scale(kernel, X)
    while True:
        dtype: Any = np.float32 if is_single else np.float64
        A = np.ascontiguousarray(kernel(X.astype(dtype, copy=False)))
        A[np.diag_indices_from(A)] += (alpha / weights).astype(dtype)
        if cholesky.factor(A):
            return A
        if not is_single:
            alpha = max(10 * alpha, least)
        is_single = False


def _is_enough(kernel: Any, alpha: float, X: np.ndarray) -> bool:
    """Whether single precision is enough, because alpha is large compared to its rounding."""
    return alpha >= _SINGLE_ALPHA * _scale(kernel, X)


def _scale(kernel: Any, X: np.ndarray) -> float:
    """Return the mean of k(x, x) for some rows."""
    return float(np.mean(kernel.diagonal(X[:_MANY_ROWS].astype(np.float64)))) or 1.0
