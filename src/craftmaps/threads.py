"""Rows in blocks: how work is cut, spread over threads and handed to compiled loops."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Event, RLock, Thread, local
from typing import Any
from weakref import WeakSet

import numpy as np
from numba.core import config
from scipy import sparse
from threadpoolctl import ThreadpoolController

BLOCK_BYTES = 1 << 20  # what one thread keeps in flight: fits the second-level cache
LEAST_BYTES = 1 << 16  # less is not worth a thread of its own
_PRODUCT_ROWS = 1024
_allowed = local()  # threads that the caller of a loop may use, where it has been told


def for_each_block(
    task: Callable[[int, int], None], n_rows: int, row_bytes: int, max_rows: int = 512
) -> None:
    """Call `task(start, stop)` for consecutive blocks of rows, on all threads.

    The caller is one of the threads. Their number is NUMBA_NUM_THREADS, which joblib also sets in
    its workers, or what `at_most_threads` says. Plain threads are used instead of numba's, whose
    fallback layer aborts the process when two Python threads enter it and whose OpenMP layer does
    so after a fork.
    """
    threads = _threads()
    row_bytes = max(1, row_bytes)
    share = max(-(-n_rows // threads), LEAST_BYTES // row_bytes)
    rows = max(1, min(max_rows, BLOCK_BYTES // row_bytes, share))
    if n_rows > threads * rows:  # as many blocks for each thread, so that none waits for the others
        rounds = -(-n_rows // (threads * rows))
        rows = -(-n_rows // (threads * rounds))
    starts = iter(range(0, n_rows, rows))
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for start in starts:  # shared: `next` of a range is one step of the interpreter
                if failed:
                    return
                task(start, min(start + rows, n_rows))
        except BaseException as error:
            failed.append(error)

    helpers = [_pool().submit(work) for _ in range(min(threads, -(-n_rows // rows)) - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # one that has not begun has nothing left to do
            helper.result()
    if failed:
        raise failed[0]


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that wait for work: to start one takes as long as the features of a hundred rows."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="craftmaps")


def renew_after_fork(owner: Any) -> None:
    """Call the method `after_fork` of this object in every child that the process forks.

    A child has none of the other threads of its parent. A lock that one of them held would stay
    locked for ever, and what one of them was changing would stay half changed.
    """
    _renewed.add(owner)


def _renew() -> None:
    _pool.cache_clear()
    for owner in list(_renewed):
        owner.after_fork()


_renewed: WeakSet[Any] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def dense_block(X: Any, start: int, stop: int, dtype: Any) -> np.ndarray:
    """Rows start..stop of a dense or CSR matrix, C-ordered and writable as the loops want them."""
    block = X[start:stop]
    if sparse.issparse(block):
        block = block.toarray()
    return np.require(block, dtype, ["C", "W"])


class _BlasThreads:
    """BLAS calls of the process run on few threads while at least one caller is inside.

    threadpoolctl lets one thread at a time set the limits, which that thread must also lift. So a
    thread of its own holds the least that any caller inside asked for.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._asked: list[int] = []
        self._controller: Any = None
        self._holder: tuple[Thread, Event] | None = None
        self._limits: Any = None  # what the holder set, and can be lifted
        self._left_limits: Any = None  # by a holder that a fork left behind
        if hasattr(os, "register_at_fork"):  # a fork waits until no change is halfway
            os.register_at_fork(
                before=lambda: self._lock.acquire(),
                after_in_parent=lambda: self._lock.release(),
                after_in_child=self._after_fork,
            )

    def _after_fork(self) -> None:
        """Forget the callers inside, which are threads of the parent."""
        self._lock = RLock()
        self._left_limits = self._limits if self._holder else self._left_limits
        self._asked, self._holder, self._limits = [], None, None

    @contextmanager
    def at_most(self, threads: int) -> Iterator[None]:
        self._change(self._asked.append, threads)
        try:
            yield
        finally:
            self._change(self._asked.remove, threads)

    def _change(self, change: Callable[[int], None], threads: int) -> None:
        with self._lock:
            if self._left_limits is not None:
                with self._left_limits:
                    self._left_limits = None  # lifted at the end of this block
            before = min(self._asked, default=None)
            change(threads)
            after = min(self._asked, default=None)
            if after == before:
                return
            if self._holder:
                thread, release = self._holder
                release.set()
                thread.join()
            self._holder = None if after is None else self._hold(after)

    def _hold(self, threads: int) -> tuple[Thread, Event]:
        self._controller = self._controller or ThreadpoolController()
        held, release = Event(), Event()

        def hold() -> None:
            with self._controller.limit(limits=threads, user_api="blas") as self._limits:
                held.set()
                release.wait()

        thread = Thread(target=hold, daemon=True)
        thread.start()
        held.wait()
        return thread, release


_blas = _BlasThreads()


@contextmanager
def at_most_threads(threads: int) -> Iterator[None]:
    """Loops that this thread starts, and BLAS in the whole process, keep to so many threads."""
    before = getattr(_allowed, "threads", None)
    _allowed.threads = threads
    try:
        with _blas.at_most(threads):
            yield
    finally:
        _allowed.threads = before


def on_threads(task: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The results of `task` for all items, one item at a time on each thread.

    Loops and BLAS calls inside of a task are serial: many small matrices are faster that way.
    """

    def alone(item: Any) -> Any:
        with at_most_threads(1):
            return task(item)

    with at_most_threads(1):
        pool = ThreadPoolExecutor(max(1, min(config.NUMBA_NUM_THREADS, len(items))))
        try:
            return list(pool.map(alone, items))
        finally:
            pool.shutdown(cancel_futures=True)


def _threads() -> int:
    threads: int = config.NUMBA_NUM_THREADS
    return min(threads, getattr(_allowed, "threads", None) or threads)


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
    elif _threads() == 1:
        for_each_block(task, n_rows, row_bytes // 16, _PRODUCT_ROWS)
    else:
        with _blas.at_most(1):  # its threads would only wait for each other
            for_each_block(task, n_rows, row_bytes // 16, _PRODUCT_ROWS)
