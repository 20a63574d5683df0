"""What a cell of a panel shows, from the results of its runs."""

from typing import Any

from reproduction.spec import Panel
from reproduction.store import Results


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
