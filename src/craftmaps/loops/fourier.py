"""Cosines and sines of whole rows, in plain arithmetic that the compiler can vectorize.

The argument is reduced to [-pi/4, pi/4] in float64, in two or three steps of pi/2 (Cody and Waite).
The signed remainder is kept instead of an integer, because AVX2 cannot convert float64 to integers.
The polynomials come from Moshier's Cephes library.
"""

import numpy as np

from craftmaps.loops.compiled import compiled

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)


@compiled
def cos_sin32(Z: np.ndarray, m: int, scale: np.float32) -> None:
    """Set Z[:, j] = scale cos(p) and Z[:, m+j] = scale sin(p) for j < m and p = Z[:, m+j].

    Z is float32. The absolute error is below 2e-7 up to |p| = 1e6.
    """
    one, half = np.float32(1), np.float32(0.5)
    for i in range(Z.shape[0]):
        cosines, sines = Z[i, :m], Z[i, m : 2 * m]
        for j in range(m):
            x = np.float64(sines[j])
            q = (x * _TWO_OVER_PI + _ROUND) - _ROUND
            r = np.float32((x - q * _HALF_PI[0]) - q * _HALF_PI[1])
            quarter = np.float32(q - 4.0 * ((q * 0.25 + _ROUND) - _ROUND))
            z = r * r
            s = np.float32(8.3321608736e-3) + z * np.float32(-1.9515295891e-4)
            s = r + r * z * (np.float32(-1.6666654611e-1) + z * s)
            c = np.float32(-1.388731625493765e-3) + z * np.float32(2.443315711809948e-5)
            c = one - half * z + z * z * (np.float32(4.166664568298827e-2) + z * c)
            odd = abs(quarter) == one
            sine = scale * (c if odd else s)
            cosine = scale * (s if odd else c)
            # quarter is -2, -1, 0, 1 or 2
            sines[j] = -sine if quarter < -half or quarter > one else sine
            cosines[j] = -cosine if quarter < -one or quarter > half else cosine


@compiled
def cos_sin64(Z: np.ndarray, m: int, scale: float) -> None:
    """Do the same as `cos_sin32` in float64, with errors below 1e-14 up to |p| = 1e6."""
    for i in range(Z.shape[0]):
        cosines, sines = Z[i, :m], Z[i, m : 2 * m]
        for j in range(m):
            x = sines[j]
            q = (x * _TWO_OVER_PI + _ROUND) - _ROUND
            r = ((x - q * _HALF_PI[0]) - q * _HALF_PI[1]) - q * _HALF_PI[2]
            quarter = q - 4.0 * ((q * 0.25 + _ROUND) - _ROUND)
            z = r * r
            s = 2.75573136213857245213e-6 + z * (
                -2.50507477628578072866e-8 + z * 1.58962301576546568060e-10
            )
            s = 8.33333333332211858878e-3 + z * (-1.98412698295895385996e-4 + z * s)
            s = r + r * z * (-1.66666666666666307295e-1 + z * s)
            c = -2.75573141792967388112e-7 + z * (
                2.08757008419747316778e-9 + z * -1.13585365213876817300e-11
            )
            c = -1.38888888888730564116e-3 + z * (2.48015872888517045348e-5 + z * c)
            c = 1.0 - 0.5 * z + z * z * (4.16666666666665929218e-2 + z * c)
            odd = abs(quarter) == 1.0
            sine = scale * (c if odd else s)
            cosine = scale * (s if odd else c)
            sines[j] = -sine if quarter < -0.5 or quarter > 1.0 else sine
            cosines[j] = -cosine if quarter < -1.0 or quarter > 0.5 else cosine
