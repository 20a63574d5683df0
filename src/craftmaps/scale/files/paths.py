"""Find the files of a path, a pattern or a folder, and their format."""

import glob
import os
from pathlib import Path
from typing import Any

from craftmaps.scale.files.errors import FileError
from craftmaps.scale.files.text import COMPRESSED

SUFFIXES = {
    "npy": (".npy",),
    "npz": (".npz",),
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv"),
    "svmlight": (".svmlight", ".libsvm", ".svm"),
}
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
FORMATS = tuple(SUFFIXES)
TABLES = ("parquet", "csv")  # formats whose columns may have different types


def format_of(path: Any) -> str:
    """Return the format of the files of a path, pattern, folder or list of them."""
    return common_format(expanded(path, known_only=True))


def expanded(path: Any, known_only: bool) -> list[str]:
    """Return the files of a path, pattern, folder or list of them."""
    if isinstance(path, list | tuple):
        return [file for one in path for file in expanded(one, known_only)]
    path = os.fspath(path)
    if os.path.isdir(path):
        inside = sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
        files = [file for file in inside if not _hidden(os.path.relpath(file, path))]
        files = [file for file in files if not known_only or _suffix_format(file)]
    else:
        files = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not files:
        raise FileNotFoundError(f"there is no file {path!r}, and none that matches it.")
    for file in files:
        if not os.path.isfile(file) and not os.path.isdir(file):
            reason = "it is not a regular file, and files are read more than once; write it to a"
            raise FileError(file, f"{reason} file first")
    return files


def _hidden(path: str) -> bool:
    """Whether a file is not data, such as files that engines write next to their data."""
    return any(part.startswith((".", "_")) for part in Path(path).parts)


def files_beside(target: Any) -> list[str] | None:
    """Return separate files of targets or weights for .npy files, or None for a column."""
    return expanded(target, known_only=False) if _is_path(target) else None


def _is_path(target: Any) -> bool:
    if isinstance(target, list | tuple):
        return bool(target) and all(map(_is_path, target))
    return isinstance(target, str | os.PathLike)


def _suffix_format(path: str) -> str | None:
    name = path.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return next((kind for kind, ends in SUFFIXES.items() if name.endswith(ends)), None)


def common_format(paths: list[str]) -> str:
    """Return the common format of all files, or raise an error."""
    kinds = {path: _suffix_format(path) for path in paths}
    for path, kind in kinds.items():
        if kind is None and path.lower().endswith(_SPREADSHEETS):
            raise FileError(path, "spreadsheets are not read, so save the sheet as a CSV file")
        if kind is None:
            raise FileError(path, "its suffix does not tell the format", "format")
        if kind != kinds[paths[0]]:
            raise FileError(
                path, f"its format differs from that of {paths[0]}; read them separately"
            )
    return str(kinds[paths[0]])
