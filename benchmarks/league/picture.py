"""The picture of the report: error ratio against time, a point for each learner."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.league.standings import Standing

LETTER_WIDTH, LABEL_HEIGHT, GAP = 6.4, 13, 6  # of labels, about, in pixels of the drawing
SIDES = [(1, 1), (1, -1), (-1, 1), (-1, -1), (1, 3), (-1, 3), (1, -3), (-1, -3)]
Box = tuple[float, float, float, float]  # left, bottom, right and top
OURS, THEIRS = "#c0392b", "#34495e"


def draw(panels: dict[str, list[Standing]], base: str, path: Path) -> None:
    """One panel for each kind of task; `base` is the learner whose time is 1."""
    figure = Figure(figsize=(10, 4.6), dpi=110, layout="constrained")
    for place, (title, found) in enumerate(panels.items(), start=1):
        draw_panel(figure.add_subplot(1, len(panels), place), title, base, found)
    figure.draw_without_rendering()  # settles where points are
    for axes, found in zip(figure.axes, panels.values(), strict=True):
        write_labels(axes, found)
    figure.savefig(path, dpi=figure.dpi)


def draw_panel(axes: Any, title: str, base: str, found: list[Standing]) -> None:
    axes.set_xscale("log")
    axes.margins(x=0.1, y=0.12)
    axes.set_title(title)
    axes.set_xlabel(f"median time to fit, {base} = 1")
    axes.set_ylabel("error over the best error, geometric mean")
    axes.grid(alpha=0.3)
    for one in found:
        axes.plot(one.time, one.ratio, "o", color=OURS if one.method.is_ours else THEIRS)


def write_labels(axes: Any, found: list[Standing]) -> None:
    """The name of each learner beside its point, where neither points nor names are."""
    points = [axes.transData.transform((one.time, one.ratio)) for one in found]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    taken += list(outside_of(axes))
    for one, (x, y) in zip(found, points, strict=True):
        boxes = [label_box(x, y, len(one.method.words), *side) for side in SIDES]
        free = [not any(overlap(box, other) for other in taken) for box in boxes]
        place = free.index(True) if any(free) else 0
        taken.append(boxes[place])
        axes.annotate(
            one.method.words,
            (one.time, one.ratio),
            xytext=(boxes[place][0] - x, boxes[place][1] - y),
            textcoords="offset pixels",
            color=OURS if one.method.is_ours else THEIRS,
            fontsize=8,
        )


def label_box(x: float, y: float, n_letters: int, right: int, up: int) -> Box:
    """Where a label would be, on one side of its point and some half lines above or below it."""
    width = n_letters * LETTER_WIDTH
    left = x + GAP if right > 0 else x - GAP - width
    bottom = y + up * LABEL_HEIGHT / 2 - LABEL_HEIGHT / 2 + (2 if up > 0 else -2)
    return left, bottom, left + width, bottom + LABEL_HEIGHT


def outside_of(axes: Any) -> Iterator[Box]:
    """What is left and right of the axes, where no label belongs."""
    left, right = axes.bbox.x0, axes.bbox.x1
    yield -1e9, -1e9, left, 1e9
    yield right, -1e9, 1e9, 1e9


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
