"""Sets of signs whose Hadamard bases have equal angles to each other.

Let s_a = (-1)^Q_a be sign vectors of quadratic forms Q_a over the integers modulo 2. The rows of
H diag(s_a) and of H diag(s_b) have inner products of size 2^(m - r/2), where r is the rank of
Q_a + Q_b. In a Kerdock set, every such rank is full. The bases are then mutually unbiased: a row of
one basis has the same angle to all rows of the others (Calderbank, Cameron, Kantor and Seidel
1997). Kerdock sets need an even m. For odd m, Gold's forms have rank m - 1, the largest possible.
"""

import numpy as np

_POLYNOMIALS = {  # primitive polynomials of odd degrees
    5: 0x25,
    7: 0x83,
    9: 0x211,
    11: 0x805,
    13: 0x201B,
    15: 0x8003,
    17: 0x20009,
    19: 0x80027,
    21: 0x200005,
}


def n_sign_sets(size: int) -> int:
    """Return how many sets exist for a Hadamard matrix of that size; 1 if no field is known."""
    power = size.bit_length() - 1
    return 1 << _degree(power) if _degree(power) in _POLYNOMIALS else 1


def sign_sets(size: int, which: np.ndarray) -> np.ndarray:
    """Return the sets with the given numbers, which are below `n_sign_sets`, one in each row."""
    power = size.bit_length() - 1
    if n_sign_sets(size) == 1:
        return np.ones((len(which), size))
    field = _Field(_degree(power))
    x, a = np.arange(field.size), np.asarray(which)[:, None]
    if power % 2:  # Gold: Tr(a x^3)
        bits = field.trace(field.times(a, field.times(x, field.times(x, x))))
    else:  # Kerdock, on pairs (x, e): the sum of Tr((a x)^(2^i + 1)) over i, + e Tr(a x)
        ax = power_of_ax = field.times(a, x)
        form = np.zeros_like(ax)
        for _ in range((field.degree - 1) // 2):
            power_of_ax = field.times(power_of_ax, power_of_ax)
            form ^= field.trace(field.times(power_of_ax, ax))
        bits = np.concatenate([form, form ^ field.trace(ax)], axis=1)
    return 1.0 - 2.0 * bits


def _degree(power: int) -> int:
    return power if power % 2 else power - 1


class _Field:
    """The field of polynomials modulo 2 and a primitive polynomial, as numbers below 2^degree."""

    def __init__(self, degree: int) -> None:
        self.degree, self.size = degree, 1 << degree
        powers = [1]
        for _ in range(self.size - 2):
            twice = powers[-1] << 1
            powers.append(twice ^ _POLYNOMIALS[degree] if twice >= self.size else twice)
        self._powers = np.array(powers)
        self._logarithm = np.zeros(self.size, np.int64)
        self._logarithm[self._powers] = np.arange(self.size - 1)
        self._odd = self._mask_of_trace()

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        log = (self._logarithm[a] + self._logarithm[b]) % (self.size - 1)
        return np.where((a == 0) | (b == 0), 0, self._powers[log])

    def trace(self, a: np.ndarray) -> np.ndarray:
        """Return a + a^2 + a^4 + ..., which is 0 or 1 and linear in a."""
        return np.asarray(np.bitwise_count(a & self._odd).astype(np.int64) & 1)

    def _mask_of_trace(self) -> int:
        units = 1 << np.arange(self.degree)
        total = np.zeros_like(units)
        for _ in range(self.degree):
            total ^= units
            units = self.times(units, units)
        return int(total @ (1 << np.arange(self.degree)))
