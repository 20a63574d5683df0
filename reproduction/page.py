"""A report as one page that needs no other file."""

import base64
from collections.abc import Sequence
from html import escape

from craftmaps import __version__
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

_CLASSES = {
    "better": "good",
    "holds": "good",
    "reached": "good",
    "worse": "bad",
    "fails": "bad",
    "missed": "bad",
    "within the spread": "even",
    "undecided": "even",
}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2329; background: #fff;
       max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 2px solid #d7dde3; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .25rem; }
p, ul { margin: .5rem 0; max-width: 48rem; overflow-wrap: anywhere; }
ul { padding-left: 1.2rem; }
li { margin: .25rem 0; }
sup { line-height: 0; }
.cards { display: grid; gap: 0 2rem; grid-template-columns: repeat(auto-fill,
         minmax(min(100%, 28rem), 1fr)); }
.cards > div { min-width: 0; }
.wide { overflow-x: auto; box-sizing: border-box; width: fit-content; max-width: 100%;
        margin: .75rem 0; border: 1px solid #d7dde3; border-radius: 6px; background:
        linear-gradient(to left, #fff 30%, transparent) right / 3rem 100% no-repeat local,
        linear-gradient(to left, #0004, transparent) right / 1rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.35;
        white-space: nowrap; font-variant-numeric: tabular-nums; }
th, td { text-align: right; vertical-align: top; padding: .4rem .7rem;
         border-bottom: 1px solid #e4e9ee; }
thead th { background: #f4f6f8; white-space: normal; vertical-align: bottom; }
tbody tr:last-child > * { border-bottom: 0; }
th:first-child { text-align: left; position: sticky; left: 0; background: #f4f6f8;
                 font-weight: 600; white-space: normal; min-width: 5.5rem; max-width: 9rem; }
@media (min-width: 60rem) { th:first-child { max-width: 24rem; } }
td .badge { display: table; margin-left: auto; }
.badge { border-radius: 4px; padding: 0 .35rem; font-size: .75rem; font-weight: 600;
         white-space: nowrap; background: #eceff2; color: #48525b; }
.badge.good { background: #d9e9f7; color: #0b4a7d; }
.badge.bad { background: #fce4d4; color: #8f3500; }
.badge.even { background: #ececf6; color: #44447a; }
figure { margin: .75rem 0; max-width: 34rem; }
img { display: block; width: 100%; height: auto; }
a { color: #0b5cad; }
footer { color: #5b6670; font-size: .85rem; margin-top: 3rem; }
"""


def page(title: str, blocks: Sequence[Block]) -> str:
    """The report as HTML."""
    body = "\n".join(_block(block) for block in blocks)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
<footer>craftmaps {__version__}</footer>
</body>
</html>
"""


def _block(block: Block) -> str:
    match block:
        case Heading(level, text, anchor):
            name = f' id="{escape(anchor)}"' if anchor else ""
            return f"<h{level}{name}>{_text(text)}</h{level}>"
        case Text(text):
            return f"<p>{_text(text)}</p>"
        case Items(items):
            inner = "\n".join(f"<li>{_badge(word)}{_text(text)}</li>" for word, text in items)
            return f"<ul>\n{inner}\n</ul>"
        case Table(head, rows):
            return _table(head, rows)
        case Picture(_, alt, svg):
            data = base64.b64encode(svg).decode()
            image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">'
            return f"<figure>{image}</figure>"
        case Cards(cards):
            made = ("\n".join(_block(block) for block in card) for card in cards)
            return '<div class="cards">' + "".join(f"<div>{one}</div>" for one in made) + "</div>"


def _table(head: Sequence[str], rows: Sequence[Sequence[Entry]]) -> str:
    top = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "\n".join(
        f'<tr><th scope="row">{_entry(first)}</th>'
        + "".join(f"<td>{_entry(entry)}</td>" for entry in rest)
        + "</tr>"
        for first, *rest in rows
    )
    inner = f"<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>"
    return f'<div class="wide" tabindex="0"><table>\n{inner}</table></div>'


def _entry(entry: Entry) -> str:
    lines = "<br>".join(_text(line) for line in entry.lines)
    if entry.anchor:
        lines = f'<a href="#{escape(entry.anchor)}">{lines}</a>'
    return lines + _badge(entry.word)


def _badge(word: str) -> str:
    if not word:
        return ""
    kind = " ".join(("badge", _CLASSES.get(word, ""))).strip()
    return f'<span class="{kind}">{escape(badge(word))}</span> '


def _text(text: str) -> str:
    return powers(escape(text))
