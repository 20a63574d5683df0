"""Ridge regression on many rows of still more features, by conjugate gradients.

With n rows of E > n features the sums of a pass (E^2) and the products of rows (n^2) may both be
more than memory holds. The rows themselves take n E, and an iteration two products with them.
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

_ROWS = 4096  # whose products are taken in their own precision before they are summed in float64
_SAMPLE = 4096  # rows at most that make the preconditioner,
_ONE_IN = 8  # and one in so many at most
_COLUMNS = 2048  # of them at a time that are held in float64
_PROBES = 8  # random vectors that tell the degrees of freedom
_ITERATIONS = 1000  # after which a system counts as not solved
_JUDGED = 10  # one row in so many is left out while alpha is searched
_STEPS = 2  # alphas per decade that are tried
# Columns of unit length are known to about 1e-15 times the root of their number of rows, which is
# below 1e-12. A direction of that size is rounding noise. The targets of one-vs-rest, for instance,
# have the same sum in every row. A true direction smaller than 1e-10 is lost, and that is less than
# any solution is good for.
_DEPENDENT = 1e-10
_ROUNDING = 1e-14  # relative length of what rounding leaves of a target less its own mean
_GROWTH = 1e4  # of residuals, beyond the fluctuations that are normal for conjugate gradients
_RESTARTS = 3


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
        """Minimize sum w (y - b^T z - c)^2 + alpha |b|^2, to some of the digits of Z.

        Targets that depend on others, as the bits of a code do, cost nothing: b is linear in y, so
        that a basis of them is solved for. The degrees of freedom, tr H (H + alpha)^-1, are
        estimated by random signs (Hutchinson).
        """
        if alpha < self.least_alpha:
            raise ValueError(
                f"alpha={alpha:g} is too small for {len(self._Z)} {self._Z.dtype} rows of still "
                f"more features, whose rounding errors hide it; use at least "
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
                f"{_ITERATIONS} iterations did not solve the system at alpha={alpha:.3g}; raise "
                f"alpha, or take no more features than rows."
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
        largest = max(self.sample.largest, squares / len(self._Z))  # of the eigenvalues, about
        return FLOOR * float(np.finfo(self._Z.dtype).eps) * largest

    def predicted(self, solution: Solution) -> np.ndarray:
        """Targets of the rows."""
        coef = solution.coef.astype(self._Z.dtype)
        return np.asarray(self._products(coef) + solution.intercept)

    def _times(self, V: np.ndarray) -> np.ndarray:
        """H V."""
        narrow = V.astype(self._Z.dtype)
        deviations = self._products(narrow) - self._centre @ V
        return self._gather(self._weights[:, None] * deviations)

    def _products(self, V: np.ndarray) -> np.ndarray:
        return np.vstack([self._Z[rows] @ V for rows in self._blocks()])

    def _gather(self, right: np.ndarray) -> np.ndarray:
        """(Z - m)^T right."""
        result = np.outer(self._centre, -right.sum(axis=0))
        for rows in self._blocks():
            # this way round BLAS reads the long rows as they lie, at half the time
            result += (right[rows].astype(self._Z.dtype).T @ self._Z[rows]).T
        return result

    def _blocks(self) -> Iterator[slice]:
        for start in range(0, len(self._Z), _ROWS):
            yield slice(start, start + _ROWS)

    @cached_property
    def sample(self) -> "_Sample":
        """What some of the rows tell about all of them."""
        some = slice(None, None, max(_ONE_IN, -(-len(self._Z) // _SAMPLE)))
        weights = self._weights[some]
        rows = self._Z[some] - self._centre.astype(self._Z.dtype)
        rows *= np.sqrt(weights)[:, None].astype(rows.dtype)
        return _Sample.of(rows, float(weights.sum() / self._weight))


@dataclass
class _Sample:
    """Every k-th row, centred and weighted, to stand for all of them: what is known of H by it.

    S^T S / share has about the large eigenvalues of H, and vectors v of S S^T lead to its
    eigenvectors S^T v. The lower half of them is left out: it is the noise of the sample.
    """

    S: np.ndarray
    share: float
    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, S: np.ndarray, share: float) -> "_Sample":
        gram = np.zeros((len(S), len(S)))
        for start in range(0, S.shape[1], _COLUMNS):
            part = S[:, start : start + _COLUMNS].astype(np.float64)
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
        """About the least eigenvalue of H that the sample tells from noise."""
        return float(self.values[0]) if len(self.values) else 0.0

    def preconditioner(self, alpha: float) -> Callable[[np.ndarray], np.ndarray]:
        """About (H + alpha)^-1, up to a factor (Frangella, Tropp and Udell 2023).

        Eigenvalues that the sample does not know are taken to be as the least of those it does.
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
    """Powers of 10^(1/2) around the best alpha, and their scores.

    A random tenth of the rows that weigh something is left out and predicted from the others;
    `score` is given their places and predictions, and is the better the smaller. The first alpha is
    about the least eigenvalue that a sample of the rows knows, where few iterations solve the
    system. From there on it is lowered as long as scores fall, and raised instead if they rise at
    once.
    """
    judged = np.sort(np.random.default_rng(0).permutation(np.flatnonzero(weights))[::_JUDGED])
    teaching = weights.copy()
    teaching[judged] = 0.0
    rows = KeptRows(Z, teaching, fit_intercept)
    known = rows.sample
    lowest = _STEPS * np.log10(rows.least_alpha or 1.0)
    power = int(np.ceil(max(lowest, _STEPS * np.log10(known.least or 1.0))))
    found: dict[int, float] = {}

    def improves(power: int) -> bool:
        # half of the digits tell one alpha from the next; the solution for another one as a start
        # would look good enough where alpha is small, and hide that scores still fall
        best = min(found.values(), default=np.inf)
        found[power] = np.inf
        try:
            solution = rows.solve(Y, 10.0 ** (power / _STEPS), digits=1 / 2)
        except NotSolvedError:
            return False
        found[power] = score(judged, rows.predicted(solution)[judged])
        return found[power] < (1 - EQUAL_SCORES) * best

    improves(power)
    for step in (-1, 1):
        while power + step >= lowest and improves(power + step):
            power += step
        if len(found) > 2:
            break
    powers = sorted(power for power in found if np.isfinite(found[power]))
    if not powers:
        raise NotSolvedError("no alpha was found at which iteration solves the system; give one.")
    return 10.0 ** (np.array(powers) / _STEPS), np.array([found[power] for power in powers])


def independent_targets(
    Y: np.ndarray, weights: np.ndarray, centered: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weighted means m of targets (zero unless `centered`), and B C = Y - m.

    The columns of B are orthonormal in the metric of the weights, and as many as there are
    independent targets. Targets of equal length are compared, so that their units do not matter.
    """
    mean = weights @ Y / weights.sum() if centered else np.zeros(Y.shape[1])
    deviations = Y - mean
    root = np.sqrt(weights)[:, None]
    length = np.linalg.norm(root * deviations, axis=0)
    # what rounding leaves of a constant target is no target
    rounding = _ROUNDING * np.linalg.norm(root * Y, axis=0)
    scale = np.where(length > rounding, 1 / np.where(length, length, 1.0), 0.0)
    _, values, vectors = svd(qr(root * deviations * scale, mode="r")[0], full_matrices=False)
    kept = values > _DEPENDENT * values.max(initial=0.0)
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
    """Solve A X = right for all columns in the space that they search together (O'Leary 1980).

    Returns X and whether the residuals of the first `n_wanted` columns are as small as wanted,
    relative to these columns. If rounding spoils the recurrences, so that residuals grow, they
    begin again at the best X so far, a few times.
    """
    # Columns that depend on others are solved with them: as residuals become small, what rounding
    # makes of such columns would not look small beside them.
    _, basis, back = independent_targets(right, np.ones(len(right)), centered=False)
    wanted, length = back[:, :n_wanted], np.linalg.norm(right[:, :n_wanted], axis=0)
    solution, left = np.zeros_like(basis), basis.copy()
    best, least, restarts = solution.copy(), 1.0, 0  # zero leaves the right side itself
    directions = _orthonormal(precondition(left))
    for _ in range(_ITERATIONS):
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
        elif not worst < _GROWTH * least:  # nor NaN
            if restarts == _RESTARTS:
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
    """The largest residual relative to its right side; a right side of zero is solved by zero."""
    lengths = np.linalg.norm(residuals, axis=0)
    return float(np.max(lengths / np.where(length, length, 1.0), initial=0.0))


def _orthonormal(directions: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of columns of any lengths.

    A column that depends on others has no direction of its own. Orthogonalizing it would turn its
    rounding errors into a direction, along which A may not even be symmetric.
    """
    lengths = np.linalg.norm(directions, axis=0)
    used = lengths > 0
    basis, triangle, _ = qr(directions[:, used] / lengths[used], mode="economic", pivoting=True)
    size = np.abs(triangle.diagonal())
    return np.asarray(basis[:, size > _DEPENDENT * size.max(initial=0.0)])
