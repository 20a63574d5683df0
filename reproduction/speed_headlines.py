"""Headlines about speed-ups over an exact support vector machine."""

import math
from typing import Any

from reproduction.headline import Headline, comparable_panels, gain, missing, short_title
from reproduction.judge import NOT_RUN, cells
from reproduction.spec import Panel, Spec
from reproduction.store import Results

_MAX_ACCURACY_LOSS = 1  # percentage points that a faster row may lose


def speed_up(spec: Spec, results: Results) -> Headline:
    """In how many cells a method is sped up at least as much as published."""
    pairs = [
        (panel, cell)
        for panel in comparable_panels(spec)
        if panel.relative_to
        for cell in cells(panel, results)
        if cell.values and not math.isnan(cell.printed)
    ]
    if not pairs:
        return Headline(f"{short_title(spec)}: speed-ups were not measured.", NOT_RUN)
    won = [gain(panel, cell.mean, cell.printed) >= 0 for panel, cell in pairs]
    relative = [panel for panel in spec.panels if panel.relative_to]
    every = [one for panel in relative for row in panel.printed.values() for one in row]
    total = sum(not math.isnan(one) for one in every)
    ours = max((cell for _, cell in pairs), key=lambda cell: cell.mean)
    printed = max((cell for _, cell in pairs), key=lambda cell: cell.printed)
    return Headline(
        f"{short_title(spec)}: the speed-up is at least the published one in {sum(won)} of "
        f"{len(won)} cells{missing(total - len(won))}. The largest that we measured is "
        f"{ours.mean:,.0f} ({ours.method}, {ours.x}); the largest published one is "
        f"{printed.printed:,.0f} ({printed.method}, {printed.x}).",
        "reached" if all(won) else "missed",
    )


def own_speed_up(spec: Spec, results: Results) -> Headline:
    """In how many columns a row of ours is as fast as the fastest published row, and as good."""
    won, largest = [], 0.0
    for panel in comparable_panels(spec):
        ours = [
            cell
            for cell in (cells(panel, results) if panel.relative_to else ())
            if cell.method not in {*panel.printed, panel.relative_to} and cell.values
        ]
        for x in dict.fromkeys(cell.x for cell in ours):
            printed = {method: panel.printed_at(method, x) for method in panel.printed}
            known = {method: one for method, one in printed.items() if not math.isnan(one)}
            if known:
                fastest = max(known, key=lambda method: known[method])
                column = [cell for cell in ours if cell.x == x]
                largest = max(largest, *(cell.mean for cell in column))
                accurate = _as_accurate(spec, panel, fastest, x, results)
                won.append(
                    any(
                        gain(panel, cell.mean, known[fastest]) >= 0 and cell.method in accurate
                        for cell in column
                    )
                )
    if not won:
        return Headline(f"{short_title(spec)}: our own speed-ups were not measured.", NOT_RUN)
    return Headline(
        f"{short_title(spec)}: in {sum(won)} of {len(won)} columns, one of our rows has at least "
        f"the largest published speed-up, and its accuracy is at most {_MAX_ACCURACY_LOSS} "
        f"percentage point below the published one. Our largest speed-up is {largest:,.0f}.",
        "reached" if all(won) else "missed",
    )


def _as_accurate(spec: Spec, timed: Panel, printed: str, x: Any, results: Results) -> set[str]:
    """The methods that are about as accurate in a panel's runs as a published row is."""
    found = set()
    for panel in spec.panels:
        if panel.value == "accuracy" and panel.settings == timed.settings:
            bar = panel.printed_at(printed, x) - _MAX_ACCURACY_LOSS
            same_x = (cell for cell in cells(panel, results) if cell.x == x)
            found |= {cell.method for cell in same_x if cell.mean >= bar}
    return found
