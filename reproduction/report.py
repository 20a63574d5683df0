"""The report of a reproduction: a page that leads, a page for each paper, and figures."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from craftmaps.storage.atomic import write_whole
from reproduction import opening_figure
from reproduction.against_craft import TABLE
from reproduction.figures import draw
from reproduction.headlines import headlines
from reproduction.in_short import (
    by_paper,
    goals_in_short,
    how_many_hold,
    our_rows_beside_them,
    topics,
)
from reproduction.judge import NOT_RUN, SKIPPED, cells, columns, counts, judged
from reproduction.markdown import (
    FIGURES,
    bullets,
    escaped,
    heading,
    link,
    picture,
    table,
    verdicts,
)
from reproduction.sections import figure_name, has_results, section
from reproduction.spec import Spec, short_paper
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

LEAD = "README.md"
TITLE = "The papers' tables and figures, run again"
GOALS = "Goals of this library"
WORDS = (BETTER, WITHIN, WORSE, ONE_RUN, SKIPPED, NOT_RUN)
_CLAIMS = (HOLDS, UNDECIDED, FAILS)
_QUICK = (
    "This is a quick run, with few sizes, one seed and smaller settings. It shows that everything "
    "works, and decides nothing. A full run (`--full`) also counts claims and goals here."
)
_PICTURE = (
    "Each mark is a test error in one column of CRAFT Table 1, divided by the better of the errors "
    "that the paper published for its two maps, CM RFM and CM TS. Marks below the line have fewer "
    "errors than published. CRAFT v2 is our default map for the same kernel. The best of our rows "
    "may have another kernel, and was chosen by test error."
)
_GOALS = (
    "These are the goals that we set for our own maps and learners, beside the published values."
)
_HOW_JUDGED = "How cells are judged"
_RULE = (
    f"A published value is one draw of a randomized method. We compare it with the interval in "
    f"which one further run of ours falls with {CONFIDENCE:.0%} confidence, mean ± t s √(1 + 1/n) "
    f"over n seeds. The relative spread s / mean is pooled over all cells of the method in its "
    f"panel, and t has the degrees of freedom of all of them. A published value inside the "
    f"interval is within the spread. One outside makes the cell better or worse. A mean that "
    f"rounds to the published value equals it. If no cell of a method has two seeds, nothing is "
    f"decided, and the cell has one run. If all methods were exactly as published, one cell in "
    f"twenty would still be called better or worse. A claim is judged at every x by Welch's "
    f"interval for the difference of means, with the same spreads and confidence."
)
_READING = (
    "An entry of a table has the mean of our runs ± their standard deviation (number of seeds), "
    "and [the published value]. Rows without brackets are not in the paper. A value with † was "
    "measured with an earlier version of this library, whose learner chose alpha by another rule."
)


def write_report(
    specs: Sequence[Spec], results: Results, folder: str | os.PathLike[str], quick: bool = False
) -> Path:
    """Write `README.md`, a page for each paper and `figures/`, each file whole or not at all.

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
        The page that leads.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in _figures(specs, results, quick):
        (folder / FIGURES).mkdir(exist_ok=True)
        _save(folder / FIGURES / name, svg)
    for name, text in pages(specs, results, quick).items():
        _save(folder / name, text.encode())
    return folder / LEAD


def _figures(specs: Sequence[Spec], results: Results, quick: bool) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all plots; a method has the same color in all panels of a figure."""
    for spec in specs:
        if not quick and _has_picture([spec], results):
            yield opening_figure.NAME, opening_figure.draw_opening(spec, results)
        methods = list(dict.fromkeys(method for panel in spec.panels for method in panel.methods))
        for panel in spec.panels:
            if panel.kind == "plot" and has_results(panel, results, quick):
                yield figure_name(spec, panel), draw(panel, results, methods, quick)


def _save(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def pages(specs: Sequence[Spec], results: Results, quick: bool = False) -> dict[str, str]:
    """The Markdown of each file: the page that leads first, then one for each paper."""
    blocks = [
        heading(1, TITLE),
        *opening(specs, results, quick),
        heading(2, _HOW_JUDGED),
        escaped(_RULE),
        escaped(_READING),
    ]
    found = {LEAD: blocks}
    for spec in specs:
        if spec.page not in found:
            found[spec.page] = [
                heading(1, short_paper(spec.paper)),
                escaped(f"{spec.paper}."),
                f"This page has every table and figure of the paper that was run again. "
                f"{link('The report', LEAD)} says which claims hold, and "
                f"{link(_HOW_JUDGED.lower(), LEAD, _HOW_JUDGED)}.",
                escaped(_READING),
            ]
        found[spec.page] += section(spec, results, quick)
    return {name: "\n\n".join(blocks) + "\n" for name, blocks in found.items()}


def opening(specs: Sequence[Spec], results: Results, quick: bool = False) -> list[str]:
    """What a reader wants first: half a page and a picture, then claims, goals and all tables."""
    blocks = [_QUICK] if quick else [*_in_short(specs, results), *_goals(specs, results)]
    rows = summary(specs, results, quick)
    counted = ["measured", *WORDS, *(f"claims {word}" for word in _CLAIMS)]
    lines = [
        [link(spec.title, spec.page, spec.title), *(str(row[word] or "") for word in counted)]
        for spec, row in zip(specs, rows, strict=True)
    ]
    head = ["cells", "measured", *WORDS, *(f"claims: {word}" for word in _CLAIMS)]
    blocks += [heading(2, "Table by table"), _counts(rows), table(head, lines)]
    return blocks


def _in_short(specs: Sequence[Spec], results: Results) -> Iterator[str]:
    """Which claims hold, how our own rows compare, the picture, and then claim by claim."""
    of_papers = topics(specs, results)
    better = our_rows_beside_them(specs, results)
    if of_papers or better:
        yield heading(2, "In short")
    if of_papers:
        yield escaped(how_many_hold(topic for found in of_papers.values() for topic in found))
        yield bullets(by_paper(of_papers))
    if better:
        yield "How our own maps and learners compare:"
        yield bullets(better)
        goals = headlines(specs, results)
        if goals:
            yield f"{escaped(goals_in_short(goals))} See {link('the list', '', GOALS)}."
    if _has_picture(specs, results):
        yield picture(opening_figure.NAME, opening_figure.ALT)
        yield escaped(_PICTURE)
    if of_papers:
        yield heading(2, "Claim by claim")
    for paper, found in of_papers.items():
        yield f"{escaped(paper)}:"
        yield verdicts([(topic.word, topic.sentence) for topic in found])


def _goals(specs: Sequence[Spec], results: Results) -> Iterator[str]:
    goals = headlines(specs, results)
    if goals:
        yield heading(2, GOALS)
        yield escaped(_GOALS)
        yield verdicts([(one.word, one.text) for one in goals])


def _has_picture(specs: Sequence[Spec], results: Results) -> bool:
    return any(
        spec.name == TABLE and any(has_results(panel, results) for panel in spec.panels)
        for spec in specs
    )


def _counts(rows: Sequence[dict[str, Any]]) -> str:
    total: Counter[str] = Counter()
    for row in rows:
        total.update({word: row[word] for word in WORDS})
    told = ", ".join(f"{total[word]} {word}" for word in WORDS)
    claims = {word: sum(row[f"claims {word}"] for row in rows) for word in _CLAIMS}
    left = sum(row["claims"] for row in rows) - sum(claims.values())
    return (
        f"Cells: {told}. Claims of the papers: {claims[HOLDS]} hold at every size, "
        f"{claims[UNDECIDED]} are undecided at some, {claims[FAILS]} fail at some, {left} wait "
        f"for two seeds."
    )


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
