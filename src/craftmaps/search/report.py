"""The report of a search: what it tried, what it chose, and what error to expect."""

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from craftmaps.plots import finish, new_figure
from craftmaps.search.prediction_error import (
    error_axis,
    error_text,
    interval_of_rmse,
    interval_of_share,
)
from craftmaps.search.preparation import Lesson
from craftmaps.search.selection import flattery_of
from craftmaps.search.trials import Trial
from craftmaps.storage.packing import storable

_N_SHOWN = 5  # candidates of the last round in the text
_N_DRAWN = 10  # candidates of the last round in the plot
_AS_GOOD = 1.02  # up to this ratio of errors, a linear model is as good as a kernel
_LEAST_RATIO = 0.2  # least ratio of the losses of rows that chose and of other rows
_WIDTH_OF_NAMES = 70  # letters per line in the plot
_HALF_A_BAR = 0.15  # relative to the distance of two bars, whose names are above them
_INCHES = 0.7  # from bar to bar


@dataclass(frozen=True)
class Search:
    """The rounds of a search, and how long it took.

    The rounds of `exact` have judged exact kernels, and those of `sized` have judged features. Each
    round begins with its winner.
    """

    exact: list[list[Trial]]
    sized: list[list[Trial]]
    seconds: float

    @property
    def rounds(self) -> list[list[Trial]]:
        return self.exact + self.sized


@storable
@dataclass(frozen=True)
class Report:
    """The trials and the result of a search.

    Attributes
    ----------
    rounds : list of lists of (candidate, error)
        Descriptions of all candidates with their leave-one-out errors, the best one first.
    round_rows : list of int
        Number of rows in each round.
    preparations : list of (preparation, error)
        The error of the best candidate with each preparation in the first round, the best one
        first.
    kernel, preparation : str
        The chosen kernel and preparation.
    error : float
        The expected share of wrong classes, or RMSE / standard deviation of the target. For a map
        alone, it comes from the search. For a learner, it comes from predictions of the fitted
        model for rows that it has not learned from.
    interval : tuple of two floats
        An interval that contains the error on half as many other rows with a probability of about
        90%.
    classification : bool
    budget : str
    seconds : float
        Duration of the search.
    optimism : float
        Factor from the loss of left-out rows to the loss of new rows. It is above 1 because the
        rows that are left out have chosen the kernel and its metric.
    linear : tuple of two floats, or None
        The error of a linear model of the columns, and the error of the best exact kernel on the
        same rows.
    """

    rounds: list[list[Any]]
    round_rows: list[int]
    preparations: list[Any]
    kernel: str
    preparation: str
    error: float
    interval: tuple[float, float]
    classification: bool
    budget: str
    seconds: float
    optimism: float = 1.0
    linear: tuple[float, float] | None = None

    @classmethod
    def of(cls, search: Search, classification: bool, budget: str, n_rows: int) -> "Report":
        """Return the report of a search on some of n rows."""
        rounds = search.rounds
        best = rounds[-1][0]
        by_preparation: dict[str, float] = {}
        for trial in rounds[0]:
            by_preparation.setdefault(str(trial.candidate.preparation), trial.error)
        return cls(
            [[(str(t.candidate), t.error) for t in trials] for trials in rounds],
            [trials[0].n_rows for trials in rounds],
            list(by_preparation.items()),
            best.candidate.kernel_text,
            str(best.candidate.preparation),
            best.error,
            (best.interval[0], best.interval[1]),
            classification,
            budget,
            search.seconds,
            _optimism(rounds, n_rows),
            _linear(rounds),
        )

    def judged(self, losses: np.ndarray, plain: float) -> "Report":
        """Return the same report with the error of a fitted model on unseen rows.

        `losses` contains, for each row, 1 for a wrong class and 0 for a right one, or the squared
        error in variances of the target. `plain` is the mean loss of the best prediction that is
        the same for all rows: the loss is not raised above it.
        """
        factor = max(1.0, min(self.optimism, plain / max(float(losses.mean()), 1e-300)))
        losses = factor * losses
        error = float(losses.mean()) if self.classification else float(np.sqrt(losses.mean()))
        interval = interval_of_share if self.classification else interval_of_rmse
        return replace(self, error=error, interval=interval(losses))

    @property
    def n_trials(self) -> int:
        """Number of candidates that were tried, in all rounds."""
        return sum(map(len, self.rounds))

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        head = [
            f"expected error: {self.expectation()}",
            f"search: {self.n_trials} trials in {self.seconds:.1f} s, on up to "
            f"{max(self.round_rows):,} rows; the last round:",
        ]
        shown = self.rounds[-1][:_N_SHOWN]
        lines = head + [f"  {self.text_of(error):>8}  {name}" for name, error in shown]
        if self.linear is not None:
            linear, best = self.linear
            verdict = "about as good as" if linear <= _AS_GOOD * best else "not as good as"
            lines.append(
                f"a linear model ({self.text_of(linear)}) is {verdict} the best kernel "
                f"({self.text_of(best)}) on the same rows"
            )
        return lines

    def expectation(self) -> str:
        """The expected error and its interval in words."""
        kind = "wrong" if self.classification else "RMSE / standard deviation of the target"
        low, high = map(self.text_of, self.interval)
        return f"{self.text_of(self.error)} {kind} (90% interval {low} to {high})"

    def text_of(self, error: float) -> str:
        """Format an error in the unit of this search."""
        return error_text(error, self.classification)

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the errors of all candidates by round, and the best ones of the last round by name.

        Parameters
        ----------
        path : path of a picture, default=None
            Where to save the figure; None does not save it.

        Returns
        -------
        matplotlib.figure.Figure
        """
        drawn = self.rounds[-1][:_N_DRAWN]
        figure, (left, right) = new_figure(12, max(4.8, 1 + _INCHES * len(drawn)), 2)
        label, unit = error_axis(self.classification)
        for place, trials in enumerate(self.rounds):
            errors = [unit * error for _, error in trials]
            left.plot(errors, [place] * len(errors), "o", color="C0", alpha=0.4)
            left.plot(errors[0], place, "o", color="C1")
        rounds = [f"round {i + 1}\n{n:,} rows" for i, n in enumerate(self.round_rows)]
        left.set_yticks(range(len(rounds)), rounds)
        left.set_title("all candidates (best: orange)", fontsize="medium")
        errors = [unit * error for _, error in drawn]
        right.barh(
            range(len(drawn)), errors, 2 * _HALF_A_BAR, color=["C1"] + ["0.7"] * (len(drawn) - 1)
        )
        low, high = (unit * bound for bound in self.interval)
        right.plot([low, high], [0, 0], color="black")
        right.set_yticks([])
        right.set_ylim(-1, len(drawn) - 0.5)
        for place, (name, _) in enumerate(drawn):
            lines = textwrap.fill(name, _WIDTH_OF_NAMES, initial_indent=" ", subsequent_indent=" ")
            right.text(0, place - 1.2 * _HALF_A_BAR, lines, va="bottom", fontsize=9)
        title = "the last round (chosen: orange, with its 90% interval)"
        right.set_title(title, fontsize="medium")
        for axes in (left, right):
            axes.set_xlim(left=0)
            axes.invert_yaxis()
            axes.set_xlabel(label)
        return finish(figure, path)


def _optimism(rounds: list[list[Trial]], n_rows: int) -> float:
    """Return the factor from the loss of left-out rows to the loss of new rows."""
    best = rounds[-1][0]
    n_judged = len(best.losses)
    lesson = best.candidate.preparation.learned
    chosen = Lesson(n_judged, max(flattery_of(rounds), _LEAST_RATIO))
    return chosen.factor(n_rows) * (1.0 if lesson is None else lesson.factor(n_rows))


def _linear(rounds: list[list[Trial]]) -> tuple[float, float] | None:
    """Return the errors of a linear model and the best kernel in the last round that has both."""
    for trials in reversed(rounds):
        plain = [trial.error for trial in trials if trial.candidate.is_linear]
        kernels = [trial.error for trial in trials if not trial.candidate.is_linear]
        if plain and kernels:
            return plain[0], kernels[0]
    return None
