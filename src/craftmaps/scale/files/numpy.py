"""Rows of NumPy's .npy and .npz files. Pickled objects are refused."""

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from craftmaps.scale.files.columns import Layout, choose
from craftmaps.scale.files.errors import FileError, refusing_damage
from craftmaps.scale.files.options import ReadOptions
from craftmaps.scale.files.pieces import BadRows, Piece


class _ArrayFiles(ABC):
    """Files of one matrix each; targets and weights are columns of it or separate arrays."""

    names: list[str] | None = None
    schema: Any = None

    def __init__(self, paths: list[str], options: ReadOptions, beside: tuple[bool, bool]) -> None:
        self.paths = paths
        self.n_files = len(paths)
        self._block_rows = options.block_rows
        self._target_beside, self._weight_beside = beside
        inside = replace(
            options,
            target=None if self._target_beside else options.target,
            weight=None if self._weight_beside else options.weight,
        )
        self._one_target = len(options.targets) == 1 and not options.several
        with self._opened(0) as arrays:
            first = arrays[0]
        if len(first.shape) != 2:
            raise FileError(paths[0], f"it must hold a matrix, got shape {first.shape}")
        if first.dtype.kind not in "fiub":
            raise FileError(paths[0], f"it holds {first.dtype}, not numbers")
        self._layout: Layout = choose(range(first.shape[1]), inside, paths[0])
        self._dtype = float_type([first.dtype]) if options.dtype is None else options.dtype
        named = replace(options, target="y" if self._target_beside else options.target)
        self._bad_rows = BadRows(named, "row", self._layout.features)

    @property
    def n_rows(self) -> int:
        """Number of rows, from the headers of the files."""
        total = 0
        for file in range(self.n_files):
            with self._opened(file) as arrays:
                total += int(arrays[0].shape[0])
        return total

    @abstractmethod
    def _opened(self, file: int) -> AbstractContextManager[list[Any]]:
        """Open the matrix and the separate arrays of targets and weights."""

    def _piece(self, path: str, start: int, arrays: Sequence[Any]) -> Piece:
        """Return a copy of the rows of some arrays."""
        block, *others = arrays
        width = len(self._layout.names)
        if block.ndim != 2 or block.shape[1] != width:
            reason = f"it has rows of shape {block.shape[1:]}, and the first file {width} columns"
            raise FileError(path, reason)
        features, targets, weights = (
            self._layout.features,
            self._layout.targets,
            self._layout.weights,
        )
        X = np.array(
            block if len(features) == width else block[:, features], self._dtype, order="C"
        )
        y = np.array(block[:, targets[0] if self._one_target else targets]) if targets else None
        weight = np.array(block[:, weights[0]], float) if weights else None
        if self._target_beside:
            y = np.array(others[0])
        if self._weight_beside:
            weight = np.array(others[-1], float)
        rows = np.arange(start, start + len(X))
        return self._bad_rows.leave_out(Piece(X, y, rows, weight), path)

    def _check_beside(self, path: str, arrays: Sequence[Any], places: Sequence[str]) -> None:
        """Raise an error unless the separate arrays have as many rows, and valid types."""
        size = arrays[0].shape[0]
        for number, (array, place) in enumerate(zip(arrays[1:], places, strict=True)):
            what, kinds = "targets", "fiubU"
            if self._weight_beside and number == len(places) - 1:
                what, kinds = "weights", "fiub"
            if array.dtype.kind not in kinds:
                needed = "numbers or text" if what == "targets" else "numbers"
                raise FileError(place, f"it holds {array.dtype}, and {what} are {needed}")
            if array.shape[:1] != (size,):
                reason = f"it has {size} rows, and {place} has {what} of shape {array.shape}"
                raise FileError(path, reason)


class NpyFiles(_ArrayFiles):
    """Files of one matrix each, mapped into memory a piece at a time.

    `targets` and `weights` are None, or the paths of as many files.
    """

    def __init__(
        self,
        paths: list[str],
        options: ReadOptions,
        targets: list[str] | None,
        weights: list[str] | None,
    ) -> None:
        self._beside = [files for files in (targets, weights) if files is not None]
        for what, files in (("targets", targets), ("weights", weights)):
            if files is not None and len(files) != len(paths):
                reason = f"there are {len(paths)} files of rows and {len(files)} of {what}"
                raise FileError(paths[0], reason)
        super().__init__(paths, options, (targets is not None, weights is not None))
        self.paths = [path for files in (paths, *self._beside) for path in files]

    @contextmanager
    def _opened(self, file: int) -> Iterator[list[np.ndarray]]:
        yield [_mapped(self.paths[file]), *(_mapped(files[file]) for files in self._beside)]

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Pieces of a file, from a row on."""
        path = self.paths[file]
        with self._opened(file) as arrays:
            self._check_beside(path, arrays, [files[file] for files in self._beside])
            size = len(arrays[0])
        del arrays
        for start in range(row, size, self._block_rows):
            # A new mapping for each piece, so that pages of earlier pieces do not count as memory.
            with self._opened(file) as arrays:
                yield self._piece(
                    path, start, [a[start : start + self._block_rows] for a in arrays]
                )


class NpzFiles(_ArrayFiles):
    """Archives of a matrix and optional arrays of targets and weights, read as streams."""

    def __init__(self, paths: list[str], options: ReadOptions) -> None:
        given = (options.target, options.weight)
        self._arrays = [name for name in given if isinstance(name, str)]
        named = (isinstance(options.target, str), isinstance(options.weight, str))
        super().__init__(paths, options, named)

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Pieces of a file, from a row on."""
        path = self.paths[file]
        with self._opened(file) as streams:
            size = streams[0].shape[0]
            for stream in streams:
                stream.skip(row)
            for start in range(row, size, self._block_rows):
                n_rows = min(size - start, self._block_rows)
                yield self._piece(path, start, [stream.read(n_rows) for stream in streams])

    @contextmanager
    def _opened(self, file: int) -> Iterator[list["_ArrayStream"]]:
        path = self.paths[file]
        with refusing_damage(path, "an .npz file"), ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = self._members(archive, path)
            files = [stack.enter_context(archive.open(name + ".npy")) for name in names]
            streams = [_ArrayStream(*pair, path) for pair in zip(files, names, strict=True)]
            places = [f"array {name!r} of {path}" for name in self._arrays]
            self._check_beside(path, streams, places)
            yield streams

    def _members(self, archive: zipfile.ZipFile, path: str) -> list[str]:
        """Return the names of the matrix and of the other arrays."""
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        for name in self._arrays:
            if name not in names:
                raise FileError(path, f"there is no array {name!r}; it has {', '.join(names)}")
        others = [name for name in names if name not in self._arrays]
        if "X" not in others and len(others) != 1:
            raise FileError(path, f"there is no array 'X' of rows, but {', '.join(names)}")
        return ["X" if "X" in others else others[0], *self._arrays]


def float_type(kinds: Sequence[np.dtype]) -> np.dtype:
    """Return float32 if it can represent numbers of all these types, otherwise float64."""
    return np.result_type(np.float32, *kinds) if kinds else np.dtype(np.float64)


class _ArrayStream:
    """A stream of the rows of an array in an archive."""

    def __init__(self, file: IO[bytes], name: str, path: str) -> None:
        self._path = path
        self._file = file
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0
        if version != (1, 0):
            read = npy_format.read_array_header_2_0
        self.shape, columns_first, self.dtype = read(file)
        place = f"array {name!r} of {path}"
        if self.dtype.hasobject:
            raise FileError(place, "it holds pickled objects, which are not read")
        if columns_first and len(self.shape) > 1:
            raise FileError(
                place,
                "it is stored by columns and cannot be read row by row; save "
                "numpy.ascontiguousarray of it, or an .npy file",
            )
        self._row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:]))

    def skip(self, rows: int) -> None:
        self._file.seek(rows * self._row_bytes, 1)

    def read(self, rows: int) -> np.ndarray:
        data = self._file.read(rows * self._row_bytes)
        if len(data) != rows * self._row_bytes:
            raise FileError(self._path, "the file ends in the middle of an array")
        return np.frombuffer(data, self.dtype).reshape(rows, *self.shape[1:])


def _mapped(path: str) -> np.ndarray:
    with refusing_damage(path, "an .npy file of numbers or text"):
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
