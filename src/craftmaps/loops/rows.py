"""Rows in blocks: how work is cut, spread over threads and handed to compiled loops."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
from numba.core import config
from scipy import sparse
from threadpoolctl import ThreadpoolController

BLOCK_BYTES = 1 << 20  # what one thread keeps in flight: fits the second-level cache
LEAST_BYTES = 1 << 16  # less is not worth a thread of its own
_PRODUCT_ROWS = 1024


def for_each_block(
    task: Callable[[int, int], None], n_rows: int, row_bytes: int, max_rows: int = 512
) -> None:
    """Call `task(start, stop)` for consecutive blocks of rows, on all threads.

    The number of threads is NUMBA_NUM_THREADS, which joblib also sets in its workers. Plain
    threads are used instead of numba's, whose fallback layer aborts the process when two Python
    threads enter it and whose OpenMP layer does so after a fork.
    """
    threads: int = config.NUMBA_NUM_THREADS
    row_bytes = max(1, row_bytes)
    share = max(-(-n_rows // threads), LEAST_BYTES // row_bytes)
    rows = max(1, min(max_rows, BLOCK_BYTES // row_bytes, share))
    starts = range(0, n_rows, rows)

    def run(start: int) -> None:
        task(start, min(start + rows, n_rows))

    if threads == 1 or len(starts) == 1:
        for start in starts:
            run(start)
        return
    with ThreadPoolExecutor(min(threads, len(starts))) as pool:
        for _ in pool.map(run, starts):
            pass


def dense_block(X: Any, start: int, stop: int, dtype: Any) -> np.ndarray:
    """Rows start..stop of a dense or CSR matrix, C-ordered and writable as the loops want them."""
    block = X[start:stop]
    if sparse.issparse(block):
        block = block.toarray()
    return np.require(block, dtype, ["C", "W"])


class _OneBlasThread:
    """BLAS calls run on the thread that makes them while at least one caller is inside.

    Where many threads multiply small blocks, the threads of BLAS would only wait for each other.
    Callers are counted, since each of several threads would otherwise restore what another set.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()


def for_each_product_block(
    task: Callable[[int, int], None], n_rows: int, row_bytes: int, threads: bool = True
) -> None:
    """As `for_each_block`, for tasks that multiply matrices: blocks are larger, BLAS is serial.

    With `threads=False`, for tasks that are not made for it, BLAS has the threads.
    """
    if not threads:
        for start in range(0, n_rows, _PRODUCT_ROWS):
            task(start, min(start + _PRODUCT_ROWS, n_rows))
    elif n_rows <= _PRODUCT_ROWS and n_rows * row_bytes <= BLOCK_BYTES:
        task(0, n_rows)  # too little to share
    elif config.NUMBA_NUM_THREADS == 1:
        for_each_block(task, n_rows, row_bytes // 16, _PRODUCT_ROWS)
    else:
        with _one_blas_thread:
            for_each_block(task, n_rows, row_bytes // 16, _PRODUCT_ROWS)
