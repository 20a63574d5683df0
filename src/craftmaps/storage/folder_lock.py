"""A lock that lets one process at a time work in a folder."""

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
except ImportError:  # on Windows, the file names the process, but nothing is locked
    fcntl = None  # type: ignore[assignment]


class FolderLock:
    """Lock a folder until the end of a `with` block or of the process.

    The file `in-use.json` names the process, its host and the time. The operating system releases
    the lock of a process that ends in any way, so the file of a killed process does not block
    others. The system may not know locks of other hosts on a shared disk, so for other hosts the
    file itself counts as the lock.

    Parameters
    ----------
    folder : path
        An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "in-use.json"
        self._number: int | None = None  # descriptor of the open file

    def __enter__(self) -> Self:
        while self._number is None:
            number = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._take(number)
                with contextlib.suppress(FileNotFoundError):  # the last process removed it
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
        """Release the lock in a forked child, so that it ends with the parent."""
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def _take(self, number: int) -> None:
        """Lock an open file, or raise OSError if another process uses the folder."""
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
            pass  # the disk has no locks, but the file still informs other hosts
        if there and there.get("host") != socket.gethostname():
            raise OSError(
                f"{self._path.parent} is in use by {_told(there)}, which cannot be checked from "
                f"{socket.gethostname()}; if that process has ended, remove {self._path}."
            )


def _read(number: int) -> dict[str, Any]:
    """Return the contents of the file, or nothing if it was not written completely."""
    try:
        there = json.loads(os.pread(number, 1 << 16, 0))
    except ValueError:
        return {}
    return there if isinstance(there, dict) else {}


def _told(there: dict[str, Any]) -> str:
    """Describe a process."""
    if not {"process", "host", "since"} <= there.keys():
        return "another process, which has just begun"
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(there["since"])))
    return f"process {there['process']} on {there['host']} (since {when})"
