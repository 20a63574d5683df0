"""The few sentences that a reader wants first, with their numbers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reproduction.judge import NOT_RUN, cells, comparable
from reproduction.spec import Panel, Spec
from reproduction.store import Results
from reproduction.verdict import UNDECIDED

_SHARE_OF_CELLS = 0.9  # the bar: cells that must be as good as published
_MAX_ACCURACY_LOSS = 1  # percentage points that a faster row may lose
# the map with its defaults, with a learned metric, and on gradients instead of pixels
_CRAFT = ("CRAFT v2", "CRAFT metric", "CRAFT images")


@dataclass(frozen=True)
class Headline:
    """A sentence, and whether what it speaks of is reached."""

    text: str
    word: str


def headlines(specs: Sequence[Spec], results: Results, quick: bool = False) -> list[Headline]:
    """Those of the tables that are there."""
    told: list[tuple[str, Callable[[Spec, Results, bool], Headline]]] = [
        *(
            ("craft-table-1", partial(at_or_below, ours=ours, printed=printed))
            for ours in _CRAFT
            for printed in ("CM RFM", "CM TS")
        ),
        ("craft-table-1", below_every_row),
        ("kk-table-1", speed_up),
        ("kk-table-1", own_speed_up),
        ("pp-table-2", speed_up),
        ("pp-table-2", own_speed_up),
    ]
    found = [
        tell(spec, results, quick) for name, tell in told for spec in specs if spec.name == name
    ]
    if not quick:
        return found
    return [one if one.word == NOT_RUN else replace(one, word=UNDECIDED) for one in found]


def at_or_below(
    spec: Spec, results: Results, quick: bool = False, *, ours: str, printed: str
) -> Headline:
    """In how many cells a row of ours is as good as a published row, or better."""
    won = []
    for panel in _panels(spec, quick):
        for cell in cells(panel, results, quick):
            value = panel.printed_at(printed, cell.x) if cell.method == ours else math.nan
            if cell.values and not math.isnan(value):
                won.append(_gain(panel, cell.mean, value) >= 0)
    what = f"{ours} is at or below the published {printed}"
    if not won:
        return Headline(f"Whether {what} was not measured.", NOT_RUN)
    share = sum(won) / len(won)
    total = sum(not math.isnan(one) for panel in spec.panels for one in panel.printed[printed])
    text = (
        f"{what} in the mean in {sum(won)} of {len(won)} cells ({share:.0%}; the bar is "
        f"{_SHARE_OF_CELLS:.0%}){_missing(total - len(won))}."
    )
    return Headline(text, "reached" if share >= _SHARE_OF_CELLS else "missed")


def below_every_row(spec: Spec, results: Results, quick: bool = False) -> Headline:
    """In how many columns the best of the rows that only we have is below all published ones."""
    won, best = [], []
    for panel in _panels(spec, quick):
        ours = [cell for cell in cells(panel, results, quick) if cell.method not in panel.printed]
        for x in dict.fromkeys(cell.x for cell in ours if cell.values):
            printed = [panel.printed_at(method, x) for method in panel.printed]
            column = [cell for cell in ours if cell.x == x and cell.values]
            first = (min if panel.lower_is_better else max)(column, key=lambda cell: cell.mean)
            gains = [_gain(panel, first.mean, one) for one in printed if not math.isnan(one)]
            if gains:
                won.append(min(gains) > 0)
                best.append(first.method)
    if not won:
        return Headline(
            "Whether our best row is below every published one was not measured.", NOT_RUN
        )
    names = ", ".join(f"{name} in {best.count(name)}" for name in dict.fromkeys(best))
    return Headline(
        f"The best of our own rows is below every published row, Exact included, in {sum(won)} of "
        f"{len(won)} columns (the best, chosen by test error, is {names})"
        f"{_missing(sum(len(panel.x) for panel in spec.panels) - len(won))}.",
        "reached" if all(won) else "missed",
    )


def speed_up(spec: Spec, results: Results, quick: bool = False) -> Headline:
    """In how many cells a method is sped up at least as much as published."""
    pairs = [
        (panel, cell)
        for panel in _panels(spec, quick)
        if panel.relative_to
        for cell in cells(panel, results, quick)
        if cell.values and not math.isnan(cell.printed)
    ]
    if not pairs:
        return Headline(f"{_short(spec)}: speed-ups were not measured.", NOT_RUN)
    won = [_gain(panel, cell.mean, cell.printed) >= 0 for panel, cell in pairs]
    relative = [panel for panel in spec.panels if panel.relative_to]
    every = [one for panel in relative for row in panel.printed.values() for one in row]
    total = sum(not math.isnan(one) for one in every)
    ours = max((cell for _, cell in pairs), key=lambda cell: cell.mean)
    printed = max((cell for _, cell in pairs), key=lambda cell: cell.printed)
    return Headline(
        f"{_short(spec)}: the speed-up is at least the published one in {sum(won)} of {len(won)} "
        f"cells; the largest is {ours.mean:,.0f} ({ours.method}, {ours.x}), published is up to "
        f"{printed.printed:,.0f} ({printed.method}, {printed.x}){_missing(total - len(won))}.",
        "reached" if all(won) else "missed",
    )


def own_speed_up(spec: Spec, results: Results, quick: bool = False) -> Headline:
    """In how many columns a row of ours is as fast as the fastest published row, and as good."""
    won, largest = [], 0.0
    for panel in _panels(spec, quick):
        ours = [
            cell
            for cell in (cells(panel, results, quick) if panel.relative_to else ())
            if cell.method not in {*panel.printed, panel.relative_to} and cell.values
        ]
        for x in dict.fromkeys(cell.x for cell in ours):
            printed = {method: panel.printed_at(method, x) for method in panel.printed}
            known = {method: one for method, one in printed.items() if not math.isnan(one)}
            if known:
                fastest = max(known, key=lambda method: known[method])
                column = [cell for cell in ours if cell.x == x]
                largest = max(largest, *(cell.mean for cell in column))
                accurate = _as_accurate(spec, panel, fastest, x, results, quick)
                won.append(
                    any(
                        _gain(panel, cell.mean, known[fastest]) >= 0 and cell.method in accurate
                        for cell in column
                    )
                )
    if not won:
        return Headline(f"{_short(spec)}: our own speed-ups were not measured.", NOT_RUN)
    return Headline(
        f"{_short(spec)}: a row of ours has at least the largest published speed-up of the column, "
        f"at no more than {_MAX_ACCURACY_LOSS} point less than the published accuracy beside it, "
        f"in {sum(won)} of {len(won)} columns; the largest of ours is {largest:,.0f}.",
        "reached" if all(won) else "missed",
    )


def _as_accurate(
    spec: Spec, timed: Panel, printed: str, x: Any, results: Results, quick: bool
) -> set[str]:
    """The methods that are about as accurate in a panel's runs as a published row is."""
    found = set()
    for panel in spec.panels:
        if panel.value == "accuracy" and panel.settings == timed.settings:
            bar = panel.printed_at(printed, x) - _MAX_ACCURACY_LOSS
            same_x = (cell for cell in cells(panel, results, quick) if cell.x == x)
            found |= {cell.method for cell in same_x if cell.mean >= bar}
    return found


def _gain(panel: Panel, ours: float, printed: float) -> float:
    """By how much we are better, in the published digits."""
    gain = printed - round(ours, panel.digits)
    return round(gain if panel.lower_is_better else -gain, panel.digits)


def _panels(spec: Spec, quick: bool) -> list[Panel]:
    return [panel for panel in spec.panels if comparable(panel, quick)]


def _missing(count: int) -> str:
    if not count:
        return ""
    return f"; {count} more {'is' if count == 1 else 'are'} published and not measured"


def _short(spec: Spec) -> str:
    return spec.title.partition(":")[0]
