"""Exact columns for the low-degree terms of a dot-product kernel."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from craftmaps.loops.monomials import monomial_rows
from craftmaps.maps.parts.base import check_facts
from craftmaps.storage.packing import storable
from craftmaps.threads import dense_block, for_each_block
from craftmaps.validation import is_integer


@storable
@dataclass(frozen=True)
class ExactTerms:
    """Exact terms: constants that share the weight a_0, columns sqrt(a_1) x, and monomials.

    There are `n_constant` and `n_linear` columns of degree 0 and 1. `higher` has the coefficients
    a_2, a_3, ... up to the highest degree with columns. Each a_n that is not zero has the columns
    sqrt(a_n n! / alpha!) x^alpha with |alpha| = n, where x has `n_inputs` columns. By the
    multinomial theorem, their inner product is a_n <x, y>^n.
    """

    n_constant: int
    n_linear: int
    a0: float
    a1: float
    higher: tuple[float, ...] = ()
    n_inputs: int = 0

    @property
    def coefficients(self) -> tuple[float, ...]:
        """Coefficients a_1, a_2, ..., with 0 for a degree without columns."""
        return (self.a1 if self.n_linear else 0.0, *self.higher)

    @property
    def n_columns(self) -> int:
        higher = enumerate(self.higher, start=2)
        monomials = sum(n_monomials(self.n_inputs, n) for n, a in higher if a)
        return self.n_constant + self.n_linear + monomials

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Write the terms into the first columns of `out`, and leave the others unchanged."""
        if self.n_constant:
            out[:, : self.n_constant] = np.sqrt(self.a0 / self.n_constant)
        if not any(self.coefficients):
            return
        first, scales = [-1], []
        place = self.n_constant
        for a, of_degree in zip(
            self.coefficients, monomials(X.shape[1], len(self.coefficients)), strict=True
        ):
            first.append(place if a else -1)
            scales.append(np.sqrt(a * of_degree.multiplicity))
            place += len(of_degree.multiplicity) if a else 0
        drawn = (np.array(first), np.concatenate(scales).astype(out.dtype))

        def task(start: int, stop: int) -> None:
            rows = dense_block(X, start, stop, out.dtype)
            monomial_rows(rows, *drawn, out[start:stop])

        for_each_block(task, X.shape[0], out.itemsize * max(X.shape[1], out.shape[1] // 2))

    def check(self, n_in: int, n_out: int) -> None:
        """Raise ValueError unless the terms take n_in columns and fill at most n_out columns."""
        sizes = (self.n_constant, self.n_linear, self.n_inputs)
        check_facts(
            self,
            sizes=all(map(is_integer, sizes)) and self.n_linear in (0, n_in),
            higher=not self.higher or (self.n_inputs == n_in and self.higher[-1] > 0),
        )
        check_facts(self, columns=0 <= self.n_constant <= self.n_columns <= n_out)

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        """Add the terms to the ONNX graph; there must be at least one."""
        terms = []
        if self.n_constant:
            value = np.sqrt(self.a0 / self.n_constant)
            terms.append(g.repeated(np.full(self.n_constant, value), x))
        if self.n_linear:
            terms.append(g.add("Mul", x, float(np.sqrt(self.a1))))
        power = x
        for a, (parent, variable, multiplicity) in zip(
            self.higher, monomials(self.n_inputs, 1 + len(self.higher))[1:], strict=True
        ):
            power = g.add("Mul", g.gather(power, parent, axis=1), g.gather(x, variable, axis=1))
            if a:
                terms.append(g.add("Mul", power, g.floats(np.sqrt(a * multiplicity))))
        return str(g.concat(terms, axis=1))


class Monomials(NamedTuple):
    """The monomials of one degree, each a variable times a monomial of the previous degree.

    `multiplicity` is n! / alpha!, the number of times the monomial occurs in <x, y>^n.
    """

    parent: np.ndarray
    variable: np.ndarray
    multiplicity: np.ndarray


def n_monomials(n_variables: int, degree: int) -> int:
    """Return the number of monomials of a degree."""
    return math.comb(n_variables + degree - 1, degree)


@lru_cache(maxsize=8)
def monomials(n_variables: int, degree: int) -> tuple[Monomials, ...]:
    """Return the monomials of the degrees 1 to `degree`, in the order of the compiled loop."""
    parent, variable = np.zeros(n_variables, np.int64), np.arange(n_variables)
    power = multiplicity = np.ones(n_variables)  # power: the exponent of `variable`
    tables = [Monomials(parent, variable, multiplicity)]
    for n in range(2, degree + 1):
        kept = [np.flatnonzero(variable >= v) for v in range(n_variables)]
        parent = np.concatenate(kept)
        led = np.repeat(np.arange(n_variables), [len(some) for some in kept])
        power = np.where(variable[parent] == led, power[parent] + 1, 1.0)
        multiplicity = multiplicity[parent] * n / power
        variable = led
        tables.append(Monomials(parent, variable, multiplicity))
    return tuple(tables)
