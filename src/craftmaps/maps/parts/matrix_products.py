"""Products of independent projections: Random Maclaurin as published, with explicit matrices."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.parts.columns import onnx_columns
from craftmaps.storage.packing import storable
from craftmaps.validation import is_integer

_MAX_CHUNK = 1 << 18  # entries of a matrix that are converted and multiplied at a time
_BLOCK_ROWS = 256


@storable
@dataclass(frozen=True)
class MatrixProducts:
    """Weights of shape (parts, n, D_n, d) for each degree n, with real and imaginary parts."""

    matrices: dict[int, np.ndarray]
    column: dict[int, int]
    scale: dict[int, float]

    @classmethod
    def draw(
        cls,
        counts: np.ndarray,
        weights: np.ndarray,
        first_column: int,
        n_columns_in: int,
        complex_to_real: bool,
        rng: np.random.Generator,
        *,
        gaussian: bool,
    ) -> "MatrixProducts":
        """Draw counts[n] features of each degree n >= 1, in columns from `first_column` on."""
        parts = 2 if complex_to_real else 1
        matrices, columns, scale = {}, {}, {}
        column = first_column
        for n in range(1, len(counts)):
            if counts[n] and weights[n]:
                shape = (n, int(counts[n]), n_columns_in)
                matrices[n] = (
                    _gaussian(shape, parts, rng) if gaussian else _signs(shape, parts, rng)
                )
                columns[n] = column
                scale[n] = float(np.sqrt(weights[n]))
            column += parts * int(counts[n])
        return cls(matrices, columns, scale)

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Write the features of the rows of X into `out`; columns without features become 0."""
        out[:] = 0
        for n, matrices in self.matrices.items():
            parts, _, count, _ = matrices.shape
            step = self._step(n)
            for first in range(0, count, step):
                chunk = matrices[:, :, first : first + step]
                for row in range(0, X.shape[0], _BLOCK_ROWS):
                    block = X[row : row + _BLOCK_ROWS]
                    product = _projected(block, chunk[:, 0].astype(out.dtype))
                    for k in range(1, n):
                        product *= _projected(block, chunk[:, k].astype(out.dtype))
                    product *= self.scale[n]
                    left = self.column[n] + parts * first
                    width = product.shape[1]
                    target = out[row : row + _BLOCK_ROWS]
                    target[:, left : left + width] = product.real
                    if parts == 2:
                        target[:, left + width : left + 2 * width] = product.imag

    def check(self, n_in: int, n_out: int) -> None:
        """Raise ValueError unless the matrices take such rows and fill such columns."""
        check_facts(self, matrices=self.matrices.keys() == self.column.keys() == self.scale.keys())
        for n, matrix in self.matrices.items():
            check_facts(
                self,
                matrices=matrix.ndim == 4
                and matrix.shape[0] in (1, 2)
                and matrix.shape[1::2] == (n, n_in),
                column=is_integer(self.column[n])
                and 0 <= self.column[n] <= n_out - matrix.shape[0] * matrix.shape[2],
            )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int, first: int = 0) -> str:
        """Add the columns from `first` on to an ONNX graph."""
        columns_of_x = g.transpose(x)
        made = []
        for n, matrices in self.matrices.items():
            parts = [
                [g.add("MatMul", g.floats(factor), columns_of_x) for factor in part]
                for part in matrices
            ]
            values = [g.product(parts[0])] if len(parts) == 1 else g.complex_product(*parts)
            scale = np.full(matrices.shape[2], self.scale[n])
            made += [
                (value, column, scale)
                for value, column in zip(values, self._columns(n), strict=True)
            ]
        return onnx_columns(g, x, made, first, n_out)

    def _columns(self, n: int) -> np.ndarray:
        """Return the columns of the features of degree n, of shape (parts, D_n)."""
        parts, _, count, _ = self.matrices[n].shape
        step = self._step(n)
        feature = np.arange(count)
        chunk = feature // step * step
        real = self.column[n] + parts * chunk + feature - chunk
        width = np.minimum(step, count - chunk)
        return np.asarray(real + np.arange(parts)[:, None] * width)

    def _step(self, n: int) -> int:
        """Return the number of features computed at a time; their parts are stored side by side."""
        return max(1, _MAX_CHUNK // max(int(self.matrices[n].shape[3]), _BLOCK_ROWS))


def _projected(block: Any, weights: np.ndarray) -> np.ndarray:
    real: np.ndarray = safe_sparse_dot(block, weights[0].T, dense_output=True)
    if len(weights) == 1:
        return real
    imaginary: np.ndarray = safe_sparse_dot(block, weights[1].T, dense_output=True)
    return real + 1j * imaginary


def _signs(shape: tuple[int, ...], parts: int, rng: np.random.Generator) -> np.ndarray:
    """Draw Rademacher signs, or with two parts uniformly from {1, i, -1, -i}."""
    drawn = rng.integers(0, 2 * parts, shape, dtype=np.int8)
    sign = 1 - 2 * (drawn % 2)
    return np.stack([np.where(drawn // 2 == part, sign, 0) for part in range(parts)])


def _gaussian(shape: tuple[int, ...], parts: int, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.standard_normal((parts, *shape), dtype=np.float32)
    drawn /= np.sqrt(np.float32(parts))
    return drawn
