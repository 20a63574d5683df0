"""A folder that one process at a time works in."""

import contextlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any, Self

from craftmaps.threads import renew_after_fork

try:
    import fcntl
except ImportError:  # Windows, where the file says who is there but nothing is locked
    fcntl = None  # type: ignore[assignment]


class FolderLock:
    """Holds a folder until the end of a `with` block, or of the process.

    The file `in-use.json` names the process, its host and the time. The operating system forgets
    the lock of a process that ends in any way, so that the file of a process that was killed is
    taken over. Locks of other hosts on a shared disk may be unknown to it, so their file counts.

    Parameters
    ----------
    folder : path
        It exists.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "in-use.json"
        self._number: int | None = None  # of the open file

    def __enter__(self) -> Self:
        while self._number is None:
            number = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._take(number)
                with contextlib.suppress(FileNotFoundError):  # removed by the process before this
                    if os.path.samestat(os.fstat(number), os.stat(self._path)):
                        self._number = number
            finally:
                if self._number is None:
                    os.close(number)
        renew_after_fork(self)
        here = {"process": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        os.ftruncate(self._number, 0)
        os.pwrite(self._number, json.dumps(here).encode(), 0)
        return self

    def __exit__(self, *error: object) -> None:
        if self._number is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._number)
            self._number = None

    def after_fork(self) -> None:
        """Let go of the lock in a forked child, so that it ends with the parent."""
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def _take(self, number: int) -> None:
        """Lock an open file; raises OSError if another process has the folder."""
        there = _read(number)
        try:
            if fcntl is not None:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(
                f"{self._path.parent} is in use by {_told(there)}; wait until that ends, or give "
                f"another folder."
            ) from None
        except OSError:
            pass  # a disk without locks: the file still tells other hosts
        if there and there.get("host") != socket.gethostname():
            raise OSError(
                f"{self._path.parent} is in use by {_told(there)}, which cannot be checked from "
                f"{socket.gethostname()}; if that process has ended, remove {self._path}."
            )


def _read(number: int) -> dict[str, Any]:
    """What the file says; nothing if it was not written whole."""
    try:
        there = json.loads(os.pread(number, 1 << 16, 0))
    except ValueError:
        return {}
    return there if isinstance(there, dict) else {}


def _told(there: dict[str, Any]) -> str:
    """A process in words."""
    if not {"process", "host", "since"} <= there.keys():
        return "another process, which has just begun"
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(there["since"])))
    return f"process {there['process']} on {there['host']} (since {when})"
