"""Split rows into blocks and run compiled loops on them in several threads."""

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

BLOCK_BYTES = 1 << 20  # working set of one thread: fits the second-level cache
LEAST_BYTES = 1 << 16  # a smaller block is not worth a thread
_PRODUCT_ROWS = 1024
_allowed = local()  # thread limit of the current thread, set by `at_most_threads`


def for_each_block(
    task: Callable[[int, int], None], n_rows: int, row_bytes: int, max_rows: int = 512
) -> None:
    """Call `task(start, stop)` for consecutive blocks of rows, on all threads.

    The calling thread works too. The number of threads is NUMBA_NUM_THREADS, which joblib also
    sets in its workers, unless `at_most_threads` lowers it. Numba's own threads are not used: its
    fallback layer aborts the process when two Python threads enter it, and its OpenMP layer
    aborts after a fork.
    """
    threads = n_threads()
    row_bytes = max(1, row_bytes)
    share = max(-(-n_rows // threads), LEAST_BYTES // row_bytes)
    rows = max(1, min(max_rows, BLOCK_BYTES // row_bytes, share))
    if n_rows > threads * rows:  # equally many blocks per thread, so that no thread waits
        rounds = -(-n_rows // (threads * rows))
        rows = -(-n_rows // (threads * rounds))
    starts = iter(range(0, n_rows, rows))
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for start in starts:  # shared by the threads: `next` of a range iterator is atomic
                if failed:
                    return
                task(start, min(start + rows, n_rows))
        except BaseException as error:
            failed.append(error)

    helpers = [_pool().submit(work) for _ in range(min(threads, -(-n_rows // rows)) - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # a helper that has not started is not needed any more
            helper.result()
    if failed:
        raise failed[0]


@cache
def _pool() -> ThreadPoolExecutor:
    """Keep threads waiting: starting one takes as long as mapping a hundred rows."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="craftmaps")


def renew_after_fork(owner: Any) -> None:
    """Call `owner.after_fork()` in every child process created by a fork.

    A forked child has only the forking thread. A lock held by another thread would stay locked
    forever, and an object that another thread was changing would stay half changed.
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
    """Return rows start..stop of a dense or CSR matrix as a C-ordered, writable array."""
    block = X[start:stop]
    if sparse.issparse(block):
        block = block.toarray()
    return np.require(block, dtype, ["C", "W"])


class _BlasThreads:
    """Limit the BLAS threads of the process while at least one caller asks for it.

    With threadpoolctl, the thread that sets a limit must also lift it. So a separate thread holds
    the smallest limit that any current caller asked for.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._asked: list[int] = []
        self._controller: Any = None
        self._holder: tuple[Thread, Event] | None = None
        self._limits: Any = None  # set by the holder, which can lift it
        self._left_limits: Any = None  # set by a holder thread that did not survive a fork
        if hasattr(os, "register_at_fork"):  # a fork waits until no change is in progress
            os.register_at_fork(
                before=lambda: self._lock.acquire(),
                after_in_parent=lambda: self._lock.release(),
                after_in_child=self._after_fork,
            )

    def _after_fork(self) -> None:
        """Forget the current callers, which are threads of the parent process."""
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
def serial_blas() -> Iterator[None]:
    """Limit BLAS to one thread, but not the loops of this package.

    A thread of BLAS waits actively for some milliseconds after each call. Where thin products and
    loops of this package alternate, it takes the processor from the threads of the loops.
    """
    with _blas.at_most(1):
        yield


@contextmanager
def at_most_threads(threads: int) -> Iterator[None]:
    """Limit the threads of loops started by this thread, and of BLAS in the whole process."""
    before = getattr(_allowed, "threads", None)
    _allowed.threads = threads
    try:
        with _blas.at_most(threads):
            yield
    finally:
        _allowed.threads = before


def on_threads(
    task: Callable[[Any], Any], items: Sequence[Any], at_once: int | None = None
) -> list[Any]:
    """Return the results of `task` for all items, with one item at a time on each thread.

    Loops and BLAS calls inside a task are serial, which is faster for many small matrices. For
    large ones, `at_once` limits how many tasks hold memory at a time, and they share the threads.
    """
    threads = n_threads()
    workers = max(1, min(threads, len(items), at_once or threads))
    share = 1 if at_once is None else threads // workers

    def alone(item: Any) -> Any:
        with at_most_threads(share):
            return task(item)

    with at_most_threads(share):
        if workers == 1:
            return [task(item) for item in items]
        pool = ThreadPoolExecutor(workers)
        try:
            return list(pool.map(alone, items))
        finally:
            pool.shutdown(cancel_futures=True)


def n_threads() -> int:
    """Number of threads that loops of this thread may use."""
    threads: int = config.NUMBA_NUM_THREADS
    return min(threads, getattr(_allowed, "threads", None) or threads)


def for_each_product_block(
    task: Callable[[int, int], None], n_rows: int, row_bytes: int, threads: bool = True
) -> None:
    """Like `for_each_block`, with larger blocks and serial BLAS, for tasks that multiply matrices.

    With `threads=False`, for tasks that are not thread-safe, BLAS uses the threads instead.
    """
    if not threads:
        for start in range(0, n_rows, _PRODUCT_ROWS):
            task(start, min(start + _PRODUCT_ROWS, n_rows))
    elif n_rows <= _PRODUCT_ROWS and n_rows * row_bytes <= BLOCK_BYTES:
        task(0, n_rows)  # too little to share
    elif n_threads() == 1:
        for_each_block(task, n_rows, row_bytes // 16, _PRODUCT_ROWS)
    else:
        with serial_blas():  # BLAS threads would only wait for each other
            for_each_block(task, n_rows, row_bytes // 16, _PRODUCT_ROWS)
