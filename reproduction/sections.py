"""The section of one table or figure in a report."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from reproduction.document import Block, Cards, Entry, Heading, Items, Picture, Table, Text
from reproduction.figures import draw
from reproduction.judge import NOT_PRINTED, NOT_RUN, Cell, cells, columns, judged
from reproduction.numerals import clock, decimals, labels, number
from reproduction.spec import Panel, Spec, key_of
from reproduction.store import Results

_MOST_POINTS = 6  # of a curve in a table


def section(spec: Spec, results: Results, quick: bool = False) -> list[Block]:
    """Protocol, panels, claims, and where all of it was measured."""
    blocks: list[Block] = [Heading(2, spec.title, spec.name)]
    blocks += [Text(f"{spec.paper}."), Text(spec.protocol)]
    if spec.choices:
        blocks += [Text("Choices where the paper is silent:")]
        blocks += [Items([("", choice) for choice in spec.choices])]
    methods = list(dict.fromkeys(method for panel in spec.panels for method in panel.methods))
    shown = [panel for panel in spec.panels if _any(panel, results, quick)]
    for kind, group in itertools.groupby(shown, key=lambda panel: panel.kind):
        panels = [list(_panel(spec, panel, results, methods, quick)) for panel in group]
        blocks += [Cards(panels)] if kind == "plot" else itertools.chain(*panels)
    blocks += _without_results(spec, results, quick)
    left_out = [panel.title for panel in spec.panels if not columns(panel, quick)]
    if left_out:
        blocks.append(Text(f"Left out of a quick run: {'; '.join(left_out)}."))
    if spec.claims:
        blocks += [Heading(3, "What the paper claims"), Items(list(_claims(spec, results, quick)))]
    return [*blocks, *_measured(spec, results, quick)]


def _panel(
    spec: Spec, panel: Panel, results: Results, methods: Sequence[str], quick: bool
) -> Iterator[Block]:
    found = cells(panel, results, quick)
    yield Heading(3, panel.title, f"{spec.name}-{panel.name}")
    if quick and panel.quick_settings:
        changed = ", ".join(f"{name} = {value}" for name, value in panel.quick_settings.items())
        yield Text(f"In a quick run otherwise than printed: {changed}.")
    if panel.kind == "plot":
        alt = f"{panel.title}: {panel.unit} against {panel.x_label}, {', '.join(panel.methods)}"
        yield Picture(f"{spec.name}-{panel.name}.svg", alt, draw(panel, results, methods, quick))
    single = {cell.x for cell in found} <= set(columns(panel, quick))
    along = panel.axis if panel.curve and single else panel.x_label
    over = f", {panel.relative_to} over the method" if panel.relative_to else ""
    better = "" if panel.lower_is_better else "; more is better"
    yield Text(f"{panel.unit[:1].upper()}{panel.unit[1:]}{over}{better}; columns: {along}.")
    yield _table(panel, found, along)
    reasons = _reasons(columns(panel, quick), found)
    if reasons:
        yield Items(reasons)


def _any(panel: Panel, results: Results, quick: bool) -> bool:
    return any(cell.values for cell in cells(panel, results, quick))


def _without_results(spec: Spec, results: Results, quick: bool) -> Iterator[Block]:
    """The panels of which nothing was measured, and why; each reason once."""
    titles: dict[tuple[str, str], list[str]] = {}
    for panel in spec.panels:
        if columns(panel, quick) and not _any(panel, results, quick):
            for cell in cells(panel, results, quick):
                told = titles.setdefault((cell.word, cell.reason or "not run yet."), [])
                if panel.title not in told:
                    told.append(panel.title)
    if titles:
        yield Heading(3, "Not measured")
        yield Items([(word, f"{'; '.join(of)}: {why}") for (word, why), of in titles.items()])


def _table(panel: Panel, found: Sequence[Cell], along: str) -> Table:
    by_place = {(cell.method, cell.x): cell for cell in found}
    absent = {cell.method: cell for cell in found if not cell.values}
    x = list(dict.fromkeys(cell.x for cell in found if cell.values or not panel.curve))
    if panel.curve and len(x) > _MOST_POINTS:
        x = [x[round(i * (len(x) - 1) / (_MOST_POINTS - 1))] for i in range(_MOST_POINTS)]
    rows = [
        [Entry((method,))]
        + [_entry(panel, by_place.get((method, one), absent.get(method))) for one in x]
        for method in panel.methods
    ]
    return Table([along, *labels(x)], rows)


def _entry(panel: Panel, cell: Cell | None) -> Entry:
    if cell is None:
        return Entry(("",))
    digits = panel.digits if panel.printed else None
    printed = number(cell.printed, digits)
    lines = [f"[{printed}]"] if printed else []
    if cell.values:
        places = decimals(cell.mean) if digits is None else digits
        spread = number(cell.deviation, places, shown=1)
        ours = number(cell.mean, digits) + (f" ± {spread}" if spread else "")
        lines.insert(0, f"{ours} ({len(cell.values)})")
    return Entry(tuple(lines), "" if cell.word == NOT_PRINTED else cell.word)


def _reasons(shown: Sequence[Any], found: Sequence[Cell]) -> list[tuple[str, str]]:
    """Each reason once, with the x that it holds for."""
    names = dict(zip(shown, labels(shown), strict=True))
    where: dict[tuple[str, str], list[Cell]] = {}
    for cell in found:
        if not cell.values and (cell.reason or cell.word != NOT_RUN):
            where.setdefault((cell.word, cell.reason), []).append(cell)
    told = []
    for (word, reason), those in where.items():
        x = dict.fromkeys(names[cell.x] for cell in those)
        told.append((word, f"{', '.join(x)}: {reason}" if len(x) < len(names) else reason))
    return told


def _claims(spec: Spec, results: Results, quick: bool) -> Iterator[tuple[str, str]]:
    titles = {panel.name: panel.title for panel in spec.panels}
    for claim in spec.claims:
        found = judged(claim, spec, results, quick)
        parts = {
            "holds at": found.holds,
            "undecided at": found.undecided,
            "fails at": found.fails,
            "one run at": found.one_run,
        }
        told = ", ".join(f"{part} {count}" for part, count in parts.items() if count)
        text = f"{claim.text} ({titles[claim.panel]}: {claim.better} against {claim.than})"
        yield found.word, f"{text}: {told}." if told else f"{text}."


def _measured(spec: Spec, results: Results, quick: bool) -> Iterator[Block]:
    """Machines, versions, checksums."""
    rows = {
        key_of(row["run"]): row
        for panel in spec.panels
        for method in panel.methods
        for x in columns(panel, quick)
        for row in results.of(panel.run(method, x, quick))
    }
    if not rows:
        return
    yield Heading(3, "Where it was measured")
    places: dict[str, list[dict[str, Any]]] = {}
    for row in rows.values():
        places.setdefault(json.dumps(row.get("environment") or {}), []).append(row)
    items = [("", _place(json.loads(place), made)) for place, made in places.items()]
    checksums = sorted(
        {
            (row["run"]["data"], row["data_sha256"])
            for row in rows.values()
            if row.get("data_sha256")
        }
    )
    items += [("", f"Data {name}: SHA-256 {checksum}") for name, checksum in checksums]
    yield Items(items)


def _place(environment: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    took = clock(sum(row.get("seconds") or 0.0 for row in rows))
    runs = f"{len(rows)} {'run' if len(rows) == 1 else 'runs'} in {took}"
    if not environment:
        return f"{runs}, on a machine that is not known."
    versions = ", ".join(f"{name} {one}" for name, one in environment["versions"].items())
    text = (
        f"{runs} on {environment['cpu']}, {environment['cores']} cores, "
        f"{environment['threads']} threads; Python {environment['python']}, {versions}"
    )
    return text + (f"; commit {environment['commit']}." if environment.get("commit") else ".")
