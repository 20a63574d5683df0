"""Rows of svmlight (libsvm) files as CSR matrices.

A compiled loop parses the lines. sklearn.datasets.load_svmlight_file is four times slower (see
benchmarks/RESULTS.md), does not release the interpreter lock, so that nothing can be learned at the
same time, and does not name lines in its errors.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.loops.svmlight import BAD_ORDER, parse_lines
from craftmaps.scale.files.errors import FileError
from craftmaps.scale.files.options import ReadOptions
from craftmaps.scale.files.pieces import BadRows, Piece
from craftmaps.scale.files.text import lines_of
from craftmaps.validation import check_count, is_integer


class SvmlightFiles:
    """Files with lines `target [qid:n] index:value ... [# comment]`, plain or compressed.

    Indices must increase within a line. qid and comments are ignored.
    """

    names: list[str] | None = None
    schema: Any = None
    n_rows: int | None = None

    def __init__(self, paths: list[str], options: ReadOptions) -> None:
        if options.target is not None:
            reason = "lines of svmlight files begin with their target, so leave out"
            raise FileError(paths[0], f"{reason} target={options.target!r}")
        if options.weight is not None:
            reason = "svmlight files have no column of weights, so leave out"
            raise FileError(paths[0], f"{reason} weight={options.weight!r}")
        check_count("n_columns", options.n_columns, none=True)
        self.paths = paths
        self.n_files = len(paths)
        self._base = 0 if options.zero_based else 1
        self._dtype = np.dtype(np.float64) if options.dtype is None else options.dtype
        self._columns = None if options.columns is None else list(options.columns)
        self._n_columns = options.n_columns
        self._bad_rows = BadRows(options, "line", range(self._base, np.iinfo(np.int64).max))

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Yield pieces of a file, from a line on."""
        if self._n_columns is None:
            self._n_columns = self._widest()
        self._check_columns(self._n_columns)
        path = self.paths[file]
        for first, text in lines_of(path, row):
            piece = self._piece(path, first, text)
            if self._columns is not None:
                piece.X = piece.X[:, self._columns]
            yield piece

    def _piece(self, path: str, first: int, text: bytes) -> Piece:
        targets, lines, indptr, indices, data, bad = _parsed(text)
        for line, fault, at in bad:
            token = text[at : at + 40].split()[0].decode(errors="replace")
            reason = (
                f"index of {token!r} does not ascend"
                if fault == BAD_ORDER
                else f"{token!r} is no index:value"
            )
            self._bad_rows.complain(path, first + line, None, reason)
        width = self._n_columns or 0
        indices -= self._base
        if self._columns is not None:  # other columns are ignored
            kept = indices < width
            indptr = np.concatenate([[0], np.cumsum(kept)])[indptr]
            indices, data = indices[kept], data[kept]
        outside = (indices < 0) | (indices >= width)
        wrong = np.unique(np.searchsorted(indptr, np.flatnonzero(outside), side="right") - 1)
        for row in wrong[:1]:
            some = slice(indptr[row], indptr[row + 1])
            index = indices[some][outside[some]][0]
            reason, option = (
                f"index {index + self._base} is beyond n_columns={width}",
                "on_bad_rows",
            )
            if index < 0:
                reason, option = "index 0, but columns count from 1", "zero_based"
            self._bad_rows.complain(path, first + int(lines[row]), None, reason, option)
        indices[outside] = 0
        small = np.int32 if max(width, len(data)) < 2**31 else np.int64
        parts = (data.astype(self._dtype), indices.astype(small), indptr.astype(small))
        X = sparse.csr_matrix(parts, shape=(len(targets), width))
        piece = Piece(X, targets, first + lines, bad=first + bad[:, 0])
        if len(wrong):
            piece = piece.without(np.isin(np.arange(len(targets)), wrong))
        return self._bad_rows.leave_out(piece, path)

    def _check_columns(self, width: int) -> None:
        for column in self._columns or ():
            if not is_integer(column) or not -width <= column < width:
                reason = (
                    f"there is no column {column!r}; columns count from 0, and the largest index "
                    f"gives it {width} of them"
                )
                raise FileError(self.paths[0], reason, "n_columns")

    def _widest(self) -> int:
        """Return the number of columns, from the largest index in all files."""
        largest = self._base
        for path in self.paths:
            for _, text in lines_of(path):
                indices = _parsed(text)[3]
                largest = max(largest, int(indices.max(initial=0)))
        return largest + 1 - self._base


def _parsed(text: bytes) -> tuple[np.ndarray, ...]:
    """Return targets, their lines, a CSR matrix with the indices of the text, and bad lines.

    A number that cannot be read becomes NaN.
    """
    n_lines = text.count(b"\n") + 1
    n_pairs = text.count(b":")
    targets, data = np.empty(n_lines), np.empty(n_pairs)
    lines, indptr, indices = (np.empty(n, np.int64) for n in (n_lines, n_lines + 1, n_pairs))
    hard, bad = np.empty((n_lines + n_pairs, 3), np.int64), np.empty((n_lines, 3), np.int64)
    n_rows, n_values, n_hard, n_bad = parse_lines(
        np.frombuffer(text, np.uint8), targets, lines, indptr, indices, data, hard, bad
    )
    for place, start, stop in hard[:n_hard]:
        value = _number(text[start:stop])
        if place >= 0:
            data[place] = value
        else:
            targets[-1 - place] = value
    rows = slice(n_rows)
    return (
        targets[rows],
        lines[rows],
        indptr[: n_rows + 1],
        indices[:n_values],
        data[:n_values],
        bad[:n_bad],
    )


def _number(token: bytes) -> float:
    try:
        return float(token) if b"_" not in token else np.nan
    except ValueError:
        return np.nan
