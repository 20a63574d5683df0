"""Removal of rows: from sums by subtraction, from kept rows by finding equal rows."""

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from craftmaps.learn.solvers.factor import factor_upper
from craftmaps.loops.triangle import add_to_triangle

_ROUNDING = 100.0  # eigenvalues may be this many eps sqrt(n_features) below 0
_SAME_ROW = 32.0  # in eps: how far the features of one row may differ between two calls
_SAME_PROBE = 1e-5  # largest squared distance of equal rows, relative to their squared lengths
_PROBE_SEED = 0x70726F6265
_ROWS_AT_A_TIME = 1024
SAME_WEIGHT = 1e-9  # a row with less remaining weight counts as removed


def rest_of(whole: Any, part: Any) -> dict[str, Any]:
    """Return the attributes of `whole` without the rows of `part`; neither is changed.

    For weights W and w and means m and m', the rest has the mean r = (W m - w m') / (W - w) and the
    sums H - H' - (W - w) w / W (m' - r)(m' - r)^T (the formula of Chan, Golub and LeVeque,
    inverted).

    Sums of rows are positive semi-definite. If the rest is not, up to the rounding errors of
    `whole`, an error is raised, because some of the rows were never in the sums.
    """
    eps = float(np.finfo(whole.precision).eps)
    weight = whole.weight - part.weight
    if part.n_rows > whole.n_rows or weight < np.sqrt(eps) * whole.weight:
        raise ValueError(
            f"rows of weight {part.weight:.6g} cannot be removed from rows of weight "
            f"{whole.weight:.6g}: too little would be left. Start again with the rows that remain."
        )
    z_mean = whole.z_mean + part.weight / weight * (whole.z_mean - part.z_mean)
    y_mean = whole.y_mean + part.weight / weight * (whole.y_mean - part.y_mean)
    between = weight * part.weight / whole.weight
    z_step, y_step = part.z_mean - z_mean, part.y_mean - y_mean
    lower = np.asfortranarray(whole._lower - part._lower)
    add_to_triangle(lower, None, np.array([-between]), z_step[None])
    gradient = whole.gradient - part.gradient - between * np.outer(z_step, y_step)
    y_square = whole.y_square - part.y_square - between * y_step**2
    _check_possible(whole, lower, gradient, y_square, eps)
    return {
        "_lower": lower,
        "gradient": gradient,
        "z_mean": z_mean,
        "y_mean": y_mean,
        "y_square": np.maximum(y_square, 0.0),
        "weight": weight,
        "n_rows": whole.n_rows - part.n_rows,
        "precision": min(whole.precision, part.precision, key=lambda d: d.itemsize),
    }


def _check_possible(
    whole: Any, lower: np.ndarray, gradient: np.ndarray, y_square: np.ndarray, eps: float
) -> None:
    """Raise ValueError unless [H G; G^T y^2] can be sums of rows, for each target."""
    tolerance = _ROUNDING * eps * np.sqrt(whole.n_features)
    z_scale = _inverse_roots(whole._lower.diagonal() + whole.weight * whole.z_mean**2)
    y_scale = _inverse_roots(whole.y_square + whole.weight * whole.y_mean**2)
    scaled = np.asfortranarray((lower * z_scale * z_scale[:, None]).T)
    np.fill_diagonal(scaled, scaled.diagonal() + tolerance)
    possible = not factor_upper(scaled)
    if possible:
        half = solve_triangular(scaled, z_scale[:, None] * gradient * y_scale, trans="T")
        unexplained = y_square * y_scale**2 - np.square(half).sum(axis=0)
        possible = bool((unexplained > -np.sqrt(tolerance)).all())
    if not possible:
        raise ValueError(
            "some of these rows were never added, or have been removed already: no rows could have "
            "the sums that would be left. Nothing was changed."
        )


def _inverse_roots(squares: np.ndarray) -> np.ndarray:
    return np.asarray(1 / np.sqrt(np.where(squares > 0, squares, 1.0)))


def probe_without(probe: Any, rows: Any) -> Any:
    """Return the row that identifies a map, or a random row of its length if `rows` contain it."""
    squares, square = row_norms(rows, squared=True), float(row_norms(probe, squared=True)[0])
    products = safe_sparse_dot(rows, probe.T, dense_output=True)[:, 0]
    if (squares - 2 * products + square > _SAME_PROBE * (squares + square)).all():
        return probe
    drawn = np.random.default_rng(_PROBE_SEED).standard_normal(probe.shape)
    return (drawn * np.sqrt(square) / np.linalg.norm(drawn)).astype(probe.dtype)


def places_of(
    Z: np.ndarray, targets: np.ndarray, kept_Z: np.ndarray, kept_targets: np.ndarray
) -> np.ndarray:
    """Return the place of an equal kept row for each row, or -1; no place is given twice."""
    places = np.full(len(Z), -1)
    if not len(kept_Z):
        return places
    free = np.ones(len(kept_Z), bool)
    limit = (_SAME_ROW * float(np.finfo(kept_Z.dtype).eps)) ** 2 + 1e-13  # for squared distances
    kept = kept_Z.astype(np.float64)
    kept_squares = np.einsum("ij,ij->i", kept, kept)
    for start in range(0, len(Z), _ROWS_AT_A_TIME):
        rows = Z[start : start + _ROWS_AT_A_TIME].astype(np.float64)
        squares = np.einsum("ij,ij->i", rows, rows)[:, None] + kept_squares
        near = squares - 2 * rows @ kept.T <= limit * squares
        for i in np.flatnonzero(near.any(axis=1)):
            for place in np.flatnonzero(near[i] & free):
                if np.array_equal(kept_targets[place], targets[start + i]):
                    places[start + i], free[place] = place, False
                    break
    return places
