"""The section of one table or figure in a report."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from reproduction.judge import NOT_PRINTED, NOT_RUN, Cell, cells, columns, judged
from reproduction.markdown import badge, bullets, escaped, heading, picture, table, verdicts
from reproduction.numerals import clock, decimals, labels, number
from reproduction.spec import Panel, Spec, key_of
from reproduction.store import Results

_MOST_POINTS = 6  # of a curve in a table
_COMMIT_DIGITS = 10
_KEPT = " (older learner)"  # behind the name of a row that is kept
OLDER = "†"  # behind a value of an earlier version


def section(spec: Spec, results: Results, quick: bool = False) -> list[str]:
    """Protocol, panels, claims, and where all of it was measured, as blocks of Markdown."""
    blocks = [heading(2, spec.title), escaped(spec.protocol)]
    if spec.rows:
        blocks += ["Rows that are not in the paper:", bullets(spec.rows)]
    if spec.choices:
        blocks += ["Choices where the paper is silent:", bullets(spec.choices)]
    for panel in spec.panels:
        if has_results(panel, results, quick):
            blocks += _panel(spec, panel, results, quick)
    blocks += _without_results(spec, results, quick)
    left_out = [panel.title for panel in spec.panels if not columns(panel, quick)]
    if left_out:
        blocks.append(escaped(f"Left out of a quick run: {'; '.join(left_out)}."))
    if spec.claims:
        told = list(_claims(spec, results, quick))
        blocks += [heading(3, "What the paper claims"), verdicts(told)]
    return [*blocks, *_measured(spec, results, quick)]


def has_results(panel: Panel, results: Results, quick: bool = False) -> bool:
    """Whether any cell of the panel was measured."""
    return any(cell.values for cell in cells(panel, results, quick))


def figure_name(spec: Spec, panel: Panel) -> str:
    """The file of a plot."""
    return f"{spec.name}-{panel.name}.svg"


def _panel(spec: Spec, panel: Panel, results: Results, quick: bool) -> Iterator[str]:
    found = cells(panel, results, quick)
    yield heading(3, panel.title)
    if quick and panel.quick_settings:
        changed = ", ".join(f"{name} = {value}" for name, value in panel.quick_settings.items())
        yield escaped(f"Settings of this quick run that differ from the published ones: {changed}.")
    if panel.kind == "plot":
        alt = f"{panel.title}: {panel.unit} against {panel.x_label}, {', '.join(panel.methods)}"
        yield picture(figure_name(spec, panel), alt)
    single = {cell.x for cell in found} <= set(columns(panel, quick))
    along = panel.axis if panel.curve and single else panel.x_label
    over = f", {panel.relative_to} over the method" if panel.relative_to else ""
    better = "" if panel.lower_is_better else "; more is better"
    yield escaped(f"{panel.unit[:1].upper()}{panel.unit[1:]}{over}{better}; columns: {along}.")
    yield _table(panel, found, along, results)
    reasons = _reasons(columns(panel, quick), found)
    if reasons:
        yield verdicts(reasons)


def _without_results(spec: Spec, results: Results, quick: bool) -> Iterator[str]:
    """The panels of which nothing was measured, and why; each reason once."""
    titles: dict[tuple[str, str], list[str]] = {}
    for panel in spec.panels:
        if columns(panel, quick) and not has_results(panel, results, quick):
            for cell in cells(panel, results, quick):
                told = titles.setdefault((cell.word, cell.reason or "not run yet."), [])
                if panel.title not in told:
                    told.append(panel.title)
    if titles:
        yield heading(3, "Not measured")
        yield verdicts([(word, f"{'; '.join(of)}: {why}") for (word, why), of in titles.items()])


def _table(panel: Panel, found: Sequence[Cell], along: str, results: Results) -> str:
    by_place = {(cell.method, cell.x): cell for cell in found}
    absent = {cell.method: cell for cell in found if not cell.values}
    x = list(dict.fromkeys(cell.x for cell in found if cell.values or not panel.curve))
    if panel.curve and len(x) > _MOST_POINTS:
        x = [x[round(i * (len(x) - 1) / (_MOST_POINTS - 1))] for i in range(_MOST_POINTS)]
    rows = [
        [escaped(f"{method}{_KEPT if method in panel.kept else ''}")]
        + [_entry(panel, by_place.get((method, one), absent.get(method)), results) for one in x]
        for method in panel.methods
    ]
    return table([along, *labels(x)], rows)


def _entry(panel: Panel, cell: Cell | None, results: Results) -> str:
    if cell is None:
        return ""
    digits = panel.digits if panel.printed else None
    printed = number(cell.printed, digits)
    lines = [f"[{printed}]"] if printed else []
    if cell.values:
        places = decimals(cell.mean) if digits is None else digits
        spread = number(cell.deviation, places, shown=1)
        ours = number(cell.mean, digits) + (f" ± {spread}" if spread else "")
        older = cell.x in panel.x and results.is_older(panel.run(cell.method, cell.x))
        lines.insert(0, f"{ours} ({len(cell.values)}){OLDER * older}")
    verdict = [] if cell.word == NOT_PRINTED else [badge(cell.word)]
    return "<br>".join([*map(escaped, lines), *verdict])


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


def _measured(spec: Spec, results: Results, quick: bool) -> Iterator[str]:
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
    yield heading(3, "Where it was measured")
    places: dict[str, list[dict[str, Any]]] = {}
    for row in rows.values():
        place = {
            name: one for name, one in (row.get("environment") or {}).items() if name != "commit"
        }
        places.setdefault(json.dumps(place), []).append(row)
    items = [_place(json.loads(place), made) for place, made in places.items()]
    checksums = sorted(
        {
            (row["run"]["data"], row["data_sha256"])
            for row in rows.values()
            if row.get("data_sha256")
        }
    )
    items += [f"Data {name}: SHA-256 {checksum}" for name, checksum in checksums]
    yield bullets(items)


def _place(environment: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    took = clock(sum(row.get("seconds") or 0.0 for row in rows))
    runs = f"{len(rows)} {'run' if len(rows) == 1 else 'runs'} in {took}"
    if not environment:
        return f"{runs}, on a machine that is not known."
    versions = ", ".join(f"{name} {one}" for name, one in environment["versions"].items())
    threads = f"{environment['threads']} {'thread' if environment['threads'] == 1 else 'threads'}"
    text = (
        f"{runs} on {environment['cpu']}, {environment['cores']} cores, {threads}; "
        f"Python {environment['python']}, {versions}"
    )
    made = dict.fromkeys(row["environment"].get("commit") for row in rows)
    commits = [_short(commit) for commit in made if commit]
    if not commits:
        return f"{text}."
    return f"{text}; {'commit' if len(commits) == 1 else 'commits'} {', '.join(commits)}."


def _short(commit: str) -> str:
    """The first digits of a commit, and whether the checkout had changes."""
    digits, _, rest = commit.partition(" ")
    return f"{digits[:_COMMIT_DIGITS]} {rest}".strip()
