"""Draw the plots of the papers' figures."""

import io
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from craftmaps.plots import new_figure
from reproduction.judge import Cell, cells, columns, curves
from reproduction.numerals import labels
from reproduction.spec import Panel
from reproduction.store import Results

# Okabe and Ito's colors, which color-blind readers can tell apart, without the yellow
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#777777")
_MARKERS = "osD^vPX*"
_LINES = ("-", "--", "-.", ":")
_MAX_TICKED_SIZES = 7
_LABEL_WIDTH = 0.1  # share of the axis; nearer labels would touch each other
_MAX_CURVE_POINTS = 250


def draw(panel: Panel, results: Results, methods: Sequence[str], quick: bool = False) -> bytes:
    """A plot as SVG: a line for each method, with the spread over seeds, and what is printed.

    Parameters
    ----------
    panel : Panel
    results : Results
    methods : sequence of str
        Methods of all panels of the figure, so that each keeps its color and marker.
    quick : bool, default=False
    """
    figure, axes = new_figure(4.8, 3.9)
    axes.set_xlabel(_plain(panel.x_label))
    axes.set_ylabel(_plain(panel.unit))
    for scale, letter in ((axes.set_xscale, "x"), (axes.set_yscale, "y")):
        if letter in panel.log:
            scale("log", subs=[2, 5])
    found = cells(panel, results, quick)
    for method in panel.methods:
        index = methods.index(method)
        style = {
            "color": COLORS[index % len(COLORS)],
            "linestyle": _LINES[index // len(COLORS) % len(_LINES)],
        }
        marker = _MARKERS[index % len(_MARKERS)]
        if panel.curve:
            _draw_curves(axes, panel, method, results, quick, style, marker)
        else:
            mine = [cell for cell in found if cell.method == method]
            _draw_cells(axes, columns(panel, quick), mine, style, marker)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = sorted(axis.get_view_interval())
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("{x:g}" if high < 30 * low else "")
    if not panel.curve:
        _label_x(axes, columns(panel, quick))
    axes.grid(alpha=0.25, linewidth=0.6)
    _legend(figure, axes, any(not math.isnan(cell.printed) for cell in found))
    return svg(figure)


def _draw_cells(axes: Any, x: Sequence[Any], mine: list[Cell], style: Any, marker: str) -> None:
    numeric = all(isinstance(one, int | float) for one in x)
    at = np.array([cell.x if numeric else x.index(cell.x) for cell in mine], dtype=float)
    means = np.array([cell.mean for cell in mine])
    spreads = np.nan_to_num([cell.deviation for cell in mine])
    printed = np.array([cell.printed for cell in mine])
    if not numeric:
        style = style | {"linestyle": ""}
    shown = ~np.isnan(means)
    if shown.any():
        axes.errorbar(
            at[shown], means[shown], spreads[shown], marker=marker, markersize=4.5, capsize=2.5,
            linewidth=1.4, label=_plain(mine[0].method), **style,
        )  # fmt: skip
    if not np.isnan(printed).all():
        axes.plot(
            at, printed, marker=marker, markersize=8, markerfacecolor="none", linestyle="",
            color=style["color"],
        )  # fmt: skip


def _draw_curves(
    axes: Any, panel: Panel, method: str, results: Results, quick: bool, style: Any, marker: str
) -> None:
    """Means and ranges of curves; a line through the means of runs that are single points."""
    shown = columns(panel, quick)
    made = {x: curves(panel, method, x, results, quick) for x in shown}
    seeds = [seed for x in shown for seed in made[x]]
    if not seeds:
        return
    if all(len(along) == 1 for along, _ in seeds):
        at, means = (
            np.array([np.mean([seed[part][0] for seed in made[x]]) for x in shown if made[x]])
            for part in (0, 1)
        )
        axes.plot(at, means, marker=marker, markersize=5, label=_plain(method), **style)
        return
    for x in shown:
        label = _plain(method if len(shown) == 1 else f"{method}, {x}")
        if len({tuple(along) for along, _ in made[x]}) == 1:
            step = 1 + len(made[x][0][0]) // _MAX_CURVE_POINTS
            along = made[x][0][0][::step]
            stack = np.array([values[::step] for _, values in made[x]])
            few = len(along) < 2 * _MAX_TICKED_SIZES
            marks: dict[str, Any] = {"marker": marker, "markersize": 4.5} if few else {}
            axes.plot(along, stack.mean(axis=0), linewidth=1.4, label=label, **marks, **style)
            low, high = stack.min(axis=0), stack.max(axis=0)
            axes.fill_between(along, low, high, color=style["color"], alpha=0.15, linewidth=0)
            continue
        for number, (own, values) in enumerate(made[x]):
            axes.plot(own, values, linewidth=1, label="" if number else label, **style)


def _label_x(axes: Any, x: Sequence[Any]) -> None:
    """Ticks where the runs are, if they are few."""
    numeric = all(isinstance(one, int | float) for one in x)
    if not numeric or len(x) <= _MAX_TICKED_SIZES:
        at = np.array(x if numeric else range(len(x)), dtype=float)
        names = [raised(label) for label in labels(x)]
        seen = np.log(at) if axes.get_xscale() == "log" else at
        for i in np.flatnonzero(np.diff(seen) < _LABEL_WIDTH * np.ptp(seen)):
            names[i] = ""
        axes.set_xticks(at, names)
        axes.set_xticks([], minor=True)


def _legend(figure: Any, axes: Any, printed: bool) -> None:
    if printed:
        axes.plot(
            [], [], marker="o", markersize=8, markerfacecolor="none", linestyle="", color="#555555",
            label="published",
        )  # fmt: skip
    handles, names = axes.get_legend_handles_labels()
    if names:
        long = max(map(len, names)) > 12
        figure.legend(
            handles, names, loc="outside lower center", ncols=2 if long else 3, frameon=False,
            fontsize=9,
        )  # fmt: skip


def _plain(text: str) -> str:
    """Escape dollar signs, which would begin a formula, and raise powers."""
    return raised(text.replace("$", r"\$"))


def raised(text: str) -> str:
    """Text in which "2^12" is a power."""
    return re.sub(r"\^(-?\w+)", r"$^{\1}$", text)


def svg(figure: Any) -> bytes:
    """The same bytes for the same figure."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "craftmaps"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
