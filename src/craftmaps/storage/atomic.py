"""Files that are written whole or not at all."""

import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], fill: Callable[[BinaryIO], object]) -> None:
    """Let `fill` write a file, which is then there as a whole or not at all.

    The new file is written in the same folder and renamed once all of it is on the disk. Until
    then, and also if the disk is full or the power fails, the old file stays unchanged. A file that
    is replaced keeps its mode. If the path is a symbolic link, the file that it leads to is
    written.
    """
    check_place(path)
    place = Path(os.path.realpath(path))
    unfinished = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
    try:
        with unfinished.open("xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        if place.exists():
            unfinished.chmod(stat.S_IMODE(place.stat().st_mode))
        unfinished.replace(place)
    except OSError as error:
        raise OSError(error.errno, f"{path} was not written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
    _sync_folder(place.parent)


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError if a path leads to a folder, a device or a pipe."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{path} is not a file that can be replaced; give the path of another file.")


def _sync_folder(folder: Path) -> None:
    """Wait until a renaming in a folder is on the disk, if the system can open folders."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
