"""The parts of maps as ONNX: products of projections, down-projections, frequencies."""

from typing import Any

import numpy as np

from craftmaps.deploy.graph import Graph
from craftmaps.maps.down import Fold, Matrix, SparseSigns, SubsampledHadamard
from craftmaps.maps.exact_terms import ExactTerms
from craftmaps.maps.frequencies import MatrixFrequencies, RotatedFrequencies
from craftmaps.maps.hadamard_products import HadamardProducts
from craftmaps.maps.matrix_products import MatrixProducts
from craftmaps.maps.pooled_products import PooledProducts

Products = HadamardProducts | PooledProducts | MatrixProducts


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
    column = np.concatenate(columns) - first
    where, scale = _layers(column, np.concatenate(scales), n_out)
    placed = g.gather(g.concat(values, axis=0), where, axis=0)
    placed = g.add("Mul", placed, g.floats(scale[:, None]))
    if len(where) > n_out:
        placed = g.total(g.reshape(placed, len(where) // n_out, n_out, -1), axis=0)
    return g.transpose(placed)


def _of_rotations(
    g: Graph, x: str, drawn: HadamardProducts | PooledProducts, n_in: int
) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    columns, signs = drawn.sources(n_in)
    copies, size = columns.shape
    moved = g.add("Mul", g.gather(x, columns, axis=1), g.floats(signs))
    rotated = g.hadamard(moved, copies, size)
    u = g.transpose(g.reshape(rotated, 0, copies * size))
    values, targets, scales = [], [], []
    for part in drawn.plain():
        real = [g.gather(u, index, axis=0) for index in part.factors]
        if part.imaginary is None:
            values.append(g.product(real))
        else:
            imaginary = [g.gather(u, index + size, axis=0) for index in part.factors]
            values += complex_product(g, real, imaginary)
        for column in (part.column, part.imaginary):
            if column is not None:
                targets.append(column)
                scales.append(part.scale)
    return values, targets, scales


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

    A feature whose column is taken goes to the next layer. A place of no feature has scale 0.
    """
    order = np.argsort(column, kind="stable")
    first = np.searchsorted(column[order], np.arange(width))
    layer = np.empty(len(column), dtype=np.int64)
    layer[order] = np.arange(len(column)) - first[column[order]]
    where = np.zeros((int(layer.max()) + 1) * width, dtype=np.int64)
    scales = np.zeros(len(where))
    where[layer * width + column] = np.arange(len(column))
    scales[layer * width + column] = scale
    return where, scales


def exact_terms(g: Graph, x: str, exact: ExactTerms) -> list[str]:
    """The columns of an h01 map that need no randomness."""
    found = []
    if exact.n_constant:
        value = np.sqrt(exact.a0 / exact.n_constant)
        found.append(g.repeated(np.full(exact.n_constant, value), x))
    if exact.n_linear:
        found.append(g.add("Mul", x, float(np.sqrt(exact.a1))))
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


def frequencies(g: Graph, x: str, drawn: MatrixFrequencies | RotatedFrequencies, n_in: int) -> str:
    """<x, w> for all frequencies w."""
    if isinstance(drawn, MatrixFrequencies):
        return g.add("MatMul", x, g.floats(drawn.matrix.T))
    n_blocks, n_passes, size = drawn.diagonals.shape
    start = g.reshape(g.padded(x, n_in, size), 0, 1, size)
    v = g.hadamard(g.add("Mul", start, g.floats(drawn.diagonals[:, 0])), n_blocks, size)
    v = g.reshape(g.add("Mul", v, g.floats(drawn.diagonals[:, 1])), 0, n_blocks * size)
    order = drawn.permutations + size * np.arange(n_blocks)[:, None]
    v = g.hadamard(g.gather(v, order, axis=1), n_blocks, size)
    for k in range(2, n_passes):
        v = g.hadamard(g.add("Mul", v, g.floats(drawn.diagonals[:, k])), n_blocks, size)
    used = np.arange(n_blocks * size).reshape(n_blocks, size)[:, : drawn.used].ravel()
    used = used[: len(drawn.scale)]
    taken = g.gather(g.reshape(v, 0, n_blocks * size), used, axis=1)
    return g.add("Mul", taken, g.floats(drawn.scale))
