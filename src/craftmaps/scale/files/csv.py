"""Rows of CSV files: every line that is not empty is a row."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.scale.files import columns as tables
from craftmaps.scale.files.pieces import BadRows, Piece
from craftmaps.scale.files.text import lines_of

_MARK = b"\xef\xbb\xbf"  # some programs begin a UTF-8 text with it
_NOTHING = np.empty(0, np.int64)


@dataclass
class Layout:
    """The columns of one file: their names, and the places of targets and features."""

    names: list[Any]
    targets: list[int]
    features: list[int]


class CsvFiles:
    """CSV files, plain or compressed, with a header each or with equally many columns.

    Some megabytes are parsed at a time by pyarrow. Where it finds a fault, these lines are read
    one by one, to name it or to leave its row out.
    """

    def __init__(
        self,
        paths: list[str],
        target: Any,
        columns: Sequence[Any] | None,
        dtype: np.dtype | None,
        skip: bool,
        header: bool,
        delimiter: str | None,
    ) -> None:
        tables.arrow()
        self.paths = paths
        self.n_files = len(paths)
        self._target, self._columns = target, columns
        self._several = isinstance(target, list | tuple)
        self._dtype = np.dtype(np.float64) if dtype is None else dtype
        self._skip = skip
        self._header = header
        self._delimiter = delimiter or ("\t" if ".tsv" in paths[0].lower() else ",")
        self._label_type = self._guessed_label_type()

    @property
    def names(self) -> list[str] | None:
        """The names of the columns of X, None without a header."""
        if not self._header:
            return None
        layout = self._layout(self.paths[0])
        return [layout.names[place] for place in layout.features]

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Pieces of a file, from a line on."""
        from pyarrow import ArrowInvalid

        path = self.paths[file]
        layout = self._layout(path)
        names = [layout.names[place] for place in layout.features]
        bad_rows = BadRows(self._skip, "line", names, self._target)
        for first, text in lines_of(path, max(row, int(self._header))):
            try:
                piece, missing = self._at_once(layout, first, text)
            except ArrowInvalid:
                piece, missing = self._one_by_one(layout, first, text, bad_rows, path), None
            yield bad_rows.leave_out(piece, path, missing)

    def _layout(self, path: str) -> Layout:
        first = next(lines_of(path), (0, b""))[1].split(b"\n", 1)[0].removeprefix(_MARK)
        try:
            names: list[Any] = next(csv.reader([first.decode()], delimiter=self._delimiter), [])
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is no text in UTF-8, its first line cannot be read ({error}); convert it."
            ) from error
        if not names:
            raise ValueError(f"{path} begins with an empty line, or is empty.")
        if not self._header:
            names = list(range(len(names)))
        targets, features = tables.choose(names, self._target, self._columns, path)
        return Layout(names, targets, features)

    def _at_once(self, layout: Layout, first: int, text: bytes) -> tuple[Piece, Any]:
        """All rows of some lines, and which have no target."""
        import pyarrow as pa

        kind = pa.from_numpy_dtype(self._dtype)
        try:
            table = self._parsed(layout, text, kind, self._label_type)
        except pa.ArrowInvalid:
            if self._label_type != pa.int64():
                raise
            # whole numbers at first need not be so later on
            table = self._parsed(layout, text, kind, pa.float64())
        X = tables.matrix([table[str(place)] for place in layout.features], self._dtype)
        y, missing = tables.labels([table[str(place)] for place in layout.targets], self._several)
        if y is not None and y.dtype.kind == "U":
            missing = y == ""
        rows = np.arange(first, first + text.count(b"\n") + (not text.endswith(b"\n")))
        if len(rows) > len(X):
            lines = text.removesuffix(b"\n").split(b"\n")
            rows = rows[[bool(line.rstrip(b"\r")) for line in lines]]
        if len(rows) != len(X):
            raise pa.ArrowInvalid("to pyarrow, a carriage return within a line ends it")
        return Piece(X, y, rows, _NOTHING), missing

    def _one_by_one(
        self, layout: Layout, first: int, text: bytes, bad_rows: BadRows, path: str
    ) -> Piece:
        """The rows that can be read of some lines; the first other one is an error if so wished."""
        rows, bad, X, y = [], [], [], []
        for line, content in enumerate(text.split(b"\n"), first):
            if not content.rstrip(b"\r"):
                continue
            try:
                features, target = self._values(layout, content)
            except _Fault as fault:
                bad_rows.found(path, line, fault.column, fault.reason)
                bad.append(line)
            else:
                rows.append(line)
                X.append(features)
                y.append(target)
        matrix = np.array(X, self._dtype).reshape(len(rows), len(layout.features))
        targets = None
        if layout.targets:
            kind = self._label_type.to_pandas_dtype()
            if any(isinstance(one, float) for target in y for one in target):
                kind = np.float64
            targets = np.array(y, str if kind is np.object_ else kind)
            targets = targets if self._several else targets.reshape(len(rows))
        return Piece(matrix, targets, np.array(rows, np.int64), np.array(bad, np.int64))

    def _values(self, layout: Layout, content: bytes) -> tuple[list[float], list[Any]]:
        """Features and targets of one line."""
        try:
            fields = next(csv.reader([content.decode()], delimiter=self._delimiter))
        except (UnicodeDecodeError, csv.Error) as error:
            raise _Fault(None, f"the line cannot be read ({error})") from error
        if len(fields) != len(layout.names):
            raise _Fault(None, f"{len(fields)} values in {len(layout.names)} columns")
        read = self._label_type.to_pandas_dtype()
        features = [_number(layout, fields, place, float) for place in layout.features]
        targets = layout.targets
        if read is not np.object_:
            read = _whole_or_float if read is np.int64 else float
            return features, [_number(layout, fields, place, read) for place in targets]
        if any(not fields[place] for place in targets):
            raise _Fault(self._target, "the target is missing")
        return features, [fields[place] for place in targets]

    def _guessed_label_type(self) -> Any:
        """Integers, floats or text: what all targets of the first lines can be read as."""
        import pyarrow as pa

        for path in self.paths:
            layout = self._layout(path)
            _, text = next(lines_of(path, int(self._header)), (0, b""))
            if text:
                break
        if self._several or not layout.targets or not text:
            return pa.float64()
        only = Layout(layout.names, layout.targets, [])
        table = self._parsed(only, text, None, pa.string(), lenient=True)
        for kind in (pa.int64(), pa.float64()):
            try:
                table[str(layout.targets[0])].drop_null().cast(kind)
            except pa.ArrowInvalid:
                continue
            return kind
        return pa.string()

    def _parsed(
        self, layout: Layout, text: bytes, kind: Any, label_type: Any, lenient: bool = False
    ) -> Any:
        """An Arrow table whose columns are named by their places."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        types = dict.fromkeys(map(str, layout.features), kind)
        types |= dict.fromkeys(map(str, layout.targets), label_type)
        return arrow_csv.read_csv(
            pa.BufferReader(text),
            arrow_csv.ReadOptions(
                block_size=len(text) + 1, column_names=list(map(str, range(len(layout.names))))
            ),
            arrow_csv.ParseOptions(
                delimiter=self._delimiter,
                invalid_row_handler=(lambda row: "skip") if lenient else None,
            ),
            arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                strings_can_be_null=lenient,
                check_utf8=not lenient,
            ),
        ).combine_chunks()


class _Fault(Exception):
    """Why a line is no row."""

    def __init__(self, column: Any, reason: str) -> None:
        self.column, self.reason = column, reason


def _whole_or_float(field: str) -> int | float:
    try:
        return int(field)
    except ValueError:
        return float(field)


def _number(layout: Layout, fields: list[str], place: int, read: Any) -> Any:
    field = fields[place]
    try:
        if "_" not in field:  # which Python allows in numbers
            return read(field)
    except ValueError:
        pass
    reason = f"{field!r} is not a number" if field else "the value is missing"
    raise _Fault(layout.names[place], reason)
