"""Linear down-projections G: R^D -> R^E with E<Gu, Gv> = <u, v> (CRAFT s.3.3), and a learned one.

Each is drawn for given D and E. It then fills blocks of output from up-projected rows, which it may
overwrite.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh

from craftmaps.loops.hadamard import hadamard_rows
from craftmaps.loops.sketch import fold_rows, sketch_dense
from craftmaps.maps.parts.base import check_facts, is_within
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.storage.packing import storable
from craftmaps.threads import for_each_block

_MAX_CHUNK = 1 << 19  # entries of a matrix that are converted and multiplied at a time
_EXACT_COLUMNS = 1024  # columns of the sample that are converted to float64 at a time
_N_STACKS = 4  # number of count sketches in `SparseSigns`


@storable
@dataclass(frozen=True)
class Fold:
    """Signed fold z[l] = sum_b s[bE + l] u[bE + l], a count sketch with equally full buckets.

    It needs only D additions. If E divides D and the columns are exchangeable, its variance is
    (D - E) / (E (D - 1)) (|u|^2 |v|^2 + <u,v>^2 - 2 sum u_i^2 v_i^2), as for `SubsampledHadamard`.
    """

    signs: np.ndarray

    @classmethod
    def draw(cls, n_in: int, n_out: int, rng: np.random.Generator) -> "Fold":
        return cls(_signs(n_in, rng))

    def fill(self, U: np.ndarray, out: np.ndarray) -> None:
        signs = self.signs.astype(U.dtype)
        for_each_block(
            lambda start, stop: fold_rows(U[start:stop], signs, out[start:stop]), *_cost(U)
        )

    def check(self, n_in: int, n_out: int) -> None:
        check_facts(self, signs=self.signs.shape == (n_in,) and n_out > 0)

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        n_layers = -(-n_in // n_out)
        signed = g.add("Mul", x, g.floats(self.signs))
        padded = g.padded(signed, n_in, n_layers * n_out)
        return str(g.total(g.reshape(padded, 0, n_layers, n_out), axis=1))


@storable
@dataclass(frozen=True)
class SubsampledHadamard:
    """E entries of H S u / sqrt(E), drawn without replacement, with signs S and a padded H."""

    signs: np.ndarray
    rows: np.ndarray

    @classmethod
    def draw(cls, n_in: int, n_out: int, rng: np.random.Generator) -> "SubsampledHadamard":
        size = padded_length(n_in)
        return cls(_signs(n_in, rng), np.sort(rng.choice(size, n_out, replace=False)))

    def fill(self, U: np.ndarray, out: np.ndarray) -> None:
        size = padded_length(U.shape[1])
        factor = self.signs.astype(U.dtype) / np.sqrt(U.dtype.type(len(self.rows)))

        def task(start: int, stop: int) -> None:
            padded = np.zeros((stop - start, size), dtype=U.dtype)
            np.multiply(U[start:stop], factor, out=padded[:, : U.shape[1]])
            hadamard_rows(padded)
            np.take(padded, self.rows, axis=1, out=out[start:stop])

        for_each_block(task, *_cost(U))

    def check(self, n_in: int, n_out: int) -> None:
        check_facts(
            self,
            signs=self.signs.shape == (n_in,),
            rows=self.rows.shape == (n_out,) and is_within(self.rows, 0, padded_length(n_in) - 1),
        )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        size = padded_length(n_in)
        signed = g.add("Mul", x, g.floats(self.signs))
        rotated = g.hadamard(g.padded(signed, n_in, size), 1, size)
        taken = g.gather(g.reshape(rotated, 0, size), self.rows, axis=1)
        return str(g.add("Mul", taken, len(self.rows) ** -0.5))


@storable
@dataclass(frozen=True)
class SparseSigns:
    """Stacked count sketches: each u_j is added to one bucket of every sketch."""

    buckets: np.ndarray
    signs: np.ndarray

    @classmethod
    def draw(cls, n_in: int, n_out: int, rng: np.random.Generator) -> "SparseSigns":
        edges = np.linspace(0, n_out, min(_N_STACKS, n_out) + 1).astype(int)
        buckets = [rng.integers(a, b, n_in) for a, b in pairwise(edges)]
        return cls(np.array(buckets, dtype=np.int32), _signs((len(buckets), n_in), rng))

    def fill(self, U: np.ndarray, out: np.ndarray) -> None:
        signs = self.signs / np.sqrt(U.dtype.type(len(self.signs)))

        def task(start: int, stop: int) -> None:
            out[start:stop] = 0
            for bucket, sign in zip(self.buckets, signs, strict=True):
                sketch_dense(U[start:stop], bucket, sign.astype(U.dtype), out[start:stop])

        for_each_block(task, *_cost(U))

    def check(self, n_in: int, n_out: int) -> None:
        check_facts(
            self,
            signs=self.signs.ndim == 2 and self.signs.shape[1] == n_in,
            buckets=self.buckets.shape == self.signs.shape
            and is_within(self.buckets, 0, n_out - 1),
        )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        out = g.repeated(np.zeros(n_out), x)
        for bucket, sign in zip(self.buckets, self.signs, strict=True):
            out = g.scatter(out, g.add("Mul", x, g.floats(sign)), bucket)
        return str(g.add("Mul", out, len(self.signs) ** -0.5))


@storable
@dataclass(frozen=True)
class Matrix:
    """Projection z = G u with a stored D x E matrix, in the smallest type for its entries."""

    matrix: np.ndarray
    scale: float

    @classmethod
    def draw_gaussian(cls, n_in: int, n_out: int, rng: np.random.Generator) -> "Matrix":
        return cls(rng.standard_normal((n_in, n_out), dtype=np.float32), n_out**-0.5)

    @classmethod
    def draw_rademacher(cls, n_in: int, n_out: int, rng: np.random.Generator) -> "Matrix":
        return cls(_signs((n_in, n_out), rng), n_out**-0.5)

    @classmethod
    def learn(cls, U: np.ndarray, n_out: int) -> "Matrix":
        """Learn the leading subspace of the rows of U, without centering, from their Gram matrix.

        There are only a few rows per direction, so this costs no more than a randomized SVD with
        two power iterations, and it is exact. Double precision preserves the directions of nearly
        dependent rows, which are common if X has few columns.
        """
        n_rows, n_in = U.shape
        parts = [slice(start, start + _EXACT_COLUMNS) for start in range(0, n_in, _EXACT_COLUMNS)]
        gram = np.zeros((n_rows, n_rows), order="F")
        for part in parts:
            block = U[:, part].T.astype(np.float64)
            gram = blas.dsyrk(1.0, block.T, 1.0, gram, lower=1, overwrite_c=1)
        values, vectors = eigh(gram, overwrite_a=True, subset_by_index=[n_rows - n_out, n_rows - 1])
        seen = values > values[-1] * n_rows * np.finfo(np.float64).eps
        vectors = np.where(seen, vectors / np.sqrt(np.where(seen, values, 1.0)), 0.0)
        matrix = np.empty((n_in, n_out), dtype=np.float32)
        for part in parts:
            matrix[part] = U[:, part].T.astype(np.float64) @ vectors
        return cls(matrix, 1.0)

    def fill(self, U: np.ndarray, out: np.ndarray) -> None:
        if self.matrix.dtype == U.dtype:
            np.matmul(U, self.matrix, out=out)
        else:
            out[:] = 0
            step = max(1, _MAX_CHUNK // self.matrix.shape[1])
            for start in range(0, U.shape[1], step):
                out += U[:, start : start + step] @ self.matrix[start : start + step].astype(
                    U.dtype
                )
        out *= self.scale

    def check(self, n_in: int, n_out: int) -> None:
        check_facts(self, matrix=self.matrix.shape == (n_in, n_out))

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        return str(g.add("Mul", g.add("MatMul", x, g.floats(self.matrix)), float(self.scale)))


Down = Fold | SubsampledHadamard | SparseSigns | Matrix

DRAW: dict[str, Any] = {
    "fold": Fold.draw,
    "srht": SubsampledHadamard.draw,
    "gaussian": Matrix.draw_gaussian,
    "rademacher": Matrix.draw_rademacher,
    "sparse": SparseSigns.draw,
}


def _signs(shape: Any, rng: np.random.Generator) -> np.ndarray:
    drawn: np.ndarray = rng.integers(0, 2, shape, dtype=np.int8)
    return 1 - 2 * drawn


def _cost(U: np.ndarray) -> tuple[int, int]:
    return U.shape[0], U.strides[0]
