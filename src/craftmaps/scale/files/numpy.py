"""Rows of NumPy's .npy and .npz files. Pickled objects are refused."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from craftmaps.scale.files.pieces import BadRows, Piece
from craftmaps.validation import is_integer

_NOTHING = np.empty(0, np.int64)


class NpyFiles:
    """Files of one matrix each, mapped into memory a piece at a time.

    `targets` are None, or the paths of as many files of targets; `target` is None, an index of a
    column or a list of them.
    """

    names: list[str] | None = None

    def __init__(
        self,
        paths: list[str],
        targets: list[str] | None,
        target: Any,
        columns: Sequence[int] | None,
        dtype: np.dtype | None,
        skip: bool,
        piece_rows: int,
    ) -> None:
        if targets is not None and len(targets) != len(paths):
            raise ValueError(f"there are {len(paths)} files of rows and {len(targets)} of targets.")
        self.paths = paths if targets is None else [*paths, *targets]
        self.n_files = len(paths)
        self._selection = Selection(_mapped(paths[0]), paths[0], target, columns, dtype)
        name = target if targets is None else "y"
        self._bad_rows = BadRows(skip, "row", self._selection.columns, name)
        self._piece_rows = piece_rows

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Pieces of a file, from a row on."""
        path = self.paths[file]
        beside = self.paths[self.n_files + file] if len(self.paths) > self.n_files else None
        size = len(_mapped(path))
        if beside:
            _check_target(_mapped(beside), beside)
        if beside and len(_mapped(beside)) != size:
            raise ValueError(
                f"{path} has {size} rows, and {beside} has {len(_mapped(beside))} targets."
            )
        for start in range(row, size, self._piece_rows):
            rows = np.arange(start, min(size, start + self._piece_rows))
            some = slice(start, start + len(rows))
            # mapped anew for each piece, so that pages of earlier ones do not count as ours
            X, y = self._selection.split(_mapped(path)[some], path)
            y = np.array(_mapped(beside)[some]) if beside else y
            yield self._bad_rows.leave_out(Piece(X, y, rows, _NOTHING), path)


class NpzFiles:
    """Archives of a matrix and, perhaps, an array of targets, read as streams.

    `target` is None, the name of an array, an index of a column or a list of indices.
    """

    names: list[str] | None = None

    def __init__(
        self,
        paths: list[str],
        target: Any,
        columns: Sequence[int] | None,
        dtype: np.dtype | None,
        skip: bool,
        piece_rows: int,
    ) -> None:
        self.paths = paths
        self.n_files = len(paths)
        self._array = target if isinstance(target, str) else None
        with self._opened(paths[0]) as streams:
            first = streams[0]
        inside = None if self._array else target
        self._selection = Selection(first, paths[0], inside, columns, dtype)
        self._bad_rows = BadRows(skip, "row", self._selection.columns, target)
        self._piece_rows = piece_rows

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Pieces of a file, from a row on."""
        path = self.paths[file]
        with self._opened(path) as streams:
            size = streams[0].shape[0]
            if streams[-1].shape[:1] != (size,):
                shape = streams[-1].shape
                raise ValueError(f"{path} has {size} rows, and targets of shape {shape}.")
            for stream in streams:
                stream.skip(row)
            for start in range(row, size, self._piece_rows):
                rows = np.arange(start, min(size, start + self._piece_rows))
                arrays = [stream.read(len(rows)) for stream in streams]
                X, y = self._selection.split(arrays[0], path)
                y = y if self._array is None else arrays[1]
                yield self._bad_rows.leave_out(Piece(X, y, rows, _NOTHING), path)

    @contextmanager
    def _opened(self, path: str) -> Iterator[list["_ArrayStream"]]:
        """The matrix and the targets, if these are an array of their own."""
        try:
            with ExitStack() as stack:
                archive = stack.enter_context(zipfile.ZipFile(path))
                names = self._members(archive, path)
                files = [stack.enter_context(archive.open(name + ".npy")) for name in names]
                streams = [_ArrayStream(*pair, path) for pair in zip(files, names, strict=True)]
                if self._array:
                    _check_target(streams[-1], f"array {self._array!r} of {path}")
                yield streams
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error

    def _members(self, archive: zipfile.ZipFile, path: str) -> list[str]:
        """The names of the matrix and of the targets, if these are an array of their own."""
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        others = [name for name in names if name != self._array]
        if self._array and self._array not in names:
            raise ValueError(f"{path} has no array {self._array!r}; it has {', '.join(names)}.")
        if "X" not in others and len(others) != 1:
            raise ValueError(f"{path} has no array 'X' of rows, but {', '.join(names)}.")
        rows = "X" if "X" in others else others[0]
        return [rows] if self._array is None else [rows, self._array]


class Selection:
    """Which columns of a matrix are X and which are y.

    Parameters
    ----------
    matrix : anything with shape and dtype
    path : where it is from
    target, columns, dtype
        As in `read`.
    """

    def __init__(
        self,
        matrix: Any,
        path: str,
        target: Any,
        columns: Sequence[int] | None,
        dtype: np.dtype | None,
    ) -> None:
        if len(matrix.shape) != 2:
            raise ValueError(f"{path} must hold a matrix, a row per row, got shape {matrix.shape}.")
        if matrix.dtype.kind not in "fiub":
            raise ValueError(f"{path} holds {matrix.dtype}, and not numbers.")
        self._width = matrix.shape[1]
        listed = target if isinstance(target, list | tuple) else [] if target is None else [target]
        targets = [self._index(t, path, "target") for t in listed]
        self._target: Any = None if target is None else targets
        if len(targets) == 1 and not isinstance(target, list | tuple):
            self._target = targets[0]
        rest = (j for j in range(self._width) if j not in targets) if columns is None else columns
        self.columns = [self._index(j, path, "columns") for j in rest]
        for j in targets:
            if j in self.columns:
                raise ValueError(f"column {j} is the target and cannot be among columns.")
        self._all = self.columns == list(range(self._width))
        self._dtype = float_type([matrix.dtype]) if dtype is None else dtype

    def split(self, block: np.ndarray, path: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Copies of X and y out of some rows."""
        if block.ndim != 2 or block.shape[1] != self._width:
            raise ValueError(
                f"{path} has rows of shape {block.shape[1:]}, and the first file {self._width} "
                f"columns."
            )
        y = None if self._target is None else np.array(block[:, self._target])
        X = block if self._all else block[:, self.columns]
        return np.array(X, dtype=self._dtype, order="C"), y

    def _index(self, column: Any, path: str, name: str) -> int:
        if not is_integer(column) or not -self._width <= column < self._width:
            raise ValueError(
                f"{name} must be indices of the {self._width} columns of {path}, got {column!r}."
            )
        return int(column) % int(self._width)


def float_type(kinds: Sequence[np.dtype]) -> np.dtype:
    """The least of float32 and float64 that holds numbers of all these types."""
    return np.result_type(np.float32, *kinds) if kinds else np.dtype(np.float64)


def _check_target(array: Any, place: str) -> None:
    if array.dtype.kind not in "fiubU":
        raise ValueError(f"{place} holds {array.dtype}, and targets are numbers or text.")


class _ArrayStream:
    """Some rows after the other of an array in an archive."""

    def __init__(self, file: IO[bytes], name: str, path: str) -> None:
        self._path = path
        self._file = file
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0
        if version != (1, 0):
            read = npy_format.read_array_header_2_0
        self.shape, columns_first, self.dtype = read(file)
        if self.dtype.hasobject:
            raise ValueError(f"array {name!r} of {path} holds pickled objects, which are not read.")
        if columns_first and len(self.shape) > 1:
            raise ValueError(
                f"array {name!r} of {path} is stored by columns and cannot be read row by row; "
                f"save numpy.ascontiguousarray of it, or an .npy file."
            )
        self._row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:]))

    def skip(self, rows: int) -> None:
        self._file.seek(rows * self._row_bytes, 1)

    def read(self, rows: int) -> np.ndarray:
        data = self._file.read(rows * self._row_bytes)
        if len(data) != rows * self._row_bytes:
            raise ValueError(f"{self._path} ends in the middle of an array.")
        return np.frombuffer(data, self.dtype).reshape(rows, *self.shape[1:])


def _mapped(path: str) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{path} is not a whole .npy file of numbers or text: {error}") from error
    return np.asarray(array)
