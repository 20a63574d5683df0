"""Lines of texts, plain or compressed, some megabytes at a time."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from typing import Any

COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CHUNK = 1 << 22


def lines_of(path: str, first: int = 0) -> Iterator[tuple[int, bytes]]:
    """Some megabytes of whole lines after the other, each with the number of its first line.

    Begins with line `first`, counted from 0.
    """
    number, rest = 0, b""
    for data in _chunks(path):
        rest += data
        end = rest.rfind(b"\n") + 1 if data else len(rest)
        text, rest = rest[:end], rest[end:]
        count = text.count(b"\n")
        if number + count > first or not data:
            unwanted = max(0, first - number)
            text = text[_start_of(text, unwanted) :]
            if text:
                yield number + unwanted, text
        number += count


def _start_of(text: bytes, line: int) -> int:
    """Where a line starts; the end of the text if it has not that many."""
    start = 0
    for _ in range(line):
        start = text.find(b"\n", start) + 1
        if not start:
            return len(text)
    return start


def _chunks(path: str) -> Iterator[bytes]:
    """The contents of a file, and b"" at its end."""
    suffix = next((suffix for suffix in COMPRESSED if path.lower().endswith(suffix)), None)
    lines = 0
    with COMPRESSED[suffix](path) if suffix else open(path, "rb") as file:
        while True:
            try:
                data = file.read(_CHUNK)
            except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, OSError) as error:
                raise ValueError(
                    f"{path} is damaged or cut off somewhere after line {lines}: {error}"
                ) from error
            yield data
            if not data:
                return
            lines += data.count(b"\n")
