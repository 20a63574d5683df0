"""The sums that one pass over the rows keeps."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import blas, lapack

from craftmaps.learn.block_sums import BlockSums, check_finite, check_squares, checked_block
from craftmaps.learn.removal import rest_of
from craftmaps.learn.solvers.memory import refuse_if_too_large
from craftmaps.learn.stored import check_sums
from craftmaps.loops.triangle import add_to_triangle
from craftmaps.storage.packing import storable
from craftmaps.threads import renew_after_fork
from craftmaps.validation import is_number

_MAX_BLOCK_ROWS = 4096  # more rows are added in several rank-k updates
_ARRAYS = ("hessian", "gradient", "z_mean", "y_mean", "y_square")


@storable
class NormalEquations:
    """The sums of ridge regression: H = sum w (z - m)(z - m)^T, G = sum w (z - m)(y - v)^T.

    m and v are the weighted means of features z and targets y. Sums of two sets of rows can be
    merged into the sums of all rows (Chan, Golub and LeVeque), so blocks, files and machines add up
    to one pass. A block is one rank-k update in its own precision, and updates are summed in
    float64. Columns far from zero are shifted first, so that large offsets cost no digits.

    For E features the sums take 8 E^2 bytes, 4 E^2 more while float32 blocks arrive, and 8 E bytes
    per target.

    Attributes
    ----------
    n_rows : int
        Number of rows seen.
    weight : float
        Total weight of the rows. It is n_rows if neither weights nor `scale` are used.
    n_features, n_targets : int
    z_mean, y_mean : ndarray of shape (n_features,) and (n_targets,)
        The means m and v.
    gradient : ndarray of shape (n_features, n_targets)
        The matrix G.
    y_square : ndarray of shape (n_targets,)
        sum w (y - v)^2.
    precision : dtype
        Type of the least precise block seen, which limits the accuracy of the sums.

    References
    ----------
    T. Chan, G. Golub and R. LeVeque, "Algorithms for Computing the Sample Variance", 1983.
    R. Hamid, Y. Xiao, A. Gittens and D. DeCoste, "Compact Random Feature Maps", ICML 2014, s.3.5.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import NormalEquations
    >>> rng = np.random.default_rng(0)
    >>> Z, y = rng.random((100, 5)), rng.random(100)
    >>> whole = NormalEquations().update(Z, y)
    >>> parts = NormalEquations().update(Z[:30], y[:30])
    >>> parts = parts.merge(NormalEquations().update(Z[30:], y[30:]))
    >>> bool(np.allclose(parts.hessian, whole.hessian))
    True
    >>> centred = Z - Z.mean(axis=0)
    >>> bool(np.allclose(whole.hessian, centred.T @ centred))
    True
    """

    _stored: ClassVar = {"arrays": dict[str, np.ndarray], "metadata": dict[str, Any]}

    def __init__(self) -> None:
        self.n_rows = 0
        self.weight = 0.0
        self.n_features = 0
        self.n_targets = 0
        self.precision = np.dtype(np.float64)
        self._work: list[np.ndarray] = []  # one matrix, which may be shared
        self._lending = Lock()
        self._lent_diagonal: np.ndarray | None = None  # while H is lent
        renew_after_fork(self)

    @property
    def hessian(self) -> np.ndarray:
        """Return a copy of H as a full symmetric matrix."""
        full = np.tril(self._lower)
        return full + np.tril(full, -1).T

    def update(self, Z: Any, Y: Any, sample_weight: Any = None, *, overwrite: bool = False) -> Self:
        """Add rows.

        Parameters
        ----------
        Z : array of shape (n_rows, n_features), float32 or float64
        Y : array of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : array of shape (n_rows,), default=None
            Weights, at least 0. A row of weight 2 counts as two rows.
        overwrite : bool, default=False
            Whether Z may be overwritten, which saves a copy.

        Returns
        -------
        self
        """
        Z, Y, weights = checked_block(Z, Y, sample_weight)
        starts = range(0, len(Z), _MAX_BLOCK_ROWS)
        blocks = [slice(start, start + _MAX_BLOCK_ROWS) for start in starts]
        if len(blocks) > 1:  # all rows are checked before any is added
            for rows in blocks:
                check_squares(Z[rows], Y[rows])
        self._make_room(Z.shape[1], Y.shape[1], Z.dtype)
        for rows in blocks:
            block = Z[rows] if overwrite else Z[rows].copy()
            self._add(block, Y[rows], None if weights is None else weights[rows])
        self.n_rows += len(Z)
        return self

    def share_work(self, other: "NormalEquations") -> Self:
        """Use the work matrix of other sums with the same number of features."""
        self._work = other._work
        return self

    def merge(self, other: "NormalEquations") -> Self:
        """Add the rows of `other`, which is not changed."""
        if not other.n_features:
            return self
        if not self.n_features:
            self._make_room(other.n_features, other.n_targets, other.precision)
        self._check_sizes(other.n_features, other.n_targets)
        if other.weight:
            self._combine(other._lower, other)
        self.n_rows += other.n_rows
        self.precision = min(self.precision, other.precision, key=lambda d: d.itemsize)
        return self

    def subtract(self, other: "NormalEquations") -> Self:
        """Remove the rows of `other`, which is not changed: the inverse of `merge`.

        This raises ValueError and changes nothing if the rows of `other` cannot be among the rows
        here, or if so few rows would be left that rounding errors dominate.
        """
        if not other.n_features or not other.n_rows:
            return self
        self._check_sizes(other.n_features, other.n_targets)
        self.__dict__.update(rest_of(self, other))
        return self

    def scale(self, factor: float) -> Self:
        """Multiply the weight of every row by a number, for example to let rows fade."""
        if not is_number(factor) or factor < 0:
            raise ValueError(f"factor must be a number of at least 0, got {factor!r}.")
        if self.n_features:
            for sums in (self._lower, self.gradient, self.y_square):
                sums *= factor
        self.weight *= factor
        return self

    def system(self, fit_intercept: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of H (its lower triangle), G and |y|^2, about the means or about zero."""
        lower = self._lower.copy(order="F")
        if fit_intercept:
            return lower, self.gradient.copy(), self.y_square.copy()
        add_to_triangle(lower, None, np.array([self.weight]), self.z_mean[None])
        gradient = self.gradient + self.weight * np.outer(self.z_mean, self.y_mean)
        return lower, gradient, self.y_square + self.weight * self.y_mean**2

    @contextmanager
    def lent(self) -> Iterator[np.ndarray]:
        """Lend the matrix that holds H in its lower triangle.

        The borrower may write into the upper triangle, which nothing else uses, and into the
        diagonal, which is restored afterwards.
        """
        with self._lending:
            self._lent_diagonal = self._lower.diagonal().copy()
            try:
                yield self._lower
            finally:
                self._take_back()

    def after_fork(self) -> None:
        """Restore the diagonal in a forked child, if a thread of the parent had borrowed H."""
        self._lending = Lock()
        self._take_back()

    def _take_back(self) -> None:
        if self._lent_diagonal is not None:
            np.fill_diagonal(self._lower, self._lent_diagonal)
            self._lent_diagonal = None

    def add_constant_targets(self, positions: np.ndarray, value: float) -> Self:
        """Insert targets that had the same value in every row so far, such as unseen classes.

        `positions` are the columns of the new targets afterwards. Their centered sums are zero.
        """
        self.n_targets += len(positions)
        old = np.setdiff1d(np.arange(self.n_targets), positions)
        for name, fill in (("gradient", 0.0), ("y_mean", value), ("y_square", 0.0)):
            before = getattr(self, name)
            after = np.full((*before.shape[:-1], self.n_targets), fill)
            after[..., old] = before
            setattr(self, name, after)
        return self

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return arrays (H as a packed lower triangle) and metadata, for files and clusters."""
        metadata = {
            "n_rows": self.n_rows,
            "weight": self.weight,
            "n_features": self.n_features,
            "n_targets": self.n_targets,
            "precision": self.precision.name,
        }
        if not self.n_features:
            return {}, metadata
        packed, _ = lapack.dtrttp(self._lower, uplo="L")
        arrays = {"hessian": packed} | {name: getattr(self, name) for name in _ARRAYS[1:]}
        return arrays, metadata

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> Self:
        """Return sums from what `to_arrays` returned."""
        self = cls()
        check_sums(arrays, metadata)
        for name in ("n_rows", "weight", "n_features", "n_targets"):
            setattr(self, name, metadata[name])
        self.precision = np.dtype(metadata["precision"])
        if self.n_features:
            lower, _ = lapack.dtpttr(self.n_features, arrays["hessian"], uplo="L")
            self._lower = np.asfortranarray(lower)
            for name in _ARRAYS[1:]:
                setattr(self, name, np.array(arrays[name], dtype=np.float64))
        return self

    def __copy__(self) -> Self:
        """Return a copy of the sums, which shares only the work matrix."""
        other = type(self)()
        other.__dict__.update(self.__dict__ | {"_lending": other._lending})
        if self.n_features:
            other._lower = self._lower.copy(order="F")
            for name in _ARRAYS[1:]:
                setattr(other, name, getattr(self, name).copy())
        return other

    def __getstate__(self) -> dict[str, Any]:
        arrays, metadata = self.to_arrays()
        return {"arrays": arrays, "metadata": metadata}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(vars(type(self).from_arrays(state["arrays"], state["metadata"])))

    def _make_room(self, n_features: int, n_targets: int, dtype: np.dtype) -> None:
        self.precision = min(self.precision, dtype, key=lambda d: d.itemsize)
        if self.n_features:
            self._check_sizes(n_features, n_targets)
            return
        refuse_if_too_large(n_features, n_targets, dtype.itemsize, copy=False)
        self.n_features, self.n_targets = n_features, n_targets
        self._lower = np.zeros((n_features, n_features), order="F")
        self.gradient = np.zeros((n_features, n_targets))
        self.z_mean = np.zeros(n_features)
        self.y_mean = np.zeros(n_targets)
        self.y_square = np.zeros(n_targets)

    def _check_sizes(self, n_features: int, n_targets: int) -> None:
        if (n_features, n_targets) != (self.n_features, self.n_targets):
            raise ValueError(
                f"these normal equations have {self.n_features} features and {self.n_targets} "
                f"targets, and the rows have {n_features} features and {n_targets} targets."
            )

    def _add(self, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Add a block, whose memory is overwritten."""
        block = BlockSums.of(Z, Y, weights)
        if block is not None:
            self._combine(self._rank_k(block.Z), block, ((-block.weight, block.offset),))

    def _rank_k(self, Z: np.ndarray) -> np.ndarray | None:
        """Return the lower triangle of Z^T Z, or add it to H and return None if Z is float64."""
        if Z.dtype == np.float64:
            with np.errstate(over="ignore"):
                check_finite(np.einsum("ij,ij->j", Z, Z), Z)  # before anything is added
            blas.dsyrk(1.0, Z.T, 1.0, self._lower, lower=1, overwrite_c=1)
            return None
        if not self._work:
            self._work.append(np.zeros(self._lower.shape, np.float32, order="F"))
        blas.ssyrk(1.0, Z.T, 0.0, self._work[0], lower=1, overwrite_c=1)
        check_finite(self._work[0].diagonal(), Z)
        return self._work[0]

    def _combine(
        self, part: np.ndarray | None, sums: Any, outer: tuple[tuple[float, np.ndarray], ...] = ()
    ) -> None:
        """Merge centered sums of other rows.

        The H of the other rows is `part` (None if it was added already) plus the rank-one terms
        (scale, vector) in `outer`. `sums` is a BlockSums or NormalEquations with the other sums.
        """
        total = self.weight + sums.weight
        z_step, y_step = sums.z_mean - self.z_mean, sums.y_mean - self.y_mean
        between = self.weight * sums.weight / total
        terms = [term for term in (*outer, (between, z_step)) if term[0]]
        scales = np.array([scale for scale, _ in terms])
        vectors = np.array([vector for _, vector in terms]).reshape(len(terms), self.n_features)
        add_to_triangle(self._lower, part, scales, vectors)
        self.gradient += sums.gradient
        self.gradient += between * np.outer(z_step, y_step)
        self.y_square += sums.y_square + between * y_step**2
        self.z_mean += sums.weight / total * z_step
        self.y_mean += sums.weight / total * y_step
        self.weight = total
