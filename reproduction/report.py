"""The report of a reproduction: a page that opens from disk, and the same as Markdown."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftmaps.storage.atomic import write_whole
from reproduction.document import Block, Entry, Heading, Items, Table, Text, pictures
from reproduction.headlines import headlines
from reproduction.judge import NOT_RUN, SKIPPED, cells, columns, counts, judged
from reproduction.markdown import FIGURES, markdown
from reproduction.page import page
from reproduction.sections import section
from reproduction.spec import Spec
from reproduction.store import Results
from reproduction.verdict import (
    BETTER,
    CONFIDENCE,
    FAILS,
    HOLDS,
    ONE_RUN,
    UNDECIDED,
    WITHIN,
    WORSE,
)

TITLE = "The papers' tables and figures, run again"
WORDS = (BETTER, WITHIN, WORSE, ONE_RUN, SKIPPED, NOT_RUN)
_CLAIMS = (HOLDS, UNDECIDED, FAILS)
_RULE = (
    f"How cells are judged: a printed value is one draw of a randomised method, so it is held "
    f"against the interval in which one further run of ours is expected with {CONFIDENCE:.0%} "
    f"confidence: mean ± t s √(1 + 1/n) over n seeds, where s / mean is pooled over the cells of "
    f"the method in its panel and t has the degrees of freedom of all of them. Outside of it a "
    f"cell is better or worse, else within the spread; a value that rounds to the printed one is "
    f"equal to it. Where no cell of a method has two seeds, nothing is decided: one run. If all "
    f"methods were exactly as printed, one cell in twenty would still be called better or worse. "
    f"A claim is judged at every x by Welch's interval of the difference of means, with the same "
    f"spreads and confidence."
)
_READING = (
    "In the tables: ours, mean ± standard deviation (seeds), and [what is printed]; "
    "rows without brackets are not in the paper."
)


def write_report(
    specs: Sequence[Spec], results: Results, folder: str | os.PathLike[str], quick: bool = False
) -> Path:
    """Write `index.html`, `README.md` and `figures/`, each file whole or not at all.

    Parameters
    ----------
    specs : sequence of Spec
    results : Results
    folder : path
    quick : bool, default=False
        Report the runs of a quick run.

    Returns
    -------
    path : Path
        Of the page.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    blocks = report(specs, results, quick)
    files = {f"{FIGURES}/{picture.name}": picture.svg for picture in pictures(blocks)}
    if files:
        (folder / FIGURES).mkdir(exist_ok=True)
    files |= {"README.md": markdown(blocks).encode(), "index.html": page(TITLE, blocks).encode()}
    for name, content in files.items():
        _save(folder / name, content)
    return folder / "index.html"


def _save(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def report(specs: Sequence[Spec], results: Results, quick: bool = False) -> list[Block]:
    """All that is reported, first the summary."""
    blocks = [Heading(1, TITLE), *opening(specs, results, quick), Text(_RULE), Text(_READING)]
    for spec in specs:
        blocks += section(spec, results, quick)
    return blocks


def opening(specs: Sequence[Spec], results: Results, quick: bool = False) -> list[Block]:
    """What a reader wants first: counts of verdicts, headlines, and a row for each table."""
    blocks: list[Block] = []
    if quick:
        blocks.append(
            Text(
                "This is a quick run: few sizes, one seed, smaller settings. It shows that all of "
                "it works, and decides nothing."
            )
        )
    found = summary(specs, results, quick)
    total: Counter[str] = Counter()
    for row in found:
        total.update({word: row[word] for word in WORDS})
    told = ", ".join(f"{total[word]} {word}" for word in WORDS)
    claims = {word: sum(row[f"claims {word}"] for row in found) for word in _CLAIMS}
    left = sum(row["claims"] for row in found) - sum(claims.values())
    blocks.append(
        Text(
            f"Cells: {told}. Claims of the papers: {claims[HOLDS]} hold at every size, "
            f"{claims[UNDECIDED]} are undecided at some, {claims[FAILS]} fail at some, {left} wait "
            f"for two seeds."
        )
    )
    first = headlines(specs, results, quick)
    if first:
        blocks += [Heading(3, "Headlines"), Items([(one.word, one.text) for one in first])]
    rows = [
        [Entry((row["title"],), anchor=row["name"])]
        + [Entry((str(row[word] or ""),)) for word in ("measured", *WORDS)]
        + [Entry((str(row[f"claims {word}"] or ""),)) for word in _CLAIMS]
        for row in found
    ]
    return [
        *blocks,
        Heading(3, "Table by table"),
        Table(["cells", "measured", *WORDS, *(f"claims: {word}" for word in _CLAIMS)], rows),
    ]


def summary(specs: Sequence[Spec], results: Results, quick: bool = False) -> list[dict[str, Any]]:
    """For each table or figure: how many cells have each verdict, and how many claims hold."""
    rows = []
    for spec in specs:
        words = counts(cell for panel in spec.panels for cell in cells(panel, results, quick))
        judgements = [judged(claim, spec, results, quick) for claim in spec.claims]
        rows.append(
            {"name": spec.name, "title": spec.title, "measured": _n_measured(spec, results, quick)}
            | {word: words[word] for word in WORDS}
            | {f"claims {word}": sum(one.word == word for one in judgements) for word in _CLAIMS}
            | {"claims": len(judgements)}
        )
    return rows


def _n_measured(spec: Spec, results: Results, quick: bool) -> int:
    return sum(
        bool(results.of(panel.run(method, x, quick)))
        for panel in spec.panels
        for method in panel.methods
        for x in columns(panel, quick)
    )
