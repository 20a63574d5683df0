"""Pieces of files, as large as they come, cut into blocks of equally many rows."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


class Position(NamedTuple):
    """Where to read on: the file, the row (or line) in it, and how many rows were left out so far.

    Rows and lines count from 0.
    """

    file: int = 0
    row: int = 0
    skipped: int = 0


@dataclass
class Piece:
    """Rows of a file.

    Attributes
    ----------
    X : ndarray or CSR matrix
    y : ndarray or None
    rows : ndarray of int
        Where each row is in its file: its number, or its last line in a text.
    bad : ndarray of int
        Where the rows are that were left out.
    """

    X: Any
    y: np.ndarray | None
    rows: np.ndarray
    bad: np.ndarray

    def without(self, bad: np.ndarray) -> "Piece":
        """The piece less the rows for which `bad` is True."""
        kept = ~bad
        return replace(
            self,
            X=self.X[kept],
            y=None if self.y is None else self.y[kept],
            rows=self.rows[kept],
            bad=np.union1d(self.bad, self.rows[bad]),
        )


class BadRows:
    """What becomes of rows that cannot be learnt from.

    Parameters
    ----------
    skip : bool
        Whether they are left out; otherwise the first one is an error.
    unit : {"row", "line"}
        What they are counted in; lines are shown counted from 1.
    names : sequence
        Names of the columns of X.
    target : object
        Name of the target.
    """

    def __init__(self, skip: bool, unit: str, names: Sequence[Any], target: Any) -> None:
        self.skip = skip
        self._unit = unit
        self._names = names
        self._target = target

    def found(self, path: str, row: int, column: Any, reason: str) -> None:
        """Complain about a row, unless such rows are left out."""
        if self.skip:
            return
        place = f"{path}, {self._unit} {row + (self._unit == 'line')}"
        if column is not None:
            place += f", column {column!r}"
        raise ValueError(f"{place}: {reason}; on_bad_rows='skip' leaves such rows out.")

    def leave_out(self, piece: Piece, path: str, missing: np.ndarray | None = None) -> Piece:
        """The piece less its rows with values that are not finite, or whose target is `missing`."""
        values = piece.X.data if sparse.issparse(piece.X) else piece.X
        with np.errstate(over="ignore", invalid="ignore"):
            fine = bool(np.isfinite(values.sum(dtype=np.float64)))
        bad = np.zeros(len(piece.rows), bool) if fine else _not_finite(piece.X)
        bad_target = _no_target(piece.y, len(piece.rows))
        if missing is not None:
            bad_target |= missing
        if not (bad.any() or bad_target.any()):
            return piece
        first = int((bad | bad_target).argmax())
        if bad[first]:
            row = piece.X[[first]].toarray()[0] if sparse.issparse(piece.X) else piece.X[first]
            column = int((~np.isfinite(row)).argmax())
            name, reason = self._names[column], f"{row[column]} is not a finite number"
        else:
            name, reason = self._target, "the target is missing or not finite"
        self.found(path, int(piece.rows[first]), name, reason)
        return piece.without(bad | bad_target)


def cut(
    pieces: Iterable[tuple[int, Piece]], block_rows: int, position: Position
) -> Generator[tuple[Position, Any], None, None]:
    """Blocks (X, y) of `block_rows` rows, the last one perhaps shorter, and where each ends.

    `position` is where the first piece begins. At the end comes None instead of a block, with the
    number of all rows that were left out.
    """
    parts: list[tuple[Any, Any]] = []
    held, skipped = 0, position.skipped
    for file, piece in pieces:
        done, size = 0, len(piece.rows)
        while done < size:
            some = slice(done, min(size, done + block_rows - held))
            parts.append((piece.X[some], None if piece.y is None else piece.y[some]))
            held += some.stop - done
            done = some.stop
            row = int(piece.rows[done - 1]) + 1
            position = Position(file, row, skipped + int(np.searchsorted(piece.bad, row)))
            if held == block_rows:
                yield position, _joined(parts)
                parts, held = [], 0
        skipped += len(piece.bad)
    if parts:
        yield position, _joined(parts)
    yield position._replace(skipped=skipped), None


def _joined(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    if len(parts) == 1:
        return parts[0]
    Xs, ys = zip(*parts, strict=True)
    X = sparse.vstack(Xs, format="csr") if sparse.issparse(Xs[0]) else np.concatenate(Xs)
    return X, None if ys[0] is None else np.concatenate(ys)


def _not_finite(X: Any) -> np.ndarray:
    """Which rows hold a value that is not finite."""
    if not sparse.issparse(X):
        return np.asarray(~np.isfinite(X).all(axis=1))
    bad = np.zeros(X.shape[0], bool)
    bad[np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data)), side="right") - 1] = True
    return bad


def _no_target(y: np.ndarray | None, size: int) -> np.ndarray:
    """Which targets are not finite."""
    if y is None or y.dtype.kind != "f" or not size:
        return np.zeros(size, bool)
    return np.asarray(~np.isfinite(y.reshape(size, -1)).all(axis=1))
