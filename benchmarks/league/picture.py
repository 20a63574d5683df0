"""The picture of the report: error ratio against time, a point for each learner."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.league.standings import Standing

LABEL_WIDTH, LABEL_HEIGHT = 90, 16  # in points of the drawing
OURS, THEIRS = "#c0392b", "#34495e"


def draw(panels: dict[str, list[Standing]], base: str, path: Path) -> None:
    """One panel for each kind of task; `base` is the learner whose time is 1."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for place, (title, found) in enumerate(panels.items(), start=1):
        draw_panel(figure.add_subplot(1, len(panels), place), title, base, found)
    figure.savefig(path, dpi=110)


def draw_panel(axes: Any, title: str, base: str, found: list[Standing]) -> None:
    axes.set_xscale("log")
    axes.margins(x=0.1, y=0.12)
    axes.set_title(title)
    axes.set_xlabel(f"median time to fit, {base} = 1")
    axes.set_ylabel("error over the best error, geometric mean")
    axes.grid(alpha=0.3)
    for one in found:
        axes.plot(one.time, one.ratio, "o", color=OURS if one.method.is_ours else THEIRS)
    points = [axes.transData.transform((one.time, one.ratio)) for one in found]
    middle = axes.transAxes.transform((0.5, 0.5))[0]
    for place, (one, (x, y)) in enumerate(zip(found, points, strict=True)):
        others = points[:place] + points[place + 1 :]
        crowded = any(abs(x - a) < LABEL_WIDTH and 0 <= b - y < LABEL_HEIGHT for a, b in others)
        axes.annotate(
            one.method.words,
            (one.time, one.ratio),
            xytext=(5 if x < middle else -5, -4 if crowded else 4),
            textcoords="offset points",
            horizontalalignment="left" if x < middle else "right",
            verticalalignment="top" if crowded else "bottom",
            color=OURS if one.method.is_ours else THEIRS,
            fontsize=8,
        )
