"""Whether single precision is enough for the products of features."""

import numpy as np

_LOOKED = 1024  # rows that tell it, or all that there are
_FEW = 512  # that do not tell it
_LOST = 0.25  # share of their directions that may be lost
_MARGIN = 8.0  # above the floor: the sums have more eigenvalues than these rows, and they fall on
FLOOR = 10.0  # units of rounding, times the trace, below which rounding hides an eigenvalue


def loses_directions(Z: np.ndarray) -> bool:
    """Whether products in the precision of Z would lose many directions of its rows to rounding.

    Features of a smooth kernel on few columns vary by factors of millions from one direction to
    another, and small directions may distinguish the classes. Rounding hides eigenvalues of the
    sums below about 10 eps times their trace. The eigenvalues of a sample of rows fall in the same
    way as the eigenvalues of the sums. With too few rows, they do not fall far enough to tell.
    """
    if len(Z) < _FEW:
        return True
    rows = Z[:_LOOKED].astype(np.float64)
    if not np.isfinite(rows).all():
        return False  # the sums will complain
    rows -= rows.mean(axis=0)
    values = np.linalg.eigvalsh(rows @ rows.T)
    floor = FLOOR * float(np.finfo(Z.dtype).eps) * values.sum()
    return bool(np.quantile(values, _LOST) < _MARGIN * floor)
