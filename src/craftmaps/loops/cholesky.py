"""Cholesky factors and their inverses by LAPACK, without the interpreter lock.

The functions of `scipy.linalg.lapack` hold the interpreter lock, so that threads with a matrix each
would wait for each other. These call the same routines at the addresses that SciPy gives to Cython
(and to Numba), through ctypes, which releases the lock.

Matrices are C-ordered, of float64 or float32, and changed in place. Only their upper triangles are
read or written: A = U^T U.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

_LEAF = 64  # size of triangles that are inverted without matrix products
_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_INTEGER = ctypes.POINTER(ctypes.c_int)
# c for a letter, i for a pointer to an integer, a for the address of an array
_TYPES: dict[str, Any] = {"c": ctypes.c_char_p, "i": _INTEGER, "a": ctypes.c_void_p}


@cache
def _routine(dtype: np.dtype, name: str, types: str) -> Callable[..., None]:
    module = "blas" if name == "trmm" else "lapack"
    address = get_cython_function_address(f"scipy.linalg.cython_{module}", _LETTERS[dtype] + name)
    routine: Any = ctypes.CFUNCTYPE(None, *[_TYPES[letter] for letter in types])
    return routine(address)  # type: ignore[no-any-return]


def _integer(value: int) -> ctypes.c_int:
    return ctypes.c_int(value)


def factor(A: np.ndarray) -> bool:
    """Write U over the upper triangle of A. Return whether A is positive definite."""
    _check(A)
    n, failed = _integer(len(A)), _integer(0)
    _routine(A.dtype, "potrf", "ciaii")(b"L", n, A.ctypes.data, n, failed)  # Fortran sees A^T
    return not failed.value


def solve(U: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (U^T U)^-1 times the columns of `right`."""
    _check(U)
    solved = np.array(right, U.dtype, order="F", ndmin=2)
    n, failed = _integer(len(U)), _integer(0)
    columns = _integer(solved.shape[1])
    routine = _routine(U.dtype, "potrs", "ciiaiaii")
    routine(b"L", n, columns, U.ctypes.data, n, solved.ctypes.data, n, failed)
    return solved


def invert(U: np.ndarray) -> None:
    """Replace U by its inverse.

    The halves of a triangle are inverted first: with U = [P Q; 0 R] the inverse has the corner
    -P^-1 Q R^-1. Products of triangles are twice as fast as LAPACK's routine for the whole.
    """
    _check(U)
    triangle = _routine(U.dtype, "trtri", "cciaii")
    product = _routine(U.dtype, "trmm", "cccciiaaiai")
    n, failed = _integer(len(U)), _integer(0)
    signs = np.array([1, -1], U.dtype)
    first, one, minus_one = U.ctypes.data, signs.ctypes.data, signs[1:].ctypes.data

    def at(row: int, column: int) -> int:
        return first + U.itemsize * (row * len(U) + column)

    def inverted(start: int, stop: int) -> None:
        if stop - start <= _LEAF:
            triangle(b"L", b"N", _integer(stop - start), at(start, start), n, failed)
            return
        middle = (start + stop) // 2
        inverted(start, middle)
        inverted(middle, stop)
        # Fortran sees the transpose of the corner, and triangles below the diagonal
        shape = _integer(stop - middle), _integer(middle - start)
        corner = at(start, middle)
        for side, place, sign in ((b"L", middle, minus_one), (b"R", start, one)):
            product(side, b"L", b"N", b"N", *shape, sign, at(place, place), n, corner, n)

    inverted(0, len(U))


def _check(matrix: np.ndarray) -> None:
    """Raise ValueError for arrays in which the routines would write to wrong places."""
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not (square and matrix.flags.c_contiguous and matrix.flags.writeable):
        raise ValueError("a matrix that is changed in place must be square and C-ordered.")
    if matrix.dtype not in _LETTERS:
        raise ValueError(f"a matrix must be of float32 or float64, got {matrix.dtype}.")
