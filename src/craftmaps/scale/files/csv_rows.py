"""Split CSV files into whole rows, where quoted values may contain newlines."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from craftmaps.loops.csv import find_rows
from craftmaps.scale.files.errors import BadRowError, FileError
from craftmaps.scale.files.text import UTF8, lines_of

MAX_QUOTED_BYTES = 1 << 24  # a longer row with an open quote is an error
DELIMITERS = (",", "\t", ";", "|")  # by default, the first of these that occurs in a header
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some programs write it at the start of UTF-8 text


@dataclass
class RowText:
    """A text of whole rows.

    Attributes
    ----------
    path : str
    first : int
        Number of the first line, counted from 0.
    text : bytes
    delimiter : str
    """

    path: str
    first: int
    text: bytes
    delimiter: str
    quoted: bool = field(init=False)

    def __post_init__(self) -> None:
        self.quoted = b'"' in self.text

    def lines(self, n_rows: int) -> np.ndarray:
        """Return the line in which each row ends, for a parser that found `n_rows` rows."""
        n_lines = self.text.count(b"\n") + (not self.text.endswith(b"\n"))
        if n_lines == n_rows and not self.quoted:
            return np.arange(self.first, self.first + n_rows)
        return self._rows[2] + self.first

    def fields(self) -> Iterator[tuple[int, list[str] | BadRowError]]:
        """Yield the values or the error of each row, with the line in which it ends."""
        starts, stops, lines = self._rows
        for start, stop, line in zip(starts, stops, lines + self.first, strict=True):
            try:
                yield int(line), parsed_row(self.text[start:stop], self.delimiter)
            except (UnicodeDecodeError, csv.Error) as error:
                option = "encoding" if isinstance(error, UnicodeDecodeError) else None
                reason = f"the line cannot be read ({error})"
                yield int(line), BadRowError(self.path, reason, option)

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        starts, stops, lines, _ = _found(self.text, self.delimiter)
        return starts, stops, lines


def row_texts(path: str, first: int, delimiter: str, encoding: str = UTF8) -> Iterator[RowText]:
    """Yield texts of whole rows of a file, from a line on in which a row begins."""
    held, held_first = b"", first
    for number, text in lines_of(path, first, encoding):
        if held:
            number, text = held_first, held + text
        held = b""
        if b'"' in text:
            end = _found(text, delimiter)[3]
            held, text = text[end:], text[:end]
            held_first = number + text.count(b"\n")
        if len(held) > MAX_QUOTED_BYTES:
            break
        if text:
            yield RowText(path, number, text, delimiter)
    if held:  # the open quote would swallow all later rows, so this row cannot be left out
        reason = "the row has a quote that opens a value and no quote that closes it"
        raise FileError(path, reason, None, f"line {held_first + 1}")


def first_row(path: str, delimiter: str | None, encoding: str = UTF8) -> tuple[bytes, str]:
    """Return the text of the first row of a file, and the delimiter, which is guessed if None.

    A byte order mark and the newline at the end are left out.
    """
    _, text = next(lines_of(path, encoding=encoding), (0, b""))
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if delimiter is None:
        unquoted = re.sub(rb'"[^"]*("|$)', b"", text.split(b"\n", 1)[0]).decode(errors="replace")
        delimiter = next((one for one in DELIMITERS if one in unquoted), ",")
    starts, stops, _, end = _found(text, delimiter)
    if not len(starts):
        return text[end:], delimiter
    return text[: stops[0]] if starts[0] == 0 else b"", delimiter


def parsed_row(row: bytes, delimiter: str) -> list[str]:
    """Return the values of one row."""
    return next(csv.reader([row.decode()], delimiter=delimiter), [])


def _found(text: bytes, delimiter: str) -> tuple[Any, ...]:
    """Return starts, stops and last lines of the rows of a text, and the end of the last row."""
    n_lines = text.count(b"\n") + 1
    starts, stops, lines = (np.empty(n_lines, np.int64) for _ in range(3))
    code = np.uint8(ord(delimiter))
    n_rows, end = find_rows(np.frombuffer(text, np.uint8), code, starts, stops, lines)
    return starts[:n_rows], stops[:n_rows], lines[:n_rows], end
