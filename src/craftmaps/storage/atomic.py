"""Files that are written whole or not at all."""

import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], fill: Callable[[BinaryIO], object]) -> None:
    """Write a file whole or not at all, with what `fill` writes.

    The new file is written beside its place and renamed once all of it is on the disk. Until then,
    and also when the disk is full or the power fails, the file that was there before stays as it
    is. A file that is replaced keeps its mode. If the path is a symbolic link, the link stays and
    the file that it leads to is written.
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
    """Raise OSError if a path leads to what a file must not replace: a folder, a device, a pipe."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{path} is not a file that can be replaced; give the path of another file.")


def _sync_folder(folder: Path) -> None:
    """Wait until a renaming in a folder is on the disk, where folders can be opened."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
