"""Pieces of files of any size, and blocks with equal numbers of rows cut from them."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from craftmaps.scale.files.columns import arrow
from craftmaps.scale.files.errors import BadRowError
from craftmaps.scale.files.options import ReadOptions


class Position(NamedTuple):
    """Where to continue: the file, the row (or line) in it, and the rows left out so far.

    Rows and lines are counted from 0.
    """

    file: int = 0
    row: int = 0
    skipped: int = 0


@dataclass
class Piece:
    """Rows of a file.

    Attributes
    ----------
    X : ndarray, CSR matrix or Arrow table
    y : ndarray or None
    rows : ndarray of int
        Number of each row in its file, or its line in a text file.
    weight : ndarray or None
    bad : ndarray of int
        Numbers or lines of the rows that were left out.
    """

    X: Any
    y: np.ndarray | None
    rows: np.ndarray
    weight: np.ndarray | None = None
    bad: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def block(self, some: slice) -> tuple[Any, ...]:
        """Return (X, y) of some rows, or (X, y, weight) if there are weights."""
        y = None if self.y is None else self.y[some]
        X = self.X.slice(some.start, some.stop - some.start) if is_arrow(self.X) else self.X[some]
        return (X, y, *(() if self.weight is None else (self.weight[some],)))

    def without(self, bad: np.ndarray) -> "Piece":
        """Return the piece without the rows for which `bad` is True."""
        kept = ~bad
        return replace(
            self,
            X=self.X.filter(kept) if is_arrow(self.X) else self.X[kept],
            y=None if self.y is None else self.y[kept],
            rows=self.rows[kept],
            weight=None if self.weight is None else self.weight[kept],
            bad=np.union1d(self.bad, self.rows[bad]),
        )


class Fault(NamedTuple):
    """Rows that are bad for one reason.

    `told` returns the column and a description of the error for the place of a bad row. `option` is
    the keyword of `read` that helps.
    """

    rows: np.ndarray
    told: Callable[[int], tuple[Any, str]]
    option: str = "on_bad_rows"


class BadRows:
    """Treatment of bad rows: an error, or leaving them out.

    Parameters
    ----------
    options : ReadOptions
        With `skip`, bad rows are left out; with `skip_unlabeled`, rows without a target. The first
        other one raises an error.
    unit : {"row", "line"}
        Unit of positions in errors; lines are shown counted from 1.
    names : sequence
        Names of the columns of X.
    tables : bool
        Whether the files can be read as tables, where any value is allowed.
    """

    def __init__(
        self, options: ReadOptions, unit: str, names: Sequence[Any], *, tables: bool = False
    ) -> None:
        self._options = options
        self._unit = unit
        self._names = names
        self.option_for_values = "table" if tables else "on_bad_rows"
        self._target = "target" if options.target is None else options.target

    def complain(
        self, path: str, row: int, column: Any, reason: str, option: str = "on_bad_rows"
    ) -> None:
        """Raise an error about a bad row, unless bad rows are left out."""
        if not self._options.skip:
            place = f"{self._unit} {row + (self._unit == 'line')}"
            raise BadRowError(path, reason, option, place, column)

    def leave_out(self, piece: Piece, path: str, faults: Sequence[Fault] = ()) -> Piece:
        """Return the piece without bad rows.

        Rows are bad if their values are not finite, if their weights are below 0, or if they are
        among `faults`.
        """
        every = [*faults, *self._faults(piece)]
        every = [fault for fault in every if fault.rows.any()]
        if not every:
            return piece
        refused = [fault for fault in every if not self._leaves_out(fault)]
        if refused:
            first = min(int(fault.rows.argmax()) for fault in refused)
            fault = next(fault for fault in refused if fault.rows[first])
            self.complain(path, int(piece.rows[first]), *fault.told(first), fault.option)
        return piece.without(np.logical_or.reduce([fault.rows for fault in every]))

    def missing_targets(self, rows: np.ndarray) -> Fault:
        """Return the fault of missing targets."""
        reason = "the target is missing or not finite"
        return Fault(rows, lambda row: (self._target, reason), "unlabeled")

    def wrong_targets(self, rows: np.ndarray, texts: Any) -> Fault:
        """Return the fault of targets of another type, which have these texts."""

        def told(row: int) -> tuple[Any, str]:
            written = texts[row].as_py().strip()
            return self._target, f"{written!r} is not a number, and targets before it are"

        return Fault(rows, told)

    def _leaves_out(self, fault: Fault) -> bool:
        return self._options.skip or (self._options.skip_unlabeled and fault.option == "unlabeled")

    def _faults(self, piece: Piece) -> Iterator[Fault]:
        X, y, weight = piece.X, piece.y, piece.weight
        if not is_arrow(X):

            def value(row: int) -> tuple[Any, str]:
                values = X[[row]].toarray()[0] if sparse.issparse(X) else X[row]
                place = int((~np.isfinite(values)).argmax())
                return self._names[place], f"{values[place]} is not a finite number"

            yield Fault(_bad_values(X), value, self.option_for_values)
        if y is not None and y.dtype.kind == "f" and len(y):
            is_missing = np.isnan(y) if y.ndim == 1 else np.zeros(len(y), bool)
            yield self.missing_targets(is_missing)
            wrong = ~np.isfinite(y.reshape(len(y), -1)).all(axis=1) & ~is_missing
            yield self.missing_targets(wrong)._replace(option="on_bad_rows")
        if weight is not None:
            reason = "the weight {} is not a finite number of at least 0"
            yield Fault(
                ~(np.isfinite(weight) & (weight >= 0)),
                lambda row: (self._options.weight, reason.format(float(weight[row]))),
            )


def cut(
    pieces: Iterable[tuple[int, Piece]], block_rows: int, position: Position
) -> Generator[tuple[Position, Any], None, None]:
    """Yield blocks of `block_rows` rows (the last may be shorter), with the position after each.

    The first piece begins at `position`. The last item is None instead of a block, with a position
    that contains the number of all rows that were left out.
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
    X: Any
    if is_arrow(Xs[0]):
        X = arrow().concat_tables(Xs).combine_chunks()
    else:
        X = sparse.vstack(Xs, format="csr") if sparse.issparse(Xs[0]) else np.concatenate(Xs)
    return (X, *(None if other[0] is None else np.concatenate(other) for other in others))


def _bad_values(X: Any) -> np.ndarray:
    """Return which rows contain a value that is not finite."""
    values = X.data if sparse.issparse(X) else X
    bad = np.zeros(X.shape[0], bool)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return bad
    if not sparse.issparse(X):
        return np.asarray(~np.isfinite(X).all(axis=1))
    bad[np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data)), side="right") - 1] = True
    return bad


def is_arrow(X: Any) -> bool:
    """Whether rows are an Arrow table."""
    return hasattr(X, "schema")
