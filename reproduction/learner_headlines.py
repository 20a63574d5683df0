"""Headlines about the learner: the log-loss against LIBLINEAR, and error against training time."""

import math
import statistics
from typing import Any, NamedTuple

from reproduction.headline import (
    Headline,
    comparable_panels,
    gain,
    missing,
    of_those,
    reached,
    short_title,
)
from reproduction.judge import NOT_RUN, cells
from reproduction.spec import Panel, Spec
from reproduction.store import Results
from reproduction.verdict import UNDECIDED

_LIBLINEAR, _LOG_LOSS = " + LIBLINEAR", " + log-loss"
_ROWS = "train_rows"
_TIMED = "training"  # the panel of errors against seconds
_OURS = ("CRAFT v2, log-loss", "KernelClassifier()")
_PAPERS = ("RFM", "TS", "CM RFM", "CM TS")


class Trained(NamedTuple):
    """One training: what it took, and how good it was."""

    method: str
    seconds: float
    error: float


def as_accurate(spec: Spec, results: Results) -> Headline:
    """In how many cells the log-loss is as accurate as published for LIBLINEAR on such features.

    Where a panel has the log-loss with as many rows as the paper, that one counts.
    """
    won: dict[tuple[Any, ...], bool | None] = {}
    again: dict[tuple[Any, ...], bool] = {}  # whether LIBLINEAR is as accurate as published here
    panels = [panel for panel in spec.panels if panel.value == "accuracy"]
    for panel in sorted(panels, key=lambda panel: panel.settings.get(_ROWS, 0)):
        others = sorted((name, one) for name, one in panel.settings.items() if name != _ROWS)
        ours = {(cell.method, cell.x): cell for cell in cells(panel, results)}
        for method, x in _printed(panel):
            same = method.replace(_LIBLINEAR, _LOG_LOSS)
            cell, place = ours.get((same, x)), (*others, same, x)
            won.setdefault(place, None)
            published = panel.printed_at(method, x)
            if cell is not None and cell.values:
                won[place] = gain(panel, cell.mean, published) >= 0
            rival = ours.get((method, x))
            if method.endswith(_LIBLINEAR) and rival is not None and rival.values:
                again[place] = gain(panel, rival.mean, published) >= 0
    known = [one for one in won.values() if one is not None]
    what = (
        f"{short_title(spec)}: with the same maps at the same D, the log-loss is at least as "
        f"accurate as published for LIBLINEAR"
    )
    if not known:
        return Headline(f"{what}: not measured.", NOT_RUN)
    text = f"{what} in {sum(known)} of {len(known)} cells{missing(len(won) - len(known))}."
    too = sum(one is False and again.get(place) is False for place, one in won.items())
    if too:
        text += (
            f" In {of_those(too, len(known) - sum(known))} where it is not, LIBLINEAR, run here, "
            f"is less accurate than published too."
        )
    return Headline(text, reached(all(known)))


def _printed(panel: Panel) -> list[tuple[str, str]]:
    return [
        (method, x)
        for method in panel.printed
        for x in panel.x
        if method.endswith((_LIBLINEAR, _LOG_LOSS)) and not math.isnan(panel.printed_at(method, x))
    ]


def faster_than_liblinear(spec: Spec, results: Results) -> Headline:
    """In how many cells the log-loss is learned faster than by LIBLINEAR on the same features."""
    ratios: list[float] = []
    exact: list[float] = []
    for panel in spec.panels:
        if panel.value == "train_seconds":
            for x in panel.x:
                libsvm = _seconds(panel, "K + LIBSVM", x, results)
                for method in panel.methods:
                    ours = _seconds(panel, method, x, results)
                    rival = method.replace(_LOG_LOSS, _LIBLINEAR)
                    theirs = _seconds(panel, rival, x, results)
                    if method.endswith(_LOG_LOSS) and rival in panel.methods and ours and theirs:
                        ratios.append(theirs / ours)
                        exact += [libsvm / ours] if libsvm else []
    what = (
        f"{short_title(spec)}: training with the log-loss, choice of alpha included, takes no "
        f"longer than LIBLINEAR with a given C on the same features"
    )
    if not ratios:
        return Headline(f"{what}: not measured.", NOT_RUN)
    won = sum(ratio >= 1 for ratio in ratios)
    text = f"{what} in {won} of {len(ratios)} cells (median: {_times(ratios)} times as fast)"
    if exact:
        faster = sum(ratio >= 1 for ratio in exact)
        text += (
            f", and no longer than LIBSVM in {faster} of {len(exact)} (median: {_times(exact)} "
            f"times as fast)"
        )
    return Headline(f"{text}.", reached(won == len(ratios)))


def _times(ratios: list[float]) -> str:
    middle = statistics.median(ratios)
    return f"{middle:.2g}" if middle < 10 else f"{middle:,.0f}"


def _seconds(panel: Panel, method: str, x: str, results: Results) -> float | None:
    if method not in panel.methods:
        return None
    rows = results.of(panel.run(method, x))
    return statistics.fmean(row["values"][panel.value] for row in rows) if rows else None


def time_to(spec: Spec, results: Results, *, level: float) -> Headline:
    """How long each learner takes to a test error on MNIST, at the smallest size that has it."""
    made = _trainings(spec, results)
    what = f"MNIST, test error of at most {level:g} %"
    if not any(one.method in _OURS for one in made):
        return Headline(f"{what}: the time was not measured.", NOT_RUN)
    least = {
        method: min((o.seconds for o in made if o.method == method and o.error <= level), default=0)
        for method in dict.fromkeys(one.method for one in made)
    }
    known = sorted((seconds, method) for method, seconds in least.items() if seconds)
    never = [method for method, seconds in least.items() if not seconds]
    told = ", ".join(f"{method} {seconds:,.0f}" for seconds, method in known)
    text = f"{what}, CPU seconds of training: {told}." if told else f"{what}: none reaches it."
    if never and told:
        text += f" Not reached at the sizes that were run: {', '.join(never)}."
    word = reached(bool(known) and known[0][1] in _OURS)
    left = [method for method in never if method not in _OURS and _is_left(spec, results, method)]
    if left and word == reached(True):
        text += f" Larger sizes of {', '.join(left)} were not run, and may be the fastest."
        word = UNDECIDED
    return Headline(text, word)


def _is_left(spec: Spec, results: Results, method: str) -> bool:
    """Whether some sizes of a method in the panel of trainings have no result."""
    return any(
        not results.of(panel.run(method, x))
        for panel in spec.panels
        if panel.name == _TIMED
        for x in panel.x
    )


def below_at_every_time(spec: Spec, results: Results) -> Headline:
    """Whether every training of the papers' methods has one of ours that is as fast and as good."""
    made = _trainings(spec, results)
    ours = [one for one in made if one.method in _OURS]
    papers = [one for one in made if one.method in _PAPERS]
    what = f"{short_title(spec)}: one of our trainings takes no longer and makes no more errors"
    if not ours or not papers:
        return Headline(f"{what}: not measured.", NOT_RUN)
    beaten = sum(
        any(o.seconds <= one.seconds and o.error <= one.error for o in ours) for one in papers
    )
    return Headline(
        f"{what} for {beaten} of {len(papers)} trainings of {', '.join(_PAPERS)}.",
        reached(beaten == len(papers)),
    )


def _trainings(spec: Spec, results: Results) -> list[Trained]:
    return [
        Trained(method, row["values"]["train_seconds"], row["values"]["error"])
        for panel in comparable_panels(spec)
        if panel.name == _TIMED
        for method in panel.methods
        for x in panel.x
        for row in results.of(panel.run(method, x))
    ]
