"""What one pass over the rows keeps: sums that add."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import blas, lapack

from craftmaps.learn.removal import rest_of
from craftmaps.learn.solvers.memory import refuse_if_too_large
from craftmaps.loops.triangle import add_to_triangle
from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable
from craftmaps.threads import for_each_block, renew_after_fork
from craftmaps.validation import is_integer, is_number

_ROWS = 4096  # rows of a rank-k update when the caller gives more at once
_SAMPLE = 64  # rows that tell whether columns are far from zero
_FAR = 0.5  # standard deviations from zero beyond which a mean is removed before squaring
_ARRAYS = ("hessian", "gradient", "z_mean", "y_mean", "y_square")


@storable
class NormalEquations:
    """The sums of ridge regression: H = sum w (z - m)(z - m)^T, G = sum w (z - m)(y - v)^T.

    m and v are the weighted means of features z and targets y. The sums of two sets of rows merge
    into those of their union (Chan, Golub and LeVeque), so blocks, files and machines add up to one
    pass. Blocks enter as one rank-k update in their own precision, and are summed in float64. A
    column far from zero is shifted towards it first, so that large offsets cost no digits.

    Memory: 8 E^2 bytes for E features, 4 E^2 more while float32 blocks arrive, 8 E per target.

    Attributes
    ----------
    n_rows : int
        Rows seen.
    weight : float
        Their total weight; n_rows without weights and `scale`.
    n_features, n_targets : int
    z_mean, y_mean : ndarray of shape (n_features,) and (n_targets,)
    gradient : ndarray of shape (n_features, n_targets)
        G, centred.
    y_square : ndarray of shape (n_targets,)
        sum w (y - v)^2.
    precision : dtype
        That of the least precise block seen, which bounds what the sums are good for.

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
        self._work: list[np.ndarray] = []  # one matrix, perhaps shared
        self._lending = Lock()
        self._lent_diagonal: np.ndarray | None = None  # of H, while a borrower may write over it
        renew_after_fork(self)

    @property
    def hessian(self) -> np.ndarray:
        """H as a full symmetric matrix (a copy)."""
        full = np.tril(self._lower)
        return full + np.tril(full, -1).T

    def update(self, Z: Any, Y: Any, sample_weight: Any = None, *, overwrite: bool = False) -> Self:
        """Add rows.

        Parameters
        ----------
        Z : array of shape (n_rows, n_features), float32 or float64
        Y : array of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : array of shape (n_rows,), default=None
            Not negative; a row of weight 2 counts as two rows.
        overwrite : bool, default=False
            Whether Z may be used as work space, which saves a copy.

        Returns
        -------
        self
        """
        Z, Y, weights = _checked(Z, Y, sample_weight)
        blocks = [slice(start, start + _ROWS) for start in range(0, len(Z), _ROWS)]
        if len(blocks) > 1:  # the last rows are as good as the first, before any is added
            for rows in blocks:
                _check_block(Z[rows], Y[rows])
        self._make_room(Z.shape[1], Y.shape[1], Z.dtype)
        for rows in blocks:
            block = Z[rows] if overwrite else Z[rows].copy()
            self._add(block, Y[rows], None if weights is None else weights[rows])
        self.n_rows += len(Z)
        return self

    def share_work(self, other: "NormalEquations") -> Self:
        """Use the work matrix of another set of sums, of the same number of features."""
        self._work = other._work
        return self

    def merge(self, other: "NormalEquations") -> Self:
        """Add the rows of `other`, which stays as it is."""
        if not other.n_features:
            return self
        if not self.n_features:
            self._make_room(other.n_features, other.n_targets, other.precision)
        self._check_sizes(other.n_features, other.n_targets)
        if other.weight:
            self._combine(
                other._lower,
                (),
                other.gradient,
                other.y_square,
                other.z_mean,
                other.y_mean,
                other.weight,
            )
        self.n_rows += other.n_rows
        self.precision = min(self.precision, other.precision, key=lambda d: d.itemsize)
        return self

    def subtract(self, other: "NormalEquations") -> Self:
        """Remove the rows of `other`, which stays as it is: the inverse of `merge`.

        Raises ValueError, and changes nothing, if the rows of `other` cannot be among these, or if
        less would be left than rounding errors allow.
        """
        if not other.n_features or not other.n_rows:
            return self
        self._check_sizes(other.n_features, other.n_targets)
        self.__dict__.update(rest_of(self, other))
        return self

    def scale(self, factor: float) -> Self:
        """Multiply the weight of every row by a number, for instance to let rows fade."""
        if not is_number(factor) or factor < 0:
            raise ValueError(f"factor must be a number of at least 0, got {factor!r}.")
        if self.n_features:
            for sums in (self._lower, self.gradient, self.y_square):
                sums *= factor
        self.weight *= factor
        return self

    def system(self, fit_intercept: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """H (a Fortran-ordered copy, lower triangle only), G and |y|^2, about the means or zero."""
        lower = self._lower.copy(order="F")
        if fit_intercept:
            return lower, self.gradient.copy(), self.y_square.copy()
        add_to_triangle(lower, None, np.array([self.weight]), self.z_mean[None])
        gradient = self.gradient + self.weight * np.outer(self.z_mean, self.y_mean)
        return lower, gradient, self.y_square + self.weight * self.y_mean**2

    @contextmanager
    def lent(self) -> Iterator[np.ndarray]:
        """H about the means, in the lower triangle of the matrix that keeps it.

        The borrower may write into the upper triangle, which nothing else uses, and the diagonal,
        which is put right afterwards.
        """
        with self._lending:
            self._lent_diagonal = self._lower.diagonal().copy()
            try:
                yield self._lower
            finally:
                self._take_back()

    def after_fork(self) -> None:
        """Take back in a forked child what a thread of the parent had borrowed."""
        self._lending = Lock()
        self._take_back()

    def _take_back(self) -> None:
        if self._lent_diagonal is not None:
            np.fill_diagonal(self._lower, self._lent_diagonal)
            self._lent_diagonal = None

    def add_constant_targets(self, positions: np.ndarray, value: float) -> Self:
        """Insert targets that had the same value in every row so far, as a class not yet seen has.

        `positions` are their columns afterwards. Centred sums of a constant are zero.
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
        """Plain arrays (H as its packed lower triangle) and metadata, for files and wires."""
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
        """The inverse of `to_arrays`."""
        self = cls()
        _check_sums(arrays, metadata)
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
        """The same sums, which change no longer with these; the work matrix is shared."""
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
                f"these normal equations are of {self.n_features} features and {self.n_targets} "
                f"targets, and cannot take rows of {n_features} features and {n_targets} targets."
            )

    def _add(self, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Add a block, using its memory."""
        weight = float(len(Z) if weights is None else weights.sum())
        if weight == 0:
            return
        if weights is not None and not weights.all():  # what they hold would shift the reference
            some = weights > 0
            Z, Y, weights = Z[some], Y[some], weights[some]
        reference = _reference(Z)
        if reference.any():
            _subtract(Z, reference)
        root = np.ones(len(Z), Z.dtype) if weights is None else np.sqrt(weights).astype(Z.dtype)
        Y = Y.astype(np.float64)
        y_mean = Y.mean(axis=0) if weights is None else weights @ Y / weight
        centred = Y - y_mean
        y_square = np.einsum("ij,ij,i->j", centred, centred, np.square(root, dtype=np.float64))
        if weights is not None:
            Z *= root[:, None]
            centred *= root[:, None]
        # One product gives the cross sums with the targets and, in the last column, sum w (z - r).
        right = np.column_stack([centred.astype(Z.dtype, copy=False), root])
        with np.errstate(over="ignore", invalid="ignore"):
            cross = (Z.T @ right).astype(np.float64)
        check_finite(cross, Z)
        offset = cross[:, -1] / weight
        z_mean = reference + offset
        part = self._rank_k(Z)
        around = ((-weight, offset),)  # from sums about the reference to sums about the mean
        self._combine(part, around, cross[:, :-1], y_square, z_mean, y_mean, weight)

    def _rank_k(self, Z: np.ndarray) -> np.ndarray | None:
        """Z^T Z in one triangle: returned for float32, already added for float64."""
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
        self,
        part: np.ndarray | None,
        outer: tuple[tuple[float, np.ndarray], ...],
        gradient: np.ndarray,
        y_square: np.ndarray,
        z_mean: np.ndarray,
        y_mean: np.ndarray,
        weight: float,
    ) -> None:
        """Merge centred sums; `outer` are rank-one terms (scale, vector) that belong to `part`."""
        total = self.weight + weight
        z_step, y_step = z_mean - self.z_mean, y_mean - self.y_mean
        between = self.weight * weight / total
        terms = [term for term in (*outer, (between, z_step)) if term[0]]
        scales = np.array([scale for scale, _ in terms])
        vectors = np.array([vector for _, vector in terms]).reshape(len(terms), self.n_features)
        add_to_triangle(self._lower, part, scales, vectors)
        self.gradient += gradient
        self.gradient += between * np.outer(z_step, y_step)
        self.y_square += y_square + between * y_step**2
        self.z_mean += weight / total * z_step
        self.y_mean += weight / total * y_step
        self.weight = total


def _check_sums(arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
    """Raise ValueError unless arrays have the sizes that the metadata say."""
    n_features, n_targets = metadata["n_features"], metadata["n_targets"]
    counts = (metadata["n_rows"], n_features, n_targets)
    expect(all(is_integer(n) and n >= 0 for n in counts), "rows, features and targets are counted")
    expect(is_number(metadata["weight"]) and metadata["weight"] >= 0, "a weight of at least 0")
    expect(metadata["precision"] in ("float32", "float64"), "sums of float32 or float64")
    shapes = {
        "hessian": (n_features * (n_features + 1) // 2,),
        "gradient": (n_features, n_targets),
        "z_mean": (n_features,),
        "y_mean": (n_targets,),
        "y_square": (n_targets,),
    }
    expect(arrays.keys() == (shapes.keys() if n_features else set()), "the arrays of sums")
    for name, array in arrays.items():
        expect_array(name, array, "f", shapes[name])
        expect(bool(np.isfinite(array).all()), f"finite {name}")
    if n_features:  # sums of squares, up to what is left of rows that were taken out again
        columns = np.arange(n_features)
        squares = arrays["hessian"][columns * n_features - columns * (columns - 1) // 2]
        expect(bool((squares >= -1e-6 * np.abs(squares).max()).all()), "squares of features")


def _reference(Z: np.ndarray) -> np.ndarray:
    """For each column, what to subtract before squares are summed: zero, or about its mean.

    A sample is enough: a reference within a few standard deviations of the mean loses no digits.
    """
    sample = Z[:: max(1, len(Z) // _SAMPLE)].astype(np.float64)
    with np.errstate(over="ignore"):
        mean, spread = sample.mean(axis=0), sample.std(axis=0)
    return np.where(np.abs(mean) > _FAR * spread, mean, 0.0).astype(Z.dtype)


def check_finite(sums: np.ndarray, Z: np.ndarray) -> None:
    """Complain about rows whose sums overflow, before they are added to others."""
    if not np.isfinite(sums).all():
        raise ValueError(
            f"features or targets are too large for {Z.dtype}, or not finite: the largest feature "
            f"is {np.abs(Z).max():.3g}; scale the rows, for instance to unit norm."
        )


def _check_block(Z: np.ndarray, Y: np.ndarray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        check_finite(np.einsum("ij,ij->j", Z, Z), Z)
        check_finite(Y.sum(axis=0, dtype=np.float64), Z)


def _subtract(Z: np.ndarray, reference: np.ndarray) -> None:
    def task(start: int, stop: int) -> None:
        Z[start:stop] -= reference

    for_each_block(task, len(Z), Z.strides[0])


def _checked(Z: Any, Y: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    Z = np.asarray(Z)
    Z = np.ascontiguousarray(Z, dtype=Z.dtype if Z.dtype == np.float32 else np.float64)
    Y = np.asarray(Y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Z.ndim != 2 or Y.ndim != 2 or len(Z) != len(Y):
        raise ValueError(
            f"Z and Y must be matrices of equally many rows, got shapes {Z.shape} and {Y.shape}."
        )
    if weights is None:
        return Z, Y, None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(Z),) or not (weights >= 0).all() or not np.isfinite(weights).all():
        raise ValueError(
            f"sample_weight must be {len(Z)} finite numbers that are not negative, one per row."
        )
    return Z, Y, weights
