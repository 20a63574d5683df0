"""Pieces of files, as large as they come, cut into blocks of equally many rows."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from craftmaps.scale.files.errors import BadRowError
from craftmaps.scale.files.options import ReadOptions


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
        Where each row is in its file: its number, or its line in a text.
    weight : ndarray or None
    bad : ndarray of int
        Where the rows are that were left out.
    """

    X: Any
    y: np.ndarray | None
    rows: np.ndarray
    weight: np.ndarray | None = None
    bad: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def block(self, some: slice) -> tuple[Any, ...]:
        """(X, y) of some rows, or (X, y, weight) if there are weights."""
        y = None if self.y is None else self.y[some]
        return (self.X[some], y, *(() if self.weight is None else (self.weight[some],)))

    def without(self, bad: np.ndarray) -> "Piece":
        """The piece less the rows for which `bad` is True."""
        kept = ~bad
        return replace(
            self,
            X=self.X[kept],
            y=None if self.y is None else self.y[kept],
            rows=self.rows[kept],
            weight=None if self.weight is None else self.weight[kept],
            bad=np.union1d(self.bad, self.rows[bad]),
        )


class BadRows:
    """What becomes of rows that cannot be learned from.

    Parameters
    ----------
    options : ReadOptions
        Says whether such rows are left out; otherwise the first one is an error.
    unit : {"row", "line"}
        What they are counted in; lines are shown counted from 1.
    names : sequence
        Names of the columns of X.
    """

    def __init__(self, options: ReadOptions, unit: str, names: Sequence[Any]) -> None:
        self._options = options
        self._unit = unit
        self._names = names

    def complain(
        self, path: str, row: int, column: Any, reason: str, option: str = "on_bad_rows"
    ) -> None:
        """Raise an error about a row, unless such rows are left out."""
        if not self._options.skip:
            place = f"{self._unit} {row + (self._unit == 'line')}"
            raise BadRowError(path, reason, option, place, column)

    def leave_out(
        self, piece: Piece, path: str, wrong: np.ndarray | None = None, texts: Any = None
    ) -> Piece:
        """The piece less its rows with values that cannot be learned from.

        `wrong` says which targets are missing, or are not of the type of the others; `texts` is
        how they are written.
        """
        bad_target = _bad_targets(piece.y, len(piece.rows)) | (False if wrong is None else wrong)
        bad_weight = _bad_weights(piece.weight, len(piece.rows))
        bad_values = _bad_values(piece.X)
        bad = bad_values | bad_target | bad_weight
        if not bad.any():
            return piece
        first = int(bad.argmax())
        if bad_values[first]:
            row = piece.X[[first]].toarray()[0] if sparse.issparse(piece.X) else piece.X[first]
            place = int((~np.isfinite(row)).argmax())
            column, reason = self._names[place], f"{row[place]} is not a finite number"
        elif bad_target[first]:
            column, reason = self._options.target, "the target is missing or not finite"
            if texts is not None and wrong is not None and wrong[first] and texts[first].strip():
                reason = f"{texts[first]!r} is not a number, and targets before it are"
        else:
            weight = float(piece.weight[first])  # type: ignore[index]
            column = self._options.weight
            reason = f"the weight {weight} is not a finite number of at least 0"
        column = "target" if column is None else column
        self.complain(path, int(piece.rows[first]), column, reason)
        return piece.without(bad)


def cut(
    pieces: Iterable[tuple[int, Piece]], block_rows: int, position: Position
) -> Generator[tuple[Position, Any], None, None]:
    """Blocks of `block_rows` rows, the last one perhaps shorter, and where each ends.

    `position` is where the first piece begins. At the end comes None instead of a block, with the
    number of all rows that were left out.
    """
    parts: list[tuple[Any, ...]] = []
    held, skipped = 0, position.skipped
    for file, piece in pieces:
        done, size = 0, len(piece.rows)
        while done < size:
            some = slice(done, min(size, done + block_rows - held))
            parts.append(piece.block(some))
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


def _joined(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    if len(parts) == 1:
        return parts[0]
    Xs, *others = zip(*parts, strict=True)
    X = sparse.vstack(Xs, format="csr") if sparse.issparse(Xs[0]) else np.concatenate(Xs)
    return (X, *(None if other[0] is None else np.concatenate(other) for other in others))


def _bad_values(X: Any) -> np.ndarray:
    """Which rows hold a value that is not finite."""
    values = X.data if sparse.issparse(X) else X
    bad = np.zeros(X.shape[0], bool)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return bad
    if not sparse.issparse(X):
        return np.asarray(~np.isfinite(X).all(axis=1))
    bad[np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data)), side="right") - 1] = True
    return bad


def _bad_targets(y: np.ndarray | None, size: int) -> np.ndarray:
    """Which targets are not finite."""
    if y is None or y.dtype.kind != "f" or not size:
        return np.zeros(size, bool)
    return np.asarray(~np.isfinite(y.reshape(size, -1)).all(axis=1))


def _bad_weights(weight: np.ndarray | None, size: int) -> np.ndarray:
    if weight is None:
        return np.zeros(size, bool)
    return np.asarray(~(np.isfinite(weight) & (weight >= 0)))
