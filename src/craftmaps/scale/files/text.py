"""Lines of text files, plain or compressed, some megabytes at a time."""

import bz2
import codecs
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import Any

from craftmaps.scale.files.columns import arrow
from craftmaps.scale.files.errors import FileError


def _open_zstandard(path: str) -> Any:
    pa = arrow()
    return pa.CompressedInputStream(pa.OSFile(path), "zstd")


COMPRESSED: dict[str, Any] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstandard,
}
UTF8 = "utf-8"
CHUNK_BYTES = 1 << 22
MAX_LINE_BYTES = 1 << 28  # a longer line is an error, because it may fill the memory


def lines_of(path: str, first: int = 0, encoding: str = UTF8) -> Iterator[tuple[int, bytes]]:
    """Yield texts of some megabytes of whole lines, with the number of the first line of each.

    The first text begins with line `first`, counted from 0. All line ends become newlines; the last
    line may have none.
    """
    number, held = 0, [b""]  # number of earlier lines, and parts of the current line
    for data in _chunks(path, encoding):
        end = data.rfind(b"\n") + 1
        if data and not end:
            held.append(data)
            if sum(map(len, held)) > MAX_LINE_BYTES:
                reason = f"the line has more than {MAX_LINE_BYTES >> 20} MB, so it is no row"
                raise FileError(path, reason, None, f"line {number + 1}")
            continue
        text = b"".join([*held, data[:end]])
        held = [data[end:]]
        count = text.count(b"\n")
        if number + count > first or not data:
            unwanted = max(0, first - number)
            text = text[_start_of(text, unwanted) :]
            if text:
                yield number + unwanted, text
        number += count


def _start_of(text: bytes, line: int) -> int:
    """Return where a line starts, or the end of the text if it has fewer lines."""
    start = 0
    for _ in range(line):
        start = text.find(b"\n", start) + 1
        if not start:
            return len(text)
    return start


def _chunks(path: str, encoding: str) -> Iterator[bytes]:
    """Yield the contents of a file in chunks of UTF-8, and b"" at its end.

    If the first line ends with a carriage return alone, all lines do.
    """
    suffix = next((suffix for suffix in COMPRESSED if path.lower().endswith(suffix)), None)
    decoder = None if encoding == UTF8 else codecs.getincrementaldecoder(encoding)()
    lines, returns = 0, None
    with COMPRESSED[suffix](path) if suffix else open(path, "rb") as file:
        while True:
            try:
                data = file.read(CHUNK_BYTES)
            except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, OSError) as error:
                reason = f"the file is damaged or cut off somewhere after line {lines} ({error})"
                raise FileError(path, reason) from error
            at_end = not data
            if decoder is not None:
                try:
                    data = decoder.decode(data, at_end).encode()
                except UnicodeError as error:
                    reason = f"the file is not text in {encoding} after line {lines} ({error})"
                    raise FileError(path, reason, "encoding") from error
                if not data and not at_end:
                    continue
            if returns is None:
                end = re.search(rb"\r\n?|\n", data)
                returns = end is not None and end[0] == b"\r"
            if returns:
                data = data.replace(b"\r", b"\n")
            yield data
            if at_end:
                return
            lines += data.count(b"\n")
