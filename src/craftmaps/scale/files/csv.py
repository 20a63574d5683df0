"""Rows of CSV files, where quoted values may contain newlines and empty lines are ignored.

pyarrow.csv.open_csv could read and decompress whole files. It is not used, because it does not say
which lines a batch came from. Errors that name a line, leaving out single rows, and continuing from
a checkpoint all need this.
"""

import csv
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from craftmaps.scale.files import column_types, csv_rows
from craftmaps.scale.files import columns as tables
from craftmaps.scale.files.columns import Layout
from craftmaps.scale.files.csv_rows import RowText
from craftmaps.scale.files.errors import BadRowError, FileError
from craftmaps.scale.files.options import ReadOptions
from craftmaps.scale.files.pieces import BadRows, Fault, Piece
from craftmaps.scale.files.targets import are_quantities, kind_of, missing_targets, targets_of

_SAMPLE_BYTES = 1 << 22  # size of the first rows, which decide whether columns are numbers


class Texts(NamedTuple):
    """The values of some rows as text, by the places of their columns."""

    columns: dict[int, Any]  # Arrow arrays of text
    lines: np.ndarray
    bad: list[int]  # lines of rows that were left out


class CsvFiles:
    """CSV files, plain or compressed, each with a header, or all with the same number of columns.

    pyarrow parses some megabytes at a time. If it finds an error, these rows are read one by one,
    to name the bad row or to leave it out.
    """

    n_rows: int | None = None

    def __init__(self, paths: list[str], options: ReadOptions) -> None:
        tables.arrow()
        self.paths = paths
        self.n_files = len(paths)
        self._options = options
        self._dtype = np.dtype(np.float64) if options.dtype is None else options.dtype
        given = options.delimiter or ("\t" if ".tsv" in paths[0].lower() else None)
        self._delimiter = csv_rows.first_row(paths[0], given, options.encoding)[1]
        self._first = tables.choose(self._header(paths[0])[0], options, paths[0])
        self.names = self._first.feature_names() if options.header else None
        self._bad_rows = BadRows(options, "line", self._first.feature_names(), tables=True)
        features, targets = self._sample()
        self._kind = (
            "decimal" if options.several or not targets else kind_of(self._pointed(targets[0]))
        )
        self._quantities = bool(targets) and are_quantities(targets[0], self._kind)
        self._tabular = options.as_tables(
            column_types.share_of_numbers(one, options.decimal) for one in features
        )

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of X, found by reading all rows, or None if X is an array."""
        if not self._tabular:
            return None
        pa = tables.arrow()
        kinds = {
            name: column_types.given_type(self._options.types[name])
            for name in self._first.feature_names()
            if name in self._options.types
        }
        found: dict[Any, Any] = {
            name: pa.null() for name in self._first.feature_names() if name not in kinds
        }
        decimal = self._options.decimal
        for path in self.paths if found else ():
            layout = self._layout(path)
            places = {name: layout.names.index(name) for name in found}
            only = Layout(path, layout.names, [*places.values()], [], [])
            for text in self._row_texts(path, 0):
                columns = self._texts(only, text).columns
                for name, place in places.items():
                    found[name] = column_types.wider(columns[place], found[name], decimal)
        kinds |= found
        return pa.schema([(str(name), kinds[name]) for name in self._first.feature_names()])

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Yield pieces of a file, from a line on."""
        from pyarrow import ArrowInvalid

        path = self.paths[file]
        layout = self._layout(path)
        for text in self._row_texts(path, row):
            if not self._tabular:
                try:
                    yield self._numbers_at_once(layout, text)
                    continue
                except ArrowInvalid:  # some row is bad, so read row by row
                    pass
            yield self._piece(layout, self._texts(layout, text))

    def _layout(self, path: str) -> Layout:
        return tables.choose_like(self._first, self._header(path)[0], self._options, path)

    def _header(self, path: str) -> tuple[list[Any], int]:
        """Return the names of the columns, and the number of lines of the header."""
        row, _ = csv_rows.first_row(path, self._delimiter, self._options.encoding)
        try:
            names = csv_rows.parsed_row(row, self._delimiter)
        except (UnicodeDecodeError, csv.Error) as error:
            reason = f"the first line is not text in {self._options.encoding} ({error})"
            raise FileError(path, reason, "encoding") from error
        if not names:
            raise FileError(path, "the file begins with an empty line, or is empty")
        if not self._options.header:
            return list(range(len(names))), 0
        return names, row.count(b"\n") + 1

    def _row_texts(self, path: str, line: int) -> Iterator[RowText]:
        first = max(line, self._header(path)[1])
        return csv_rows.row_texts(path, first, self._delimiter, self._options.encoding)

    def _numbers_at_once(self, layout: Layout, text: RowText) -> Piece:
        """Parse all rows of a text whose features are numbers."""
        pa = tables.arrow()
        kinds = dict.fromkeys(layout.features, pa.from_numpy_dtype(self._dtype))
        kinds |= dict.fromkeys(layout.weights, pa.float64())
        kinds |= dict.fromkeys(
            layout.targets, pa.float64() if self._options.several else pa.string()
        )
        columns, lines = self._parsed(layout, text, kinds)
        X = tables.matrix([columns[place] for place in layout.features], self._dtype)
        weight = tables.weights_of([columns[place] for place in layout.weights])
        y, faults = self._targets(layout, columns)
        return self._bad_rows.leave_out(Piece(X, y, lines, weight), layout.path, faults)

    def _piece(self, layout: Layout, texts: Texts) -> Piece:
        """Return the rows with these values, without bad rows."""
        faults: list[Fault] = []
        features = [
            self._feature(name, texts.columns[place], faults)
            for name, place in zip(layout.feature_names(), layout.features, strict=True)
        ]
        numbers = [*layout.weights, *(layout.targets if self._options.several else ())]
        columns = texts.columns | {
            place: column_types.numbers(texts.columns[place], self._options.decimal)[0]
            for place in numbers
        }
        weight = tables.weights_of([columns[place] for place in layout.weights])
        y, wrong = self._targets(layout, columns)
        faults += wrong
        X: Any
        if self._tabular:
            X = tables.arrow().table(features, schema=self.schema)
        else:
            X = tables.matrix(features, self._dtype)
        piece = Piece(X, y, texts.lines, weight, np.array(texts.bad, np.int64))
        return self._bad_rows.leave_out(piece, layout.path, faults)

    def _feature(self, name: Any, texts: Any, faults: list[Fault]) -> Any:
        """Convert a column of X to its type, and add bad values to `faults`."""
        given, decimal = self._options.types.get(name), self._options.decimal
        if not self._tabular:
            column, wrong = column_types.numbers(texts, decimal)
        elif given is None:
            kind = self.schema.field(str(name)).type
            column, wrong = column_types.converted(texts, kind, decimal)
        else:
            column, wrong = column_types.as_given(texts, given, decimal)
        if wrong is not None:
            option = "on_bad_rows" if self._tabular else "table"
            faults.append(
                Fault(wrong, partial(tables.told, name, texts, given or "number"), option)
            )
        return column

    def _targets(self, layout: Layout, columns: dict[int, Any]) -> tuple[Any, list[Fault]]:
        """Convert columns of targets to numbers or text; also return faults."""
        if not layout.targets:
            return None, []
        targets = [columns[place] for place in layout.targets]
        if self._options.several:
            return tables.matrix(targets, np.dtype(np.float64)), []  # bad values become NaN
        texts = targets[0] if self._kind == "text" else self._pointed(targets[0])
        y, wrong = targets_of(texts, self._kind)
        missing = wrong & missing_targets(targets[0], self._quantities)
        return y, [
            self._bad_rows.missing_targets(missing),
            self._bad_rows.wrong_targets(wrong & ~missing, targets[0]),
        ]

    def _pointed(self, texts: Any) -> Any:
        return column_types.with_point(texts, self._options.decimal)

    def _texts(self, layout: Layout, text: RowText, lenient: bool = False) -> Texts:
        """Return the columns to read as text, parsed together or row by row."""
        import pyarrow as pa

        try:
            kinds = dict.fromkeys(layout.wanted, pa.string())
            return Texts(*self._parsed(layout, text, kinds), [])
        except pa.ArrowInvalid:
            pass
        lines, bad, rows = [], [], []
        for line, fields in text.fields():
            if isinstance(fields, list) and len(fields) != len(layout.names):
                reason = f"{len(fields)} values in {len(layout.names)} columns"
                fields = BadRowError(layout.path, reason)
            if isinstance(fields, BadRowError):
                if not lenient:
                    option = fields.option or "on_bad_rows"
                    self._bad_rows.complain(layout.path, line, None, fields.reason, option)
                bad.append(line)
                continue
            lines.append(line)
            rows.append(fields)
        columns = {
            place: pa.array([row[place] for row in rows], pa.string()) for place in layout.wanted
        }
        return Texts(columns, np.array(lines, np.int64), bad)

    def _parsed(
        self, layout: Layout, text: RowText, kinds: dict[int, Any]
    ) -> tuple[dict[int, Any], np.ndarray]:
        """Return Arrow columns of some types by their places, and the lines of the rows."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        by_name = {str(place): kind for place, kind in kinds.items()}
        table = arrow_csv.read_csv(
            pa.BufferReader(text.text),
            arrow_csv.ReadOptions(
                block_size=len(text.text) + 1,
                column_names=list(map(str, range(len(layout.names)))),
            ),
            arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=text.quoted),
            arrow_csv.ConvertOptions(
                column_types=by_name,
                include_columns=list(by_name),
                decimal_point=self._options.decimal,
            ),
        )
        lines = text.lines(len(table))
        if len(lines) != len(table):
            raise pa.ArrowInvalid("pyarrow would end a line at a carriage return within it")
        return {place: table[str(place)].combine_chunks() for place in kinds}, lines

    def _sample(self) -> tuple[list[Any], list[Any]]:
        """Return the first values of features and targets as text."""
        pa = tables.arrow()
        held: list[list[Any]] = []
        left = _SAMPLE_BYTES
        for path in self.paths:
            layout = self._layout(path)
            for text in self._row_texts(path, 0):
                columns = self._texts(layout, text, lenient=True).columns
                held.append([columns[place] for place in layout.wanted])
                left -= len(text.text)
                break
            if left <= 0:
                break
        n_features, n_targets = len(self._first.features), len(self._first.targets)
        if held:
            joined = [pa.concat_arrays(parts) for parts in zip(*held, strict=True)]
        else:
            joined = [pa.array([], pa.string())] * (n_features + n_targets)
        return joined[:n_features], joined[n_features : n_features + n_targets]
