"""What a search tried, what it chose, and what error to expect."""

from dataclasses import dataclass
from typing import Any

from craftmaps.search.rounds import Trial
from craftmaps.storage.packing import storable

_N_SHOWN = 5  # candidates of the last round that a text shows


@storable
@dataclass(frozen=True)
class Report:
    """The trials of a search.

    Attributes
    ----------
    rounds : list of lists of (candidate, error)
        Descriptions of all candidates, with the error of left-out rows, the best one first.
    round_rows : list of int
        Rows that each round learned from.
    error : float
        The share of wrong classes that is to be expected, or RMSE per standard deviation.
    interval : tuple of two floats
        Where the expected error lies with a probability of about 90 %.
    classification : bool
    budget : str
    seconds : float
        Duration of the search.
    """

    rounds: list[list[Any]]
    round_rows: list[int]
    error: float
    interval: tuple[float, float]
    classification: bool
    budget: str
    seconds: float

    @classmethod
    def of(
        cls, rounds: list[list[Trial]], classification: bool, budget: str, seconds: float
    ) -> "Report":
        """The report of rounds, the last of which has the chosen trial first."""
        best = rounds[-1][0]
        return cls(
            [[(str(t.candidate), t.error) for t in trials] for trials in rounds],
            [trials[0].n_rows for trials in rounds],
            best.error,
            (best.interval[0], best.interval[1]),
            classification,
            budget,
            seconds,
        )

    @property
    def n_trials(self) -> int:
        """Number of candidates that were tried, in all rounds."""
        return sum(map(len, self.rounds))

    def lines(self) -> list[str]:
        """The report as lines of text."""
        kind = "wrong" if self.classification else "RMSE / standard deviation of the target"
        low, high = (self._text(error) for error in self.interval)
        head = [
            f"expected error: {self._text(self.error)} {kind} (90 % interval {low} to {high})",
            f"search: {self.n_trials} trials in {self.seconds:.1f} s, on up to "
            f"{max(self.round_rows):,} rows; the last round:",
        ]
        shown = self.rounds[-1][:_N_SHOWN]
        return head + [f"  {self._text(error):>8}  {name}" for name, error in shown]

    def _text(self, error: float) -> str:
        return f"{error:.2%}" if self.classification else f"{error:.4f}"
