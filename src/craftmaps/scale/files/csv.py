"""Rows of CSV files: every line that is not empty is a row.

pyarrow.csv.open_csv would read and decompress whole files itself. It is not used, because it does
not tell which lines a batch came from, and an error that names its line, rows that are left out one
by one, and reading on from a checkpoint all need that.
"""

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np

from craftmaps.scale.files import columns as tables
from craftmaps.scale.files.columns import Layout
from craftmaps.scale.files.errors import BadRowError, FileError
from craftmaps.scale.files.options import ReadOptions
from craftmaps.scale.files.pieces import BadRows, Piece
from craftmaps.scale.files.targets import kind_of, targets_of
from craftmaps.scale.files.text import lines_of

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some programs begin a UTF-8 text with it


class CsvFiles:
    """CSV files, plain or compressed, with a header each or with equally many columns.

    Some megabytes are parsed at a time by pyarrow. Where it finds a fault, these lines are read
    one by one, to name it or to leave its row out.
    """

    n_rows: int | None = None

    def __init__(self, paths: list[str], options: ReadOptions) -> None:
        tables.arrow()
        self.paths = paths
        self.n_files = len(paths)
        self._options = options
        self._dtype = np.dtype(np.float64) if options.dtype is None else options.dtype
        self._delimiter = options.delimiter or ("\t" if ".tsv" in paths[0].lower() else ",")
        self._first = tables.choose(self._names(paths[0]), options, paths[0])
        self.names = self._first.feature_names() if options.header else None
        self._bad_rows = BadRows(options, "line", self._first.feature_names())
        self._kind = self._guessed_kind()

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Pieces of a file, from a line on."""
        from pyarrow import ArrowInvalid

        path = self.paths[file]
        layout = self._layout(path)
        for first, text in lines_of(path, max(row, int(self._options.header))):
            try:
                yield self._at_once(layout, first, text)
            except ArrowInvalid:
                yield self._one_by_one(layout, first, text)

    def _layout(self, path: str) -> Layout:
        return tables.choose_like(self._first, self._names(path), self._options, path)

    def _names(self, path: str) -> list[Any]:
        first = next(lines_of(path), (0, b""))[1].split(b"\n", 1)[0].removeprefix(_BYTE_ORDER_MARK)
        try:
            names = next(csv.reader([first.decode()], delimiter=self._delimiter), [])
        except (UnicodeDecodeError, csv.Error) as error:
            reason = f"the first line cannot be read as text in UTF-8 ({error}), so convert it"
            raise FileError(path, reason) from error
        if not names:
            raise FileError(path, "the file begins with an empty line, or is empty")
        return names if self._options.header else list(range(len(names)))

    def _at_once(self, layout: Layout, first: int, text: bytes) -> Piece:
        """All rows of some lines."""
        from pyarrow import ArrowInvalid

        table = self._parsed(layout, text)
        rows = np.arange(first, first + text.count(b"\n") + (not text.endswith(b"\n")))
        if len(rows) > len(table):
            lines = text.removesuffix(b"\n").split(b"\n")
            rows = rows[[bool(line.rstrip(b"\r")) for line in lines]]
        if len(rows) != len(table):
            raise ArrowInvalid("to pyarrow, a carriage return within a line ends it")
        features, targets, weights = (
            [table[str(place)] for place in places]
            for places in (layout.features, layout.targets, layout.weights)
        )
        X = tables.matrix(features, self._dtype)
        weight = tables.weights_of(weights)
        if self._options.several or not targets:
            y, wrong = tables.labels(targets, several=True)
            return self._bad_rows.leave_out(Piece(X, y, rows, weight), layout.path, wrong)
        return self._labelled(layout, X, targets[0], rows, weight)

    def _labelled(
        self, layout: Layout, X: Any, texts: Any, rows: Any, weight: Any, bad: Any = ()
    ) -> Piece:
        """The piece whose targets are written so, less its bad rows."""
        y, wrong = targets_of(texts, self._kind)
        piece = Piece(X, y, rows, weight, np.asarray(bad, np.int64))
        written = texts.to_pylist() if wrong.any() else None
        return self._bad_rows.leave_out(piece, layout.path, wrong, written)

    def _one_by_one(self, layout: Layout, first: int, text: bytes) -> Piece:
        """The rows that can be read of some lines; the first other one is an error if so wished."""
        import pyarrow as pa

        rows, bad, X, texts, weights = [], [], [], [], []
        for line, content in enumerate(text.split(b"\n"), first):
            if not content.rstrip(b"\r"):
                continue
            try:
                fields = self._fields(layout, content)
                values = [_number(layout, fields, place) for place in layout.features]
                weight = [_number(layout, fields, place) for place in layout.weights]
                target: Any = [fields[place] for place in layout.targets]
                if self._options.several:
                    target = [_number(layout, fields, place) for place in layout.targets]
            except BadRowError as error:
                self._bad_rows.complain(layout.path, line, error.column, error.reason)
                bad.append(line)
                continue
            rows.append(line)
            X.append(values)
            texts.append(target)
            weights.append(weight)
        places = np.array(rows, np.int64)
        matrix = np.array(X, self._dtype).reshape(len(rows), len(layout.features))
        weighed = np.array(weights, float).reshape(len(rows)) if layout.weights else None
        if layout.targets and not self._options.several:
            column = pa.array([target[0] for target in texts], pa.string())
            return self._labelled(layout, matrix, column, places, weighed, bad)
        y = np.array(texts, float).reshape(len(rows), -1) if layout.targets else None
        piece = Piece(matrix, y, places, weighed, np.array(bad, np.int64))
        return self._bad_rows.leave_out(piece, layout.path)

    def _fields(self, layout: Layout, content: bytes) -> list[str]:
        """The fields of one line."""
        try:
            fields = next(csv.reader([content.decode()], delimiter=self._delimiter))
        except (UnicodeDecodeError, csv.Error) as error:
            raise BadRowError(layout.path, f"the line cannot be read ({error})") from error
        if len(fields) != len(layout.names):
            reason = f"{len(fields)} values in {len(layout.names)} columns"
            raise BadRowError(layout.path, reason)
        return fields

    def _guessed_kind(self) -> str:
        """What all targets of the first lines can be read as."""
        if self._options.several or not self._first.targets:
            return "decimal"
        for path in self.paths:
            layout = self._layout(path)
            _, text = next(lines_of(path, int(self._options.header)), (0, b""))
            if text:
                break
        else:
            return "decimal"
        from pyarrow import ArrowInvalid

        only = Layout(path, layout.names, [], layout.targets, [])
        try:
            return kind_of(self._parsed(only, text, lenient=True)[str(layout.targets[0])])
        except ArrowInvalid:  # bytes that are no text, which reading names
            return "text"

    def _parsed(self, layout: Layout, text: bytes, lenient: bool = False) -> Any:
        """An Arrow table whose columns are named by their places; a single target is text."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        label_type = pa.float64() if self._options.several else pa.string()
        types = dict.fromkeys(map(str, layout.features), pa.from_numpy_dtype(self._dtype))
        types |= dict.fromkeys(map(str, layout.weights), pa.float64())
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
                column_types=types, include_columns=list(types), check_utf8=not lenient
            ),
        ).combine_chunks()


def _number(layout: Layout, fields: list[str], place: int) -> float:
    field = fields[place]
    try:
        if "_" not in field:  # which Python allows in numbers
            return float(field)
    except ValueError:
        pass
    reason = f"{field!r} is not a number" if field else "the value is missing"
    raise BadRowError(layout.path, reason, None, None, layout.names[place])
