"""Choose landmarks: uniform, randomly pivoted Cholesky, leverage scores, k-means.

`Candidates` gives algorithms a few columns of the Gram matrix at a time. The whole matrix is never
formed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh, solve_triangular

from craftmaps.kernels import Kernel
from craftmaps.kernels.pairs import Fill
from craftmaps.threads import for_each_product_block

_ROW_BYTES = 1 << 14  # blocks of 1024 rows
_PROPOSALS = 256  # pivots proposed at a time
_NOISE = 1e-6  # residuals that fell below this share of their first value are rounding errors
_FACTOR_BYTES = 1 << 30  # memory limit for the Cholesky factor of all candidates


@dataclass(frozen=True)
class Candidates:
    """Rows from which landmarks are chosen, and the kernel between them.

    `against(chosen)` returns a function of row numbers and a buffer, which writes K[rows, chosen]
    into the buffer. If `threads` is true, blocks of rows may be filled in parallel.
    """

    n_rows: int
    dtype: np.dtype
    diagonal: np.ndarray
    against: Callable[[np.ndarray], Fill]
    threads: bool

    @classmethod
    def of_rows(cls, kernel: Kernel, X: Any) -> "Candidates":
        """Return the rows of X as candidates."""

        def against(chosen: np.ndarray) -> Fill:
            fill = kernel.against(X[chosen], X.dtype)
            return lambda rows, out: fill(X[rows], out)

        diagonal = kernel.diagonal(X).astype(np.float64)
        return cls(X.shape[0], X.dtype, diagonal, against, kernel.threads)

    @classmethod
    def of_gram(cls, matrix: np.ndarray) -> "Candidates":
        """Return the rows of a precomputed Gram matrix as candidates."""

        def against(chosen: np.ndarray) -> Fill:
            return lambda rows, out: np.copyto(out, matrix[rows][:, chosen])

        diagonal = matrix.diagonal().astype(np.float64)
        return cls(len(matrix), matrix.dtype, diagonal, against, True)

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple["Candidates", np.ndarray]:
        """Draw `n_rows` candidates uniformly, and return them with their row numbers."""
        kept = np.sort(rng.choice(self.n_rows, n_rows, replace=False))

        def against(chosen: np.ndarray) -> Fill:
            fill = self.against(kept[chosen])
            return lambda rows, out: fill(kept[rows], out)

        return Candidates(n_rows, self.dtype, self.diagonal[kept], against, self.threads), kept

    def gram(self, chosen: np.ndarray) -> np.ndarray:
        """Return K[chosen, chosen] in float64."""
        out = np.empty((len(chosen), len(chosen)), dtype=self.dtype)
        self.against(chosen)(chosen, out)
        return out.astype(np.float64)


def uniform(candidates: Candidates, n: int, rng: np.random.Generator) -> np.ndarray:
    """Choose n rows uniformly (Deshmukh, Algorithm 5)."""
    chosen: np.ndarray = rng.choice(candidates.n_rows, n, replace=False)
    return chosen


def rpcholesky(candidates: Candidates, n: int, rng: np.random.Generator) -> np.ndarray:
    """Choose n rows by randomly pivoted Cholesky.

    Each row is drawn with probability proportional to the residual of its k(x, x) (Epperly, Tropp
    and Webber, arXiv:2410.03969, Algorithm 2). Pivots are proposed in blocks, by the residuals at
    the start of the block, and accepted with probabilities that give the same distribution as
    drawing one pivot after another. This takes n columns of the Gram matrix in time and memory. If
    they exceed a gigabyte, the candidates are first reduced to a uniform sample.
    """
    most = max(4 * n, _FACTOR_BYTES // (candidates.dtype.itemsize * n))
    if candidates.n_rows > most:
        candidates, kept = candidates.sample(most, rng)
        among_kept: np.ndarray = kept[rpcholesky(candidates, n, rng)]
        return among_kept
    factor = np.empty((candidates.n_rows, n), dtype=candidates.dtype)
    residual = candidates.diagonal.copy()
    least = float(np.finfo(candidates.dtype).eps) * residual.sum()
    chosen = np.empty(0, dtype=np.int64)
    while len(chosen) < n:
        cumulated = np.cumsum(residual)
        if cumulated[-1] <= least:  # all other rows depend on the chosen ones
            rest = np.setdiff1d(np.arange(candidates.n_rows), chosen)
            return np.concatenate([chosen, rng.choice(rest, n - len(chosen), replace=False)])
        points = cumulated[-1] * rng.random(min(_PROPOSALS, max(8, n // 4)))
        proposed = np.searchsorted(cumulated, points, side="right")
        proposed = np.minimum(proposed, candidates.n_rows - 1)
        known = factor[proposed, : len(chosen)].astype(np.float64)
        remaining = candidates.gram(proposed) - known @ known.T
        accepted, triangle = _accept(remaining, residual[proposed], n - len(chosen), rng)
        if not accepted.size:  # the residuals of the proposed rows were only rounding errors
            left = np.maximum(remaining.diagonal(), 0)
            residual[proposed] = np.minimum(residual[proposed], left)
            continue
        pivots = proposed[accepted]
        _extend(candidates, factor, residual, len(chosen), pivots, triangle)
        chosen = np.concatenate([chosen, pivots])
        residual[chosen] = 0
    return chosen


def _accept(
    remaining: np.ndarray, bound: np.ndarray, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Accept proposal i with probability (residual now) / (residual at first), and eliminate it."""
    # A residual that is 0 up to rounding errors must not become a pivot.
    levels = np.maximum(rng.random(len(bound)), _NOISE) * bound
    columns = np.empty((min(most, len(bound)), len(bound)))
    accepted: list[int] = []
    diagonal = remaining.diagonal().copy()
    for i in range(len(bound)):
        k = len(accepted)
        if k < most and diagonal[i] > levels[i]:
            column = remaining[i] - columns[:k, i] @ columns[:k]
            columns[k] = column / np.sqrt(column[i])
            diagonal -= columns[k] ** 2
            accepted.append(i)
    chosen = np.array(accepted, dtype=np.int64)
    return chosen, np.tril(columns[: len(chosen), chosen].T)


def _extend(
    candidates: Candidates,
    factor: np.ndarray,
    residual: np.ndarray,
    k: int,
    pivots: np.ndarray,
    triangle: np.ndarray,
) -> None:
    """Add columns of the Cholesky factor for new pivots, and update the residuals."""
    inverse = solve_triangular(triangle, np.eye(len(pivots)), lower=True).T.astype(factor.dtype)
    known = np.ascontiguousarray(factor[pivots, :k].T)
    fill = candidates.against(pivots)

    def task(start: int, stop: int) -> None:
        block = np.empty((stop - start, len(pivots)), dtype=factor.dtype)
        fill(slice(start, stop), block)
        block -= factor[start:stop, :k] @ known
        columns = block @ inverse
        factor[start:stop, k : k + len(pivots)] = columns
        residual[start:stop] -= np.einsum("ij,ij->i", columns, columns)

    for_each_product_block(task, candidates.n_rows, _ROW_BYTES, candidates.threads)
    np.maximum(residual, 0, out=residual)


def leverage(candidates: Candidates, n: int, rng: np.random.Generator) -> np.ndarray:
    """Choose n rows by recursive ridge leverage scores (Musco and Musco 2017, Algorithm 3).

    The scores of all rows are estimated from a sample. The sample is drawn by scores that were
    estimated on half of the rows, and so on until the sample takes all rows. At each level, the
    ridge is chosen so that about n / (4 log n) eigenvalues are above it.
    """
    n_rows = candidates.n_rows
    order = rng.permutation(n_rows)
    oversampling = np.log(max(n, 2))
    dimension = max(1, int(n / (4 * oversampling)))
    sizes = [n_rows]
    while sizes[-1] > max(n, 2):
        sizes.append(-(-sizes[-1] // 2))
    sample, weights = order[: sizes[-1]], np.ones(sizes[-1])
    for size in reversed(sizes):
        rows = order[:size]
        scores = _leverage_scores(candidates, rows, sample, weights, dimension)
        if size == n_rows:
            probability = scores + 1e-12 * max(scores.max(initial=0), 1e-300)
            probability /= probability.sum()
            return rows[rng.choice(size, n, replace=False, p=probability)]
        keep = np.minimum(1, oversampling * scores)
        taken = np.flatnonzero(rng.random(size) < keep)
        if not taken.size:
            taken = rng.choice(size, min(n, size), replace=False)
            keep = np.ones(size)
        sample, weights = rows[taken], 1 / np.sqrt(keep[taken])
    raise AssertionError("the last level has all rows")


def _leverage_scores(
    candidates: Candidates, rows: np.ndarray, sample: np.ndarray, weights: np.ndarray, k: int
) -> np.ndarray:
    """Return ridge leverage scores of `rows` in the span of the weighted sample."""
    gram = candidates.gram(sample)
    weighted = gram * np.outer(weights, weights)
    values = eigvalsh(weighted)
    rest = float(values[: max(0, len(values) - k)].sum()) / k
    ridge = max(rest, 1e-10 * float(values.sum())) or 1.0  # a sample of zeros explains nothing
    inverse = np.linalg.inv(gram + np.diag(ridge / weights**2))
    fill = candidates.against(sample)
    scores = np.empty(len(rows))

    def task(start: int, stop: int) -> None:
        columns = np.empty((stop - start, len(sample)), dtype=candidates.dtype)
        fill(rows[start:stop], columns)
        exact = columns.astype(np.float64)
        explained = np.einsum("ij,ij->i", exact @ inverse, exact)
        scores[start:stop] = (candidates.diagonal[rows[start:stop]] - explained) / ridge

    for_each_product_block(task, len(rows), _ROW_BYTES, candidates.threads)
    return np.clip(scores, 0, 1)


def kmeans(X: Any, n: int, unit_norm: bool, rng: np.random.Generator) -> np.ndarray:
    """Return the centers of k-means (Deshmukh, Algorithm 6), of length 1 if `unit_norm`."""
    from sklearn.cluster import MiniBatchKMeans  # slow to import, seldom needed
    from sklearn.preprocessing import normalize

    clusters = MiniBatchKMeans(
        n,
        init="random",  # k-means++ takes several times as long, for a little less error
        batch_size=max(1024, 4 * n),
        n_init=1,
        max_iter=20,  # passes; more of them hardly tighten the clusters
        reassignment_ratio=0.0,
        random_state=int(rng.integers(2**31)),
    )
    centres: np.ndarray = clusters.fit(X).cluster_centers_
    return normalize(centres) if unit_norm else centres


def places_of(rows: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """Return the place of the landmark that equals each row bit by bit, or -1 if none does."""
    places = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(landmarks))}
    return np.array([places.get(row.tobytes(), -1) for row in np.ascontiguousarray(rows)])
