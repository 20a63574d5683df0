"""The report of a reproduction: a Markdown page, and its figures."""

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
from reproduction.in_short import how_many_hold, topics, what_beats_them
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
_QUICK = (
    "This is a quick run: few sizes, one seed, smaller settings. It shows that everything works, "
    "and decides nothing."
)
_PICTURE = (
    "Each mark is a test error in one column of CRAFT Table 1, divided by the better of the errors "
    "that the paper published for its two maps, CM RFM and CM TS. Below the line at 1 there are "
    "fewer errors than published. CRAFT v2 is our default map for the same kernel; the best of our "
    "rows may have another kernel, and was chosen by test error."
)
_GOALS = (
    "What we wanted to reach with our own maps and learners beside the published values, and "
    "whether we did."
)
_RULE = (
    f"How cells are judged: a published value is one draw of a randomized method. It is compared "
    f"with the interval in which one further run of ours falls with {CONFIDENCE:.0%} confidence, "
    f"mean ± t s √(1 + 1/n) over n seeds. The relative spread s / mean is pooled over all cells of "
    f"the method in its panel, and t has the degrees of freedom of all of them. A published value "
    f"inside the interval is within the spread, and one outside makes the cell better or worse; a "
    f"mean that rounds to the published value equals it. Where no cell of a method has two seeds, "
    f"nothing is decided: one run. If all methods were exactly as published, one cell in twenty "
    f"would still be called better or worse. A claim is judged at every x by Welch's interval for "
    f"the difference of means, with the same spreads and confidence."
)
_READING = (
    "Entries of the tables: ours as mean ± standard deviation (seeds), and [the published value]. "
    "Rows without brackets are not in the paper."
)


def write_report(
    specs: Sequence[Spec], results: Results, folder: str | os.PathLike[str], quick: bool = False
) -> Path:
    """Write `README.md` and `figures/`, each file whole or not at all.

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
        The Markdown page.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in _figures(specs, results, quick):
        (folder / FIGURES).mkdir(exist_ok=True)
        _save(folder / FIGURES / name, svg)
    _save(folder / "README.md", report(specs, results, quick).encode())
    return folder / "README.md"


def _figures(specs: Sequence[Spec], results: Results, quick: bool) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all plots; a method has the same color in all panels of a figure."""
    for spec in specs:
        if spec.name == TABLE and _has_picture([spec], results, quick):
            yield opening_figure.NAME, opening_figure.draw_opening(spec, results)
        methods = list(dict.fromkeys(method for panel in spec.panels for method in panel.methods))
        for panel in spec.panels:
            if panel.kind == "plot" and has_results(panel, results, quick):
                yield figure_name(spec, panel), draw(panel, results, methods, quick)


def _save(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def report(specs: Sequence[Spec], results: Results, quick: bool = False) -> str:
    """The page: first the opening, then a section for each table and figure."""
    blocks = [
        heading(1, TITLE),
        *opening(specs, results, quick),
        escaped(_RULE),
        escaped(_READING),
    ]
    for spec in specs:
        blocks += section(spec, results, quick)
    return "\n\n".join(blocks) + "\n"


def opening(specs: Sequence[Spec], results: Results, quick: bool = False) -> list[str]:
    """What a reader wants first: half a page and a picture, then our goals, then all tables."""
    blocks = [_QUICK] if quick else []
    blocks += _in_short(specs, results, quick)
    goals = headlines(specs, results, quick)
    if goals:
        blocks += [heading(2, "Goals of this library"), escaped(_GOALS)]
        blocks.append(verdicts([(one.word, one.text) for one in goals]))
    rows = summary(specs, results, quick)
    counted = ["measured", *WORDS, *(f"claims {word}" for word in _CLAIMS)]
    lines = [[link(row["title"]), *(str(row[word] or "") for word in counted)] for row in rows]
    head = ["cells", "measured", *WORDS, *(f"claims: {word}" for word in _CLAIMS)]
    blocks += [heading(2, "Table by table"), _counts(rows), table(head, lines)]
    return blocks


def _in_short(specs: Sequence[Spec], results: Results, quick: bool) -> Iterator[str]:
    """How many claims hold, what beats the papers now, the picture, and then claim by claim."""
    of_papers = topics(specs, results, quick)
    better = what_beats_them(specs, results, quick)
    if of_papers or better:
        yield heading(2, "In short")
    if of_papers:
        yield escaped(how_many_hold(topic for found in of_papers.values() for topic in found))
    if better:
        yield "What beats the papers now:"
        yield bullets(better)
    if _has_picture(specs, results, quick):
        yield picture(opening_figure.NAME, opening_figure.ALT)
        yield escaped(_PICTURE)
    if of_papers:
        yield heading(2, "Claim by claim")
    for paper, found in of_papers.items():
        yield f"{escaped(paper)}:"
        yield verdicts([(topic.word, topic.sentence) for topic in found])


def _has_picture(specs: Sequence[Spec], results: Results, quick: bool) -> bool:
    return not quick and any(
        spec.name == TABLE and any(has_results(panel, results, quick) for panel in spec.panels)
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
