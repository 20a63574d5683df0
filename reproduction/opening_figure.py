"""The picture that opens a report: our rows over what the CRAFT paper published."""

from itertools import groupby
from typing import Any

import numpy as np

from craftmaps.plots import new_figure
from reproduction.against_craft import Column, columns_of
from reproduction.figures import COLORS, raised, svg
from reproduction.numerals import labels
from reproduction.spec import Spec
from reproduction.store import Results

NAME = "opening.svg"
ALT = (
    "Test errors in the 25 columns of CRAFT Table 1 over the better published CRAFT row: that row "
    "run again, CRAFT v2 with squared errors and with the log-loss, and the best of our rows"
)
_ROWS = {
    "again": ("the published row, run again", "o", COLORS[7]),
    "squared": ("CRAFT v2, squared errors", "s", COLORS[0]),
    "log_loss": ("CRAFT v2, log-loss", "D", COLORS[1]),
    "best": ("best of our rows", "*", COLORS[2]),
}
_GAP = 1.2  # between data sets, in columns
_TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def draw_opening(spec: Spec, results: Results) -> bytes:
    """A plot as SVG: one place for each column, one mark for each row."""
    found = columns_of(spec, results)
    figure, axes = new_figure(8.6, 4.0)
    places, names, start = [], [], 0.0
    for _, group in groupby(found, key=lambda column: column.panel.name):
        some = list(group)
        at = start + np.arange(len(some))
        places += list(at)
        names += [raised(label) for label in labels([column.x for column in some])]
        axes.text(
            at.mean(), 1.02, some[0].panel.title, transform=axes.get_xaxis_transform(),
            ha="center", fontsize=9,
        )  # fmt: skip
        start = at[-1] + 1 + _GAP
    _draw_rows(axes, found, np.array(places))
    axes.axhline(1, color="#000000", linewidth=1)
    axes.set_yscale("log")
    axes.set_yticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    axes.set_yticks([], minor=True)
    axes.set_xticks(places, names, fontsize=8, rotation=45)
    axes.set_xlabel("number of features")
    axes.set_ylabel("test error / published error")
    axes.grid(axis="y", alpha=0.25, linewidth=0.6)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return svg(figure)


def _draw_rows(axes: Any, found: list[Column], places: np.ndarray) -> None:
    for row, (label, marker, color) in _ROWS.items():
        ratios = np.array([column.relative(row) for column in found])
        for number, some in enumerate(_runs_of_data_sets(found)):
            axes.plot(
                places[some], ratios[some], marker=marker, color=color, linewidth=1, markersize=5,
                label="" if number else label,
            )  # fmt: skip


def _runs_of_data_sets(found: list[Column]) -> list[list[int]]:
    of_panel: dict[str, list[int]] = {}
    for index, column in enumerate(found):
        of_panel.setdefault(column.panel.name, []).append(index)
    return list(of_panel.values())
