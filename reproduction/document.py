"""What a report consists of, before it becomes a page or Markdown.

Text is plain; "2^12" in it is a power. Whoever writes it out escapes it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SYMBOLS = {
    "better": "✓",
    "holds": "✓",
    "reached": "✓",
    "within the spread": "≈",
    "worse": "✗",
    "fails": "✗",
    "missed": "✗",
    "undecided": "?",
    "one run": "1",
    "skipped": "○",
    "not run": "○",
    "other settings": "○",
}


@dataclass(frozen=True)
class Heading:
    """Of level 1 to 3, with a name that links lead to."""

    level: int
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list: of each item the verdict, or "", and the text."""

    items: list[tuple[str, str]]


@dataclass(frozen=True)
class Entry:
    """Of a table: lines, a verdict, and the anchor it leads to."""

    lines: tuple[str, ...]
    word: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of entries; the first of each row is its name."""

    head: list[str]
    rows: list[list[Entry]]


@dataclass(frozen=True)
class Picture:
    """An SVG."""

    name: str
    alt: str
    svg: bytes


@dataclass(frozen=True)
class Cards:
    """Groups of blocks that stand beside each other where there is room."""

    cards: "list[list[Block]]"


Block = Heading | Text | Items | Table | Picture | Cards


def pictures(blocks: Iterable[Block]) -> Iterator[Picture]:
    """All pictures, also of cards."""
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        if isinstance(block, Cards):
            for card in block.cards:
                yield from pictures(card)


def badge(word: str) -> str:
    """A verdict that can be told without colours."""
    return f"{SYMBOLS[word]} {word}" if word in SYMBOLS else word


def powers(escaped: str) -> str:
    """Exponents raised, in HTML and in Markdown."""
    return re.sub(r"(?<=[\w);])\^(-?\w+)", r"<sup>\1</sup>", escaped)
