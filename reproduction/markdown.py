"""The pieces of a report as Markdown: escaped text, headings, lists, tables and links.

Text is plain until it is escaped here; "2^12" in it is a power.
"""

import re
from collections.abc import Sequence

FIGURES = "figures"
SYMBOLS = {
    "better": "✓",
    "holds": "✓",
    "mostly holds": "✓",
    "reached": "✓",
    "within the spread": "≈",
    "worse": "✗",
    "fails": "✗",
    "missed": "✗",
    "undecided": "?",
    "mixed": "±",
    "one run": "1",
    "skipped": "○",
    "not run": "○",
    "other settings": "○",
}


def escaped(text: str) -> str:
    """Text in which nothing is Markdown or HTML, except powers, which are raised.

    Examples
    --------
    >>> escaped("2^10 rows of a_name < 5 * b")
    '2<sup>10</sup> rows of a\\\\_name &lt; 5 \\\\* b'
    """
    plain = re.sub(r"([\\`*_{}\[\]|~$#])", r"\\\1", " ".join(text.split()))
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(?<=[\w);])\^(-?\w+)", r"<sup>\1</sup>", plain)


def heading(level: int, text: str) -> str:
    """A heading; `link` leads to it."""
    return f"{'#' * level} {escaped(text)}"


def link(text: str, page: str, title: str = "") -> str:
    """A link to a page, or to the heading `title` on it; the page "" is the one with the link.

    GitHub and MyST give the same anchor to a heading.

    Examples
    --------
    >>> link("the table", "kk.md", "KK Table 1: accuracy, speed-up")
    '[the table](kk.md#kk-table-1-accuracy-speed-up)'
    """
    anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{escaped(text)}]({page}{'#' if title else ''}{anchor})"


def badge(word: str) -> str:
    """A verdict with its symbol."""
    return f"{SYMBOLS[word]} {word}" if word in SYMBOLS else word


def verdicts(items: Sequence[tuple[str, str]]) -> str:
    """A list in which each text stands behind its verdict."""
    return "\n".join(f"- **{badge(word)}**: {escaped(text)}" for word, text in items)


def bullets(items: Sequence[str]) -> str:
    """A list of texts."""
    return "\n".join(f"- {escaped(text)}" for text in items)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose rows are Markdown already; the first column holds names."""
    lines = [[escaped(name) for name in head], ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def picture(name: str, alt: str) -> str:
    """A picture of the folder `FIGURES` beside the report."""
    return f"![{escaped(alt)}]({FIGURES}/{name})"
