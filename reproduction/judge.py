"""What was measured in each cell of a panel, with its verdict; the verdicts of claims."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reproduction.spec import Claim, Panel, Spec
from reproduction.store import Results
from reproduction.verdict import (
    FAILS,
    HOLDS,
    ONE_RUN,
    UNDECIDED,
    compared,
    half_width,
    pooled,
    verdict,
)

NOT_PRINTED, SKIPPED, NOT_RUN = "not printed", "skipped", "not run"
OTHER = "other settings"


@dataclass(frozen=True)
class Cell:
    """A method at one x.

    Attributes
    ----------
    values : tuple of float
        Ours, one for each seed.
    printed : float
        nan if nothing is.
    word : str
        The verdict, or why there is none.
    half_width : float
        Of the interval of the verdict; nan if the spread is not known.
    reason : str
        Why there are no values, where that is known.
    """

    method: str
    x: Any
    values: tuple[float, ...]
    printed: float
    word: str
    half_width: float = math.nan
    reason: str = ""

    @property
    def mean(self) -> float:
        """Over seeds; nan without any."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """Over seeds; nan for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else math.nan


@dataclass(frozen=True)
class Judged:
    """A claim, and at how many x it holds, is undecided, fails, and rests on one run."""

    claim: Claim
    holds: int
    undecided: int
    fails: int
    one_run: int

    @property
    def word(self) -> str:
        """The claim as a whole: at every x."""
        if self.fails:
            return FAILS
        if self.undecided:
            return UNDECIDED
        return HOLDS if self.holds else ONE_RUN if self.one_run else NOT_RUN


def columns(panel: Panel, quick: bool) -> list[Any]:
    """The x that are shown."""
    return panel.quick if quick else panel.x


def comparable(panel: Panel, quick: bool) -> bool:
    """Whether the runs are made as the paper made them."""
    return panel.same_settings and not (quick and panel.quick_settings)


def cells(panel: Panel, results: Results, quick: bool = False) -> list[Cell]:
    """All cells of a panel, method by method.

    Where a run gives a curve, x is a point of the curve, and has a cell of its own.
    """
    found = []
    for method in panel.methods:
        points = _points(panel, method, results, quick)
        spread = pooled(points.values())
        for x, values in points.items():
            printed = math.nan if panel.curve else panel.printed_at(method, x)
            if not values:
                word, reason = _absent(panel, method, x, results, quick)
                found.append(Cell(method, x, (), printed, word, reason=reason))
                continue
            width = half_width(statistics.fmean(values), len(values), spread)
            word = NOT_PRINTED
            if not math.isnan(printed) and not comparable(panel, quick):
                word = OTHER
            elif not math.isnan(printed):
                word = verdict(values, printed, spread, panel.digits, panel.lower_is_better)
            found.append(Cell(method, x, values, printed, word, width))
    return found


def cell_values(
    panel: Panel, results: Results, method: str, x: Any, *, quick: bool = False
) -> list[float]:
    """The shown value of each seed that has been run.

    Where the panel is relative to a method, that method's value over the one of `method`, of equal
    seeds; a seed that only one of them has is left out.
    """
    values = _by_seed(panel, results, method, x, quick)
    if not panel.relative_to:
        return list(values.values())
    reference = _by_seed(panel, results, panel.relative_to, x, quick)
    return [reference[seed] / values[seed] for seed in values if seed in reference]


def _by_seed(panel: Panel, results: Results, method: str, x: Any, quick: bool) -> dict[int, float]:
    rows = results.of(panel.run(method, x, quick))
    return {row["run"]["seed"]: float(row["values"][panel.value]) for row in rows}


def judged(claim: Claim, spec: Spec, results: Results, quick: bool = False) -> Judged:
    """At how many x a claim holds."""
    panel = next(panel for panel in spec.panels if panel.name == claim.panel)
    better, than = (_points(panel, method, results, quick) for method in (claim.better, claim.than))
    spreads = pooled(better.values()), pooled(than.values())
    words = Counter(
        compared(better[x], than[x], spreads, panel.lower_is_better)
        for x in better
        if better[x] and than.get(x)
    )
    return Judged(claim, words[HOLDS], words[UNDECIDED], words[FAILS], words[ONE_RUN])


def counts(found: Iterable[Cell]) -> Counter[str]:
    """How many cells have each word."""
    return Counter(cell.word for cell in found)


def curves(
    panel: Panel, method: str, x: Any, results: Results, quick: bool
) -> list[tuple[list[float], list[float]]]:
    """For each seed the curve of a run; a run may also be a single point of it."""
    run = panel.run(method, x, quick)
    rows = [row["values"] for row in results.of(run)]
    if panel.curve_measure:
        along = [row["values"] for row in results.of(run | {"measure": panel.curve_measure})]
        mean = statistics.fmean(row[panel.curve] for row in along) if along else math.nan
        return [([mean], [row[panel.value]]) for row in rows]
    made = [(row[panel.curve], row[panel.value]) for row in rows]
    return [
        (along, values) if isinstance(along, list) else ([along], [values])
        for along, values in made
    ]


def _points(
    panel: Panel, method: str, results: Results, quick: bool
) -> dict[Any, tuple[float, ...]]:
    """The values of all seeds at each x, or at each point of the curves there."""
    points: dict[Any, list[float]] = {}
    shown = columns(panel, quick)
    for x in shown:
        if not panel.curve:
            points[x] = cell_values(panel, results, method, x, quick=quick)
            continue
        made = curves(panel, method, x, results, quick)
        single = all(len(along) == 1 for along, _ in made)  # then x tells the points apart
        if single:
            points[x] = [values[0] for _, values in made]
            continue
        for along, values in made:
            for at, value in zip(along, values, strict=True):
                points.setdefault(at if len(shown) == 1 else (x, at), []).append(value)
    return {at: tuple(values) for at, values in points.items()}


def _absent(panel: Panel, method: str, x: Any, results: Results, quick: bool) -> tuple[str, str]:
    """Why a cell has no values: a word and a reason."""
    reason = results.skipped(panel.run(method, x, quick))
    if reason is not None:
        return SKIPPED, reason
    return NOT_RUN, "" if quick else panel.why_not_run(method, x)
