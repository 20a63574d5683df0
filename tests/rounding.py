"""What must be the same, however many rows are predicted at once."""

import numpy as np


def assert_equal_to_rounding(found, expected):
    """Labels exactly; numbers but for the order in which BLAS adds, which depends on the rows."""
    if np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)
