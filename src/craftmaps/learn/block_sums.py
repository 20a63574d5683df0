"""The sums of one block of rows, about the means of the block."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.threads import for_each_block

_SAMPLE_ROWS = 64  # rows that tell whether the mean of a column is far from zero
_LARGE_MEAN = 0.5  # in standard deviations; a larger mean is removed before squaring


@dataclass
class BlockSums:
    """Sums of rows z with targets y and weights w, and the terms that turn Z^T Z into H.

    Attributes
    ----------
    Z : ndarray of shape (n_rows, n_features)
        sqrt(w) (z - r) for a reference r near the means, so that large offsets cost no digits.
    offset : ndarray of shape (n_features,)
        m - r for the weighted mean m: H = Z^T Z - weight (m - r)(m - r)^T.
    gradient, y_square, z_mean, y_mean, weight
        As in `NormalEquations`.
    """

    Z: np.ndarray
    offset: np.ndarray
    gradient: np.ndarray
    y_square: np.ndarray
    z_mean: np.ndarray
    y_mean: np.ndarray
    weight: float

    @classmethod
    def of(cls, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> "BlockSums | None":
        """Return the sums of a block, or None if all weights are 0; Z is overwritten."""
        weight = float(len(Z) if weights is None else weights.sum())
        if weight == 0:
            return None
        if weights is not None and not weights.all():  # such rows would shift the reference
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
        return cls(Z, offset, cross[:, :-1], y_square, reference + offset, y_mean, weight)


def checked_block(Z: Any, Y: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return features, targets as a matrix, and weights of rows, or raise ValueError."""
    Z = np.asarray(Z)
    Z = np.ascontiguousarray(Z, dtype=Z.dtype if Z.dtype == np.float32 else np.float64)
    Y = np.asarray(Y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Z.ndim != 2 or Y.ndim != 2 or len(Z) != len(Y):
        raise ValueError(
            f"Z and Y must have the same number of rows, got shapes {Z.shape} and {Y.shape}."
        )
    if weights is None:
        return Z, Y, None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(Z),) or not (weights >= 0).all() or not np.isfinite(weights).all():
        raise ValueError(
            f"sample_weight must be {len(Z)} finite numbers that are not negative, one per row."
        )
    return Z, Y, weights


def check_finite(sums: np.ndarray, Z: np.ndarray) -> None:
    """Raise ValueError if sums of rows overflow, before they are added to others."""
    if not np.isfinite(sums).all():
        raise ValueError(
            f"features or targets are too large for {Z.dtype}, or not finite: the largest feature "
            f"is {np.abs(Z).max():.3g}; scale the rows, for instance to unit norm."
        )


def check_squares(Z: np.ndarray, Y: np.ndarray) -> None:
    """Raise ValueError if squares of features or sums of targets overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        check_finite(np.einsum("ij,ij->j", Z, Z), Z)
        check_finite(Y.sum(axis=0, dtype=np.float64), Z)


def _reference(Z: np.ndarray) -> np.ndarray:
    """Return what to subtract from each column before squaring: zero, or about its mean.

    A sample is enough: a reference within a few standard deviations of the mean loses no digits.
    """
    sample = Z[:: max(1, len(Z) // _SAMPLE_ROWS)].astype(np.float64)
    with np.errstate(over="ignore"):
        mean, spread = sample.mean(axis=0), sample.std(axis=0)
    return np.where(np.abs(mean) > _LARGE_MEAN * spread, mean, 0.0).astype(Z.dtype)


def _subtract(Z: np.ndarray, reference: np.ndarray) -> None:
    def task(start: int, stop: int) -> None:
        Z[start:stop] -= reference

    for_each_block(task, len(Z), Z.strides[0])
