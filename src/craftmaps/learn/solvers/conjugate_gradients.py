"""Ridge regression on many rows of still more features, by conjugate gradients.

With n rows of E > n features, the sums of a pass (E^2 numbers) and the products of rows (n^2) may
both exceed the memory. The rows themselves take n E numbers, and each iteration takes two products
with them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, pinvh, qr, svd

from craftmaps.learn.block_sums import check_finite
from craftmaps.learn.solvers.precision import FLOOR
from craftmaps.learn.solvers.search import EQUAL_SCORES
from craftmaps.learn.solvers.solution import Solution, check_weight

_BLOCK_ROWS = 4096  # rows whose products are summed in their own precision, before float64
_MAX_SAMPLE_ROWS = 4096  # rows of the sample that makes the preconditioner
_SAMPLE_ONE_IN = 8  # the sample takes at most one row in eight
_BLOCK_COLUMNS = 2048  # columns of the sample that are held in float64 at a time
_PROBES = 8  # random vectors for the estimate of the degrees of freedom
_MAX_ITERATIONS = 1000
_HELD_OUT_ONE_IN = 10  # one row in ten is held out during the search for alpha
_ALPHAS_PER_DECADE = 2
# Rounding changes columns of unit length by about 1e-15 times the root of their number of rows,
# which is below 1e-12. Smaller directions are noise: the targets of one-vs-rest, for instance, have
# the same sum in every row. True directions below 1e-10 are lost as well, but no solution is that
# accurate.
_MIN_INDEPENDENT_PART = 1e-10
_CONSTANT_TARGET = 1e-14  # relative length that rounding leaves of a constant target minus its mean
_MAX_RESIDUAL_GROWTH = 1e4  # larger than the usual fluctuations of conjugate gradients
_MAX_RESTARTS = 3


class NotSolvedError(ValueError):
    """Raised if the iteration does not converge at this alpha."""


class KeptRows:
    """Rows z of features, their weights w, and H = sum w (z - m)(z - m)^T as an operator.

    Parameters
    ----------
    Z : array of shape (n_rows, n_features), float32 or float64
    weights : array of shape (n_rows,), or None for ones
    fit_intercept : bool
        Whether m is the weighted mean of the rows, or zero.
    """

    def __init__(self, Z: np.ndarray, weights: np.ndarray | None, fit_intercept: bool) -> None:
        self._Z = Z
        self._weights = np.ones(len(Z)) if weights is None else weights
        self._weight = float(self._weights.sum())
        check_weight(self._weight)
        for rows in self._blocks():
            with np.errstate(over="ignore", invalid="ignore"):
                check_finite(np.einsum("ij,ij->i", Z[rows], Z[rows]), Z[rows])
        self._fit_intercept = fit_intercept
        self._centre = np.zeros(Z.shape[1])
        if fit_intercept:
            self._centre = self._gather(self._weights[:, None])[:, 0] / self._weight

    def solve(self, Y: np.ndarray, alpha: float, digits: float = 2 / 3) -> Solution:
        """Minimize sum w (y - b^T z - c)^2 + alpha |b|^2.

        `digits` is the share of the digits of Z that the solution should have. b is linear in y, so
        only a basis of the targets is solved for, and targets that depend on others, such as the
        bits of a code, cost nothing. The degrees of freedom, tr H (H + alpha)^-1, are estimated
        with random signs (Hutchinson).
        """
        if alpha < self.least_alpha:
            raise ValueError(
                f"alpha={alpha:g} is too small for {len(self._Z)} {self._Z.dtype} rows with even "
                f"more features, because rounding errors are larger; use at least "
                f"{self.least_alpha:.2g}, or 'auto'."
            )
        Y = Y.astype(np.float64)
        y_mean, basis, back = independent_targets(Y, self._weights, self._fit_intercept)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(Y), _PROBES))
        right = self._gather(
            np.hstack([self._weights[:, None] * basis, np.sqrt(self._weights)[:, None] * signs])
        )
        solved, reached = block_conjugate_gradients(
            lambda V: self._times(V) + alpha * V,
            self.sample.preconditioner(alpha),
            right,
            basis.shape[1],
            float(np.finfo(self._Z.dtype).eps) ** digits,
        )
        if not reached:
            raise NotSolvedError(
                f"{_MAX_ITERATIONS} iterations did not solve the system at alpha={alpha:.3g}; "
                f"raise alpha, or take no more features than rows."
            )
        coef = solved[:, : basis.shape[1]] @ back
        freedom = (right * solved)[:, basis.shape[1] :].sum() / _PROBES + self._fit_intercept
        condition = (self.sample.largest + alpha) / alpha if alpha else np.inf
        intercept = y_mean - self._centre @ coef
        return Solution(
            coef, intercept, alpha, 0.0, condition, mean_leverage=float(freedom / self._weight)
        )

    @cached_property
    def least_alpha(self) -> float:
        """The alpha below which rounding errors of products with H are as large as alpha."""
        squares = 0.0
        for rows in self._blocks():
            deviations = self._Z[rows] - self._centre.astype(self._Z.dtype)
            squares += float(self._weights[rows] @ np.einsum("ij,ij->i", deviations, deviations))
        largest = max(self.sample.largest, squares / len(self._Z))  # about the largest eigenvalue
        return FLOOR * float(np.finfo(self._Z.dtype).eps) * largest

    def predicted(self, solution: Solution) -> np.ndarray:
        """Return the predicted targets of the rows."""
        coef = solution.coef.astype(self._Z.dtype)
        return np.asarray(self._products(coef) + solution.intercept)

    def _times(self, V: np.ndarray) -> np.ndarray:
        """Return H V."""
        narrow = V.astype(self._Z.dtype)
        deviations = self._products(narrow) - self._centre @ V
        return self._gather(self._weights[:, None] * deviations)

    def _products(self, V: np.ndarray) -> np.ndarray:
        return np.vstack([self._Z[rows] @ V for rows in self._blocks()])

    def _gather(self, right: np.ndarray) -> np.ndarray:
        """Return (Z - m)^T right."""
        result = np.outer(self._centre, -right.sum(axis=0))
        for rows in self._blocks():
            # In this order, BLAS reads the long rows as they lie in memory, in half the time.
            result += (right[rows].astype(self._Z.dtype).T @ self._Z[rows]).T
        return result

    def _blocks(self) -> Iterator[slice]:
        for start in range(0, len(self._Z), _BLOCK_ROWS):
            yield slice(start, start + _BLOCK_ROWS)

    @cached_property
    def sample(self) -> "_Sample":
        """A sample of the rows, which approximates H."""
        some = slice(None, None, max(_SAMPLE_ONE_IN, -(-len(self._Z) // _MAX_SAMPLE_ROWS)))
        weights = self._weights[some]
        rows = self._Z[some] - self._centre.astype(self._Z.dtype)
        rows *= np.sqrt(weights)[:, None].astype(rows.dtype)
        return _Sample.of(rows, float(weights.sum() / self._weight))


@dataclass
class _Sample:
    """Every k-th row, centered and weighted, as an approximation of H.

    S^T S / share has about the same large eigenvalues as H, and eigenvectors S^T v for eigenvectors
    v of S S^T. The smaller half of the eigenvalues is noise of the sample, and is left out.
    """

    S: np.ndarray
    share: float
    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, S: np.ndarray, share: float) -> "_Sample":
        gram = np.zeros((len(S), len(S)))
        for start in range(0, S.shape[1], _BLOCK_COLUMNS):
            part = S[:, start : start + _BLOCK_COLUMNS].astype(np.float64)
            gram += part @ part.T
        values, vectors = eigh(gram, overwrite_a=True)
        noise = float(np.finfo(S.dtype).eps) * max(float(values[-1]), 0.0)
        known = values > max(float(np.median(values)), noise)
        return cls(S, share, values[known] / (share or 1.0), vectors[:, known])

    @property
    def largest(self) -> float:
        """About the largest eigenvalue of H."""
        return float(self.values[-1]) if len(self.values) else 0.0

    @property
    def least(self) -> float:
        """About the least eigenvalue of H that the sample distinguishes from noise."""
        return float(self.values[0]) if len(self.values) else 0.0

    def preconditioner(self, alpha: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return about (H + alpha)^-1, up to a factor (Frangella, Tropp and Udell 2023).

        The eigenvalues that the sample does not show count as equal to the least one that it shows.
        """
        if not len(self.values):
            return lambda R: R
        excess = (1 - (self.least + alpha) / (self.values + alpha)) / (self.values * self.share)
        S, core = self.S, ((self.vectors * excess) @ self.vectors.T).astype(self.S.dtype)
        return lambda R: R - S.T @ (core @ (S @ R.astype(S.dtype)))


def search(
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray,
    fit_intercept: bool,
    score: Callable[[np.ndarray, np.ndarray], float],
) -> tuple[np.ndarray, np.ndarray]:
    """Try powers of 10^(1/2) around the best alpha, and return them with their scores.

    A random tenth of the rows with positive weight is held out and predicted from the others.
    `score` takes the places and predictions of these rows, and smaller is better. The first alpha
    is about the least eigenvalue that a sample of the rows shows, where few iterations solve the
    system. From there, alpha is lowered as long as scores fall. If they rise at once, it is raised.
    """
    held_out = np.sort(
        np.random.default_rng(0).permutation(np.flatnonzero(weights))[::_HELD_OUT_ONE_IN]
    )
    training = weights.copy()
    training[held_out] = 0.0
    rows = KeptRows(Z, training, fit_intercept)
    known = rows.sample
    lowest = _ALPHAS_PER_DECADE * np.log10(rows.least_alpha or 1.0)
    power = int(np.ceil(max(lowest, _ALPHAS_PER_DECADE * np.log10(known.least or 1.0))))
    scores: dict[int, float] = {}

    def improves(power: int) -> bool:
        # Half of the digits are enough to compare alphas. The iteration does not start from the
        # solution of the last alpha: for small alphas that would pass for a solution at once, and
        # hide that scores still fall.
        best = min(scores.values(), default=np.inf)
        scores[power] = np.inf
        try:
            solution = rows.solve(Y, 10.0 ** (power / _ALPHAS_PER_DECADE), digits=1 / 2)
        except NotSolvedError:
            return False
        scores[power] = score(held_out, rows.predicted(solution)[held_out])
        return scores[power] < (1 - EQUAL_SCORES) * best

    improves(power)
    for step in (-1, 1):
        while power + step >= lowest and improves(power + step):
            power += step
        if len(scores) > 2:
            break
    powers = sorted(power for power in scores if np.isfinite(scores[power]))
    if not powers:
        raise NotSolvedError("no alpha was found at which iteration solves the system; give one.")
    return 10.0 ** (np.array(powers) / _ALPHAS_PER_DECADE), np.array(
        [scores[power] for power in powers]
    )


def independent_targets(
    Y: np.ndarray, weights: np.ndarray, centered: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weighted means m of targets (zero unless `centered`), B and C with B C = Y - m.

    B has as many columns as there are independent targets. They are orthonormal in the metric of
    the weights. Targets are scaled to equal lengths first, so their units do not matter.
    """
    mean = weights @ Y / weights.sum() if centered else np.zeros(Y.shape[1])
    deviations = Y - mean
    root = np.sqrt(weights)[:, None]
    length = np.linalg.norm(root * deviations, axis=0)
    # Of a constant target only rounding errors are left, which are not solved for.
    rounding = _CONSTANT_TARGET * np.linalg.norm(root * Y, axis=0)
    scale = np.where(length > rounding, 1 / np.where(length, length, 1.0), 0.0)
    _, values, vectors = svd(qr(root * deviations * scale, mode="r")[0], full_matrices=False)
    kept = values > _MIN_INDEPENDENT_PART * values.max(initial=0.0)
    values, vectors = values[kept], vectors[kept]
    basis = deviations @ (scale[:, None] * vectors.T / values)
    return mean, basis, values[:, None] * vectors * np.where(scale, length, 0.0)


def block_conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    n_wanted: int,
    tolerance: float,
) -> tuple[np.ndarray, bool]:
    """Solve A X = right by block conjugate gradients (O'Leary 1980).

    Returns X and whether the first `n_wanted` columns have residuals of at most `tolerance`,
    relative to their right sides. If rounding errors make residuals grow, the iteration starts
    again from the best X so far, a few times.
    """
    # Only independent columns are solved for. The rounding errors of dependent columns would not
    # look small beside small residuals.
    _, basis, back = independent_targets(right, np.ones(len(right)), centered=False)
    wanted, length = back[:, :n_wanted], np.linalg.norm(right[:, :n_wanted], axis=0)
    solution, left = np.zeros_like(basis), basis.copy()
    best, least, restarts = solution.copy(), 1.0, 0  # at zero, the residual is the right side
    directions = _orthonormal(precondition(left))
    for _ in range(_MAX_ITERATIONS):
        images = times(directions)
        inverse = pinvh(directions.T @ images)
        step = inverse @ (directions.T @ left)
        solution += directions @ step
        left -= images @ step
        worst = _largest_ratio(left @ wanted, length)
        if worst <= tolerance:
            return solution @ back, True
        if worst < least:
            best[:], least = solution, worst
        elif not worst < _MAX_RESIDUAL_GROWTH * least:  # also true for NaN
            if restarts == _MAX_RESTARTS:
                break
            restarts += 1
            solution[:] = best
            left = basis - times(solution)
            directions = _orthonormal(precondition(left))
            continue
        better = precondition(left)
        directions = _orthonormal(better - directions @ (inverse @ (images.T @ better)))
    return best @ back, False


def _largest_ratio(residuals: np.ndarray, length: np.ndarray) -> float:
    """Return the largest residual relative to its right side, where zero over zero is zero."""
    lengths = np.linalg.norm(residuals, axis=0)
    return float(np.max(lengths / np.where(length, length, 1.0), initial=0.0))


def _orthonormal(directions: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of columns of any lengths.

    Columns that depend on others are left out. Orthogonalizing them would turn rounding errors into
    directions, along which A may not even be symmetric.
    """
    lengths = np.linalg.norm(directions, axis=0)
    used = lengths > 0
    basis, triangle, _ = qr(directions[:, used] / lengths[used], mode="economic", pivoting=True)
    size = np.abs(triangle.diagonal())
    return np.asarray(basis[:, size > _MIN_INDEPENDENT_PART * size.max(initial=0.0)])
