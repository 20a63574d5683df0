"""Helpers for figures, which are drawn without a window and returned or saved."""

from pathlib import Path
from typing import Any


def new_figure(width: float = 6.4, height: float = 4.2, n_axes: int = 1) -> tuple[Any, Any]:
    """Create a figure with axes side by side."""
    figure = figure_class()(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, n_axes)


def figure_class() -> Any:
    """The class of figures (matplotlib is imported only here)."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError(
            "plots need matplotlib, which is not installed: pip install 'craftmaps[plots]'."
        ) from missing
    return Figure


def finish(figure: Any, path: str | Path | None) -> Any:
    """Save the figure if a path is given, and return it."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
