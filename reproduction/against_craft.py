"""The columns of CRAFT Table 1: what the paper proposes, and what we have beside it."""

import math
from dataclasses import dataclass
from typing import Any

from reproduction.judge import cells
from reproduction.methods import LOG_LOSS
from reproduction.spec import Panel, Spec
from reproduction.store import Results

TABLE = "craft-table-1"
CRAFT_ROWS = ("CM RFM", "CM TS")  # what the paper proposes


@dataclass(frozen=True)
class Column:
    """Test errors at one size of one data set; nan where there is none.

    Attributes
    ----------
    panel : Panel
    x : int
        Number of features.
    published : float
        The better of the two rows that the paper proposes.
    again : float
        That row, run again.
    squared, log_loss : float
        Our default map with squared errors, and with the log-loss.
    best : float
        The best of our own rows, chosen by test error.
    """

    panel: Panel
    x: Any
    published: float
    again: float
    squared: float
    log_loss: float
    best: float

    def relative(self, row: str) -> float:
        """The error of a row over the published one."""
        error: float = getattr(self, row)
        return error / self.published


def columns_of(spec: Spec, results: Results) -> list[Column]:
    """All columns of the table."""
    found = []
    for panel in spec.panels:
        errors = {(cell.method, cell.x): cell.mean for cell in cells(panel, results)}
        for x in panel.x:
            _, better = min((panel.printed_at(row, x), row) for row in CRAFT_ROWS)
            own = (errors[method, x] for method in panel.methods if is_ours(panel, method))
            found.append(
                Column(
                    panel,
                    x,
                    published=panel.printed_at(better, x),
                    again=errors[better, x],
                    squared=errors["CRAFT v2", x],
                    log_loss=errors[f"CRAFT v2{LOG_LOSS}", x],
                    best=min((e for e in own if not math.isnan(e)), default=math.nan),
                )
            )
    return found


def is_ours(panel: Panel, method: str) -> bool:
    """Whether the map of a row is one that the paper does not have."""
    return method.removesuffix(LOG_LOSS) not in panel.printed
