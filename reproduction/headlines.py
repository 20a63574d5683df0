"""The few sentences that a reader wants first, with their numbers."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from reproduction.against_craft import is_ours
from reproduction.headline import Headline, comparable_panels, gain, missing, of_those
from reproduction.judge import NOT_RUN, cells
from reproduction.learner_headlines import (
    as_accurate,
    below_at_every_time,
    faster_than_liblinear,
    time_to,
)
from reproduction.spec import Spec
from reproduction.speed_headlines import own_speed_up, speed_up
from reproduction.store import Results

_SHARE_OF_CELLS = 0.9  # the bar: cells that must be as good as published
# the default map with the log-loss and with squared errors; a learned metric; gradients of images
_CRAFT = ("CRAFT v2, log-loss", "CRAFT v2", "CRAFT metric", "CRAFT images")
_SVM_TABLES = ("kk-table-1", "pp-table-1", "pp-table-2", "pp-table-3")
_LEVELS = (2.5, 2.0)  # test errors in per cent


def headlines(specs: Sequence[Spec], results: Results) -> list[Headline]:
    """Those of the tables that are there."""
    told: list[tuple[str, Callable[[Spec, Results], Headline]]] = [
        *(
            ("craft-table-1", partial(at_or_below, ours=ours, printed=printed))
            for ours in _CRAFT
            for printed in ("CM RFM", "CM TS")
        ),
        ("craft-table-1", below_every_row),
        ("craft-figure-7c", below_at_every_time),
        *(("craft-figure-7c", partial(time_to, level=level)) for level in _LEVELS),
        *((name, as_accurate) for name in _SVM_TABLES),
        *((name, faster_than_liblinear) for name in _SVM_TABLES),
        ("kk-table-1", speed_up),
        ("kk-table-1", own_speed_up),
        ("pp-table-2", speed_up),
        ("pp-table-2", own_speed_up),
    ]
    return [tell(spec, results) for name, tell in told for spec in specs if spec.name == name]


def at_or_below(spec: Spec, results: Results, *, ours: str, printed: str) -> Headline:
    """In how many cells a row of ours is as good as a published row, or better."""
    won, below_exact, again = [], 0, 0
    for panel in comparable_panels(spec):
        found = cells(panel, results)
        exact = {cell.x: cell.mean for cell in found if cell.method == "Exact"}
        theirs = {cell.x: cell.mean for cell in found if cell.method == printed}
        for cell in found:
            value = panel.printed_at(printed, cell.x) if cell.method == ours else math.nan
            if cell.values and not math.isnan(value):
                won.append(gain(panel, cell.mean, value) >= 0)
                below_exact += not won[-1] and value < exact.get(cell.x, -math.inf)
                again += not won[-1] and gain(panel, theirs.get(cell.x, -math.inf), value) < 0
    what = f"{ours} makes no more test errors than the published {printed}"
    if not won:
        return Headline(f"{what}: not measured.", NOT_RUN)
    share = sum(won) / len(won)
    total = sum(not math.isnan(one) for panel in spec.panels for one in panel.printed[printed])
    text = (
        f"{what} in {sum(won)} of {len(won)} cells ({share:.0%}; the goal is "
        f"{_SHARE_OF_CELLS:.0%}){missing(total - len(won))}."
    )
    if again:
        text += (
            f" In {of_those(again, len(won) - sum(won))} where it makes more, {printed}, run here, "
            f"makes more than published too."
        )
    if below_exact:
        text += (
            f" In {below_exact} of these, the published error of {printed} is below the one that "
            f"we measured for the exact kernel."
        )
    return Headline(text, "reached" if share >= _SHARE_OF_CELLS else "missed")


def below_every_row(spec: Spec, results: Results) -> Headline:
    """In how many columns the best of our own rows is below all published ones."""
    what = "The best of our own rows makes fewer errors than every published row, Exact included"
    won, best = [], []
    for panel in comparable_panels(spec):
        ours = [cell for cell in cells(panel, results) if is_ours(panel, cell.method)]
        for x in dict.fromkeys(cell.x for cell in ours if cell.values):
            printed = [panel.printed_at(method, x) for method in panel.printed]
            column = [cell for cell in ours if cell.x == x and cell.values]
            first = (min if panel.lower_is_better else max)(column, key=lambda cell: cell.mean)
            gains = [gain(panel, first.mean, one) for one in printed if not math.isnan(one)]
            if gains:
                won.append(min(gains) > 0)
                best.append(first.method)
    if not won:
        return Headline(f"{what}: not measured.", NOT_RUN)
    names = ", ".join(f"{name} in {best.count(name)}" for name in dict.fromkeys(best))
    return Headline(
        f"{what}, in {sum(won)} of {len(won)} columns"
        f"{missing(sum(len(panel.x) for panel in spec.panels) - len(won))}. The best, chosen by "
        f"test error, is {names}.",
        "reached" if all(won) else "missed",
    )
