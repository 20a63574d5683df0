"""A headline: a sentence with its numbers, and whether what it speaks of is reached."""

from dataclasses import dataclass

from reproduction.judge import comparable
from reproduction.spec import Panel, Spec


@dataclass(frozen=True)
class Headline:
    """A sentence, and whether what it speaks of is reached."""

    text: str
    word: str


def gain(panel: Panel, ours: float, printed: float) -> float:
    """By how much we are better, in the published digits."""
    more = printed - round(ours, panel.digits)
    return round(more if panel.lower_is_better else -more, panel.digits)


def comparable_panels(spec: Spec) -> list[Panel]:
    """The panels whose runs are made as the paper made them."""
    return [panel for panel in spec.panels if comparable(panel, quick=False)]


def missing(count: int) -> str:
    """How many published values have nothing beside them."""
    if not count:
        return ""
    return f"; {count} more {'is' if count == 1 else 'are'} published and not measured"


def of_those(count: int, total: int) -> str:
    """A share of cells in words.

    Examples
    --------
    >>> of_those(3, 5), of_those(5, 5), of_those(1, 1)
    ('3 of the 5 cells', 'all 5 cells', 'the cell')
    """
    if count < total:
        return f"{count} of the {total} cells"
    return "the cell" if total == 1 else f"all {total} cells"


def short_title(spec: Spec) -> str:
    """The title of a table or figure up to the colon."""
    return spec.title.partition(":")[0]


def reached(won: bool) -> str:
    """The word of a headline."""
    return "reached" if won else "missed"
