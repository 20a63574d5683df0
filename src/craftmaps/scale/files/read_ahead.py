"""Read the next blocks while the learner works on the current one."""

import threading
from collections.abc import Generator
from queue import SimpleQueue
from typing import Any

_END = object()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def read_ahead(items: Generator[Any, None, None], ahead: int = 2) -> Generator[Any, None, None]:
    """Run a generator in a thread that is up to `ahead` items ahead of the consumer.

    An error of the generator is raised in place of its item. The thread ends with the items, or
    when the consumer closes or drops the result.

    Examples
    --------
    >>> list(read_ahead(i * i for i in range(4)))
    [0, 1, 4, 9]
    """
    made: SimpleQueue[Any] = SimpleQueue()
    room = threading.Semaphore(ahead)
    stopped = threading.Event()

    def work() -> None:
        item: Any = None
        while item is not _END and not isinstance(item, _Failure):
            room.acquire()
            if stopped.is_set():
                break
            try:
                item = next(items, _END)
            except BaseException as error:  # raised again in the consumer's thread
                item = _Failure(error)
            made.put(item)
        items.close()

    thread = threading.Thread(target=work, name="craftmaps reader", daemon=True)
    thread.start()
    try:
        while (item := made.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            room.release()
            yield item
    finally:
        stopped.set()
        room.release()
        thread.join()
