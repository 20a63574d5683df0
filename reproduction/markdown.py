"""A report as Markdown, with its pictures in files beside it."""

import re
from collections.abc import Sequence

from reproduction.document import (
    Block,
    Cards,
    Entry,
    Heading,
    Items,
    Picture,
    Table,
    Text,
    badge,
    powers,
)

FIGURES = "figures"


def markdown(blocks: Sequence[Block]) -> str:
    """The report as Markdown."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(level, text, anchor):
            name = f'<a id="{anchor}"></a>\n\n' if anchor else ""
            return f"{name}{'#' * level} {_text(text)}"
        case Text(text):
            return _text(text)
        case Items(items):
            return "\n".join(f"- {_word(word)}{_text(text)}" for word, text in items)
        case Table(head, rows):
            lines = [[_text(name) for name in head], ["---", *("---:" for _ in head[1:])]]
            lines += [[_entry(entry) for entry in row] for row in rows]
            return "\n".join(f"| {' | '.join(line)} |" for line in lines)
        case Picture(name, alt, _):
            return f"![{_text(alt)}]({FIGURES}/{name})"
        case Cards(cards):
            return "\n\n".join(_block(block) for card in cards for block in card)


def _entry(entry: Entry) -> str:
    lines = [_text(line) for line in entry.lines]
    if entry.anchor:
        lines = [f"[{line}](#{entry.anchor})" for line in lines]
    return "<br>".join([*lines, *([badge(entry.word)] if entry.word else [])])


def _word(word: str) -> str:
    return f"**{badge(word)}**: " if word else ""


def _text(text: str) -> str:
    """As it is: nothing in it is Markdown or HTML."""
    escaped = re.sub(r"([\\`*_{}\[\]|~$#])", r"\\\1", " ".join(text.split()))
    return powers(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
