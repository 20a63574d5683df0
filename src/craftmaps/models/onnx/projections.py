"""The parts of maps as ONNX: products of projections, down-projections, frequencies."""

from typing import Any

import numpy as np

from craftmaps.maps.parts.down import Fold, Matrix, SparseSigns, SubsampledHadamard
from craftmaps.maps.parts.exact_terms import ExactTerms, monomials
from craftmaps.maps.parts.frequencies import Frequencies, MatrixFrequencies, StructuredFrequencies
from craftmaps.maps.parts.hadamard_products import HadamardProducts
from craftmaps.maps.parts.matrix_products import MatrixProducts
from craftmaps.models.onnx.graph import Graph

_RUN = 8  # features of short rows excepted, factors are runs of this many entries of a rotation

Products = HadamardProducts | MatrixProducts


def products(g: Graph, x: str, drawn: Products, n_in: int, first: int, n_out: int) -> str:
    """What `drawn` writes to columns first .. first + n_out for rows of n_in columns.

    Features are made as (features, rows), where to gather them is to copy whole runs of memory.
    """
    if isinstance(drawn, MatrixProducts):
        values, columns, scales = _of_matrices(g, g.transpose(x), drawn)
    else:
        values, columns, scales = _of_rotations(g, x, drawn, n_in)
    if not values:
        return g.repeated(np.zeros(n_out), x)
    column = np.concatenate(columns)
    column = np.where(column < 0, -1, column - first)
    where, scale = _layers(column, np.concatenate(scales), n_out)
    placed = g.gather(g.concat(values, axis=0), where, axis=0)
    placed = g.add("Mul", placed, g.floats(scale[:, None]))
    if len(where) > n_out:
        placed = g.total(g.reshape(placed, len(where) // n_out, n_out, -1), axis=0)
    return g.transpose(placed)


def _of_rotations(
    g: Graph, x: str, drawn: HadamardProducts, n_in: int
) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    parts = drawn.plain()
    if not parts:
        return [], [], []
    columns, signs = drawn.sources(n_in)
    copies, size = columns.shape
    moved = g.add("Mul", g.gather(x, columns, axis=1), g.floats(signs))
    rotated = g.hadamard(moved, copies, size)
    u = g.transpose(g.reshape(rotated, 0, copies * size))
    values, targets, scales = [], [], []
    for part in parts:
        n, n_features = part.factors.shape
        factors, columns_out = [*part.factors], [part.column]
        if part.imaginary is not None:
            factors += [*(part.factors + size)]
            columns_out.append(part.imaginary)
        whole = copies * size % _RUN == 0  # not so for rows of few columns
        run = _RUN if whole and all(map(_in_runs, factors)) else 1
        source = g.reshape(u, copies * size // run, run, -1)
        taken = [g.gather(source, index[::run] // run, axis=0) for index in factors]
        made = complex_product(g, taken[:n], taken[n:]) if taken[n:] else [g.product(taken)]
        n_made = run * -(-n_features // run)  # the last run may be longer than is asked for
        for value, column in zip(made, columns_out, strict=True):
            values.append(g.reshape(value, n_made, -1))
            targets.append(np.pad(column, (0, n_made - n_features), constant_values=-1))
            scales.append(np.pad(part.scale, (0, n_made - n_features)))
    return values, targets, scales


def _in_runs(index: np.ndarray) -> bool:
    """Whether an index goes through runs of `_RUN` neighbours, which are faster to gather."""
    starts = index[::_RUN]
    whole = (starts[:, None] + np.arange(_RUN)).ravel()[: len(index)]
    return not (starts % _RUN).any() and bool((whole == index).all())


def _of_matrices(
    g: Graph, columns_of_x: str, drawn: MatrixProducts
) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    values, targets, scales = [], [], []
    for n, matrices in drawn.matrices.items():
        parts = [
            [g.add("MatMul", g.floats(factor), columns_of_x) for factor in part]
            for part in matrices
        ]
        values += [g.product(parts[0])] if len(parts) == 1 else complex_product(g, *parts)
        targets += list(drawn.columns(n))
        scales += [np.full(matrices.shape[2], drawn.scale[n])] * len(parts)
    return values, targets, scales


def complex_product(g: Graph, real: list[str], imaginary: list[str]) -> list[str]:
    """Real and imaginary part of the product of complex numbers."""
    re, im = real[0], imaginary[0]
    for a, b in zip(real[1:], imaginary[1:], strict=True):
        re, im = (
            g.add("Sub", g.add("Mul", re, a), g.add("Mul", im, b)),
            g.add("Add", g.add("Mul", re, b), g.add("Mul", im, a)),
        )
    return [re, im]


def _layers(column: np.ndarray, scale: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Which feature stands in each place of some layers of all columns, and its scale.

    A feature whose column is taken goes to the next layer, one of column -1 nowhere. A place of no
    feature has scale 0.
    """
    order = np.argsort(column, kind="stable")
    order = order[column[order] >= 0]
    taken = column[order]
    layer = np.arange(len(order)) - np.searchsorted(taken, taken)
    place = layer * width + taken
    where = np.zeros((int(layer.max()) + 1) * width, dtype=np.int64)
    scales = np.zeros(len(where))
    where[place], scales[place] = order, scale[order]
    return where, scales


def exact_terms(g: Graph, x: str, exact: ExactTerms) -> list[str]:
    """The columns of a map that need no randomness."""
    found = []
    if exact.n_constant:
        value = np.sqrt(exact.a0 / exact.n_constant)
        found.append(g.repeated(np.full(exact.n_constant, value), x))
    if exact.n_linear:
        found.append(g.add("Mul", x, float(np.sqrt(exact.a1))))
    power = x
    for a, (parent, variable, multiplicity) in zip(
        exact.higher, monomials(exact.n_inputs, 1 + len(exact.higher))[1:], strict=True
    ):
        power = g.add("Mul", g.gather(power, parent, axis=1), g.gather(x, variable, axis=1))
        if a:
            found.append(g.add("Mul", power, g.floats(np.sqrt(a * multiplicity))))
    return found


def down(g: Graph, u: str, drawn: Any, n_in: int, n_out: int) -> str:
    """A drawn down-projection of rows of n_in columns."""
    if isinstance(drawn, Matrix):
        return g.add("Mul", g.add("MatMul", u, g.floats(drawn.matrix)), float(drawn.scale))
    if isinstance(drawn, SparseSigns):
        out = g.repeated(np.zeros(n_out), u)
        for bucket, sign in zip(drawn.buckets, drawn.signs, strict=True):
            out = scatter(g, out, g.add("Mul", u, g.floats(sign)), bucket)
        return g.add("Mul", out, len(drawn.signs) ** -0.5)
    signed = g.add("Mul", u, g.floats(drawn.signs))
    if isinstance(drawn, Fold):
        n_layers = -(-n_in // n_out)
        padded = g.padded(signed, n_in, n_layers * n_out)
        return g.total(g.reshape(padded, 0, n_layers, n_out), axis=1)
    assert isinstance(drawn, SubsampledHadamard)
    size = 1 << (n_in - 1).bit_length()
    rotated = g.hadamard(g.padded(signed, n_in, size), 1, size)
    taken = g.gather(g.reshape(rotated, 0, size), drawn.rows, axis=1)
    return g.add("Mul", taken, len(drawn.rows) ** -0.5)


def scatter(g: Graph, out: str, values: str, bucket: np.ndarray) -> str:
    """Add each column of `values` to the column of `out` that `bucket` says."""
    return g.add(
        "ScatterElements", out, g.repeated(bucket, values), values, axis=1, reduction="add"
    )


def frequencies(g: Graph, x: str, drawn: Frequencies, n_in: int) -> str:
    """<x, w> for all frequencies w."""
    if isinstance(drawn, MatrixFrequencies):
        return g.add("MatMul", x, g.floats(drawn.matrix.T))
    if isinstance(drawn, StructuredFrequencies):
        n_groups, (n_blocks, size) = len(drawn.rotations), drawn.signs.shape
        v = _spread(g, x, drawn.rotations[:, 0], n_in)
        v = g.reshape(g.add("Mul", v, g.floats(drawn.rotations[:, 1])), 0, n_groups * size)
        order = drawn.permutations + size * np.arange(n_groups)[:, None]
        v = g.hadamard(g.gather(v, order, axis=1), n_groups, size)
        group = np.arange(n_blocks) // -(-n_blocks // n_groups)
        v = g.gather(v, group, axis=1)
        v = g.hadamard(g.add("Mul", v, g.floats(drawn.signs)), n_blocks, size)
        used = np.arange(n_blocks * size)
    else:
        n_blocks, size = drawn.diagonals.shape
        v = g.gather(_spread(g, x, drawn.signs[None], n_in), drawn.permutation, axis=2)
        v = g.hadamard(g.add("Mul", v, g.floats(drawn.diagonals)), n_blocks, size)
        used = np.arange(n_blocks * size).reshape(n_blocks, size)[:, : drawn.used].ravel()
    used = used[: len(drawn.scale)]
    taken = g.gather(g.reshape(v, 0, n_blocks * size), used, axis=1)
    return g.add("Mul", taken, g.floats(drawn.scale))


def _spread(g: Graph, x: str, signs: np.ndarray, n_in: int) -> str:
    """H D x for every row of signs D."""
    copies, size = signs.shape
    start = g.reshape(g.padded(x, n_in, size), 0, 1, size)
    return g.hadamard(g.add("Mul", start, g.floats(signs)), copies, size)
