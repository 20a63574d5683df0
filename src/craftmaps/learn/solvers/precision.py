"""Whether single precision is enough for the products of features."""

import numpy as np

_MIN_ROWS, _MAX_ROWS = 512, 1024  # rows of the sample that decides
_MAX_LOST_SHARE = 0.25  # share of the directions of the rows that may be lost
_MARGIN = 8.0  # factor on the floor, because all rows have more and smaller eigenvalues
FLOOR = 10.0  # rounding hides eigenvalues below this many eps times the trace


def loses_directions(Z: np.ndarray) -> bool:
    """Whether products in the precision of Z would lose many directions of its rows to rounding.

    Features of a smooth kernel on few columns vary by factors of millions from one direction to
    another, and small directions may distinguish the classes. Rounding hides eigenvalues of the
    sums below about 10 eps times their trace. The eigenvalues of a sample of rows fall in the same
    way as the eigenvalues of the sums. With too few rows, they do not fall far enough to tell.
    """
    if len(Z) < _MIN_ROWS:
        return True
    rows = Z[:_MAX_ROWS].astype(np.float64)
    if not np.isfinite(rows).all():
        return False  # the sums will raise an error
    rows -= rows.mean(axis=0)
    values = np.linalg.eigvalsh(rows @ rows.T)
    floor = FLOOR * float(np.finfo(Z.dtype).eps) * values.sum()
    return bool(np.quantile(values, _MAX_LOST_SHARE) < _MARGIN * floor)
