"""A comparison as one page that needs no other file."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

from craftmaps import __version__
from craftmaps.storage.atomic import write_whole

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; white-space: nowrap; }
th, td { text-align: right; padding: .35rem .7rem; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
tr.best td { background: #eef6ee; font-weight: 600; }
img { max-width: 100%; height: auto; }
.wide img { min-width: 40rem; width: 100%; }
footer { color: #666; font-size: .85rem; }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Feature maps compared</title>
<style>{style}</style>
</head>
<body>
<h1>Feature maps compared</h1>
<p>{data}: {sample:,} of {n_rows:,} rows, {seeds}. A quarter of the rows was left out to
measure the error ({error}). The least error has, in the smallest model,
<strong>{best}</strong>.</p>
<div class="wide"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div>
<div class="wide"><img src="data:image/png;base64,{plot}"
alt="Error against training time and against model size, with the Pareto front"></div>
<p>A grey line joins what no other map beats both in error and in cost.</p>
<footer>craftmaps {version}</footer>
</body>
</html>
"""
_HEAD = ("map", "size", "error", "spread", "kernel error", "fit", "predict", "memory", "model")


def write_page(path: str, found: Any, data: Sequence[str], sample: int, n_rows: int) -> None:
    """Write the table and the Pareto plot of a comparison, whole or not at all."""
    image = io.BytesIO()
    found.plot().savefig(image, dpi=150, format="png")
    best = min(found.rows, key=lambda row: (row.error, row.model_bytes))
    text = _PAGE.format(
        style=_STYLE,
        data=escape(", ".join(data)),
        sample=sample,
        n_rows=n_rows,
        seeds="1 seed" if found.n_seeds == 1 else f"means over {found.n_seeds} seeds",
        error="share of wrong labels" if found.classification else "RMSE / deviation of y",
        best=f"{escape(best.name)} with {best.n_components} components",
        head="".join(f"<th>{name}</th>" for name in _HEAD),
        body="\n".join(_line(row, found.classification, row is best) for row in found.rows),
        plot=base64.b64encode(image.getvalue()).decode(),
        version=__version__,
    )
    write_whole(path, lambda file: file.write(text.encode()))


def _line(row: Any, classification: bool, best: bool) -> str:
    error, spread = (
        "" if value != value else f"{value:.2%}" if classification else f"{value:.4f}"
        for value in (row.error, row.error_spread)
    )
    cells = (
        escape(row.name),
        f"{row.n_components:,}",
        error,
        spread,
        f"{row.kernel_error:.3f}",
        f"{row.fit_seconds:.2f} s",
        f"{1e6 * row.predict_seconds:.1f} µs/row",
        f"{row.peak_bytes / 1e6:.1f} MB",
        f"{row.model_bytes / 1e3:,.0f} kB",
    )
    start = '<tr class="best">' if best else "<tr>"
    return start + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
