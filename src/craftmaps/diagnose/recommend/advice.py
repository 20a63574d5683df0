"""What `recommend` returns: an estimator, the reasons, and a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from craftmaps.diagnose.plots import finish, new_figure
from craftmaps.diagnose.recommend.budget import Budget, training_bytes
from craftmaps.diagnose.recommend.trial import Trial


@dataclass(frozen=True)
class Advice:
    """A ready, unfitted estimator and the trials behind it.

    Attributes
    ----------
    estimator : Pipeline
        Preprocessing, then a `OnePassClassifier` or `OnePassRegressor`.
    best : Trial
        The candidate that was chosen, as it did on rows left out.
    rounds : tuple of lists of Trial
        All candidates: kernels on few rows, kernels on more rows, maps.
    budget : Budget
    n_rows, n_targets : int
        Of the data.
    classification : bool
    seconds : float
        That the search took.
    """

    estimator: Pipeline
    best: Trial
    rounds: tuple[list[Trial], list[Trial], list[Trial]]
    budget: Budget
    n_rows: int
    n_targets: int
    classification: bool
    seconds: float

    @property
    def feature_map(self) -> Any:
        """The map that is recommended."""
        return self.estimator[-1].feature_map

    def reasons(self) -> list[str]:
        """One line for each choice."""
        best, size = self.best, self.feature_map.n_components
        others = [t for t in self.rounds[1] if t.preparation != best.preparation]
        kernels = [t for t in self.rounds[1] if t.kernel != best.kernel]
        maps = [t for t in self.rounds[2] if t is not best]
        alpha = self.estimator[-1].alpha
        seconds = best.training_seconds(self.n_rows, size)
        chosen = "by generalised cross-validation of all rows" if alpha == "gcv" else f"{alpha:.3g}"
        megabytes = training_bytes(size, self.n_targets) / 1e6
        return [
            f"preprocessing: {best.preparation}{self._against(others, 'preparation')}",
            f"kernel: {best.kernel!r}{self._against(kernels, 'kernel')}",
            f"map: {_name(best)}{self._against(maps, 'map')}",
            f"size: {size} components, for a budget of {self.budget.text}; training takes about "
            f"{seconds:.2g} s and {megabytes:.3g} MB, a prediction "
            f"{1e6 * best.predicting_seconds(size):.3g} us per row",
            f"alpha: {chosen}",
        ]

    def __str__(self) -> str:
        n_trials = sum(len(trials) for trials in self.rounds)
        kind = "wrong labels" if self.classification else "RMSE / standard deviation"
        head = (
            f"Expect an error of about {self._number(self.best.error)} ({kind}), as on "
            f"rows left out when {self.best.n_rows} of {self.n_rows} were learnt from. "
            f"{n_trials} trials in {self.seconds:.1f} s.\n"
        )
        return head + "\n".join(f"- {line}" for line in self.reasons()) + f"\n\n{self.estimator!r}"

    def plot(self, path: str | Path | None = None) -> Any:
        """Kernels by preprocessing, and maps, with their errors; returns the figure."""
        figure, (left, right) = new_figure(11, 4.6, 2)
        unit = 100 if self.classification else 1
        kernels = sorted(self.rounds[1], key=lambda t: t.score)[:12][::-1]
        labels = [f"{t.kernel!r}\n{t.preparation}" for t in kernels]
        left.barh(labels, [unit * t.error for t in kernels], color="C0", height=0.6)
        left.set_title("kernels, on few rows", fontsize="medium")
        maps = sorted(self.rounds[2], key=lambda t: t.score)[::-1]
        colours = ["C1" if t is self.best else "0.6" for t in maps]
        labels = [f"{_name(t)}\n{t.kernel!r}, {t.preparation}" for t in maps]
        right.barh(labels, [unit * t.error for t in maps], color=colours, height=0.6)
        right.set_title("maps, on more rows (chosen: coloured)", fontsize="medium")
        for axes in (left, right):
            axes.tick_params(axis="y", labelsize=7)
            axes.set_xlabel("wrong labels, %" if self.classification else "RMSE / deviation of y")
        return finish(figure, path)

    def _against(self, others: list[Trial], what: str) -> str:
        if not others:
            return ""
        second = min(others, key=lambda t: t.score)
        rival = {
            "preparation": second.preparation,
            "kernel": repr(second.kernel),
            "map": f"{_name(second)} of {second.kernel!r}",
        }[what]
        peers = self.rounds[2] if what == "map" else self.rounds[1]
        mine = min(
            (t for t in peers if t.preparation == self.best.preparation)
            if what == "preparation"
            else (t for t in peers if t.kernel == self.best.kernel),
            key=lambda t: t.score,
            default=self.best,
        )
        return f" ({self._number(mine.error)}; next {rival}, {self._number(second.error)})"

    def _number(self, error: float) -> str:
        return f"{error:.2%}" if self.classification else f"{error:.4f}"


def _name(trial: Trial) -> str:
    """The map, with the choice that matters in it."""
    feature_map = trial.feature_map
    choice = getattr(feature_map, "landmarks", None) or getattr(feature_map, "sampling", None)
    return f"{type(feature_map).__name__}{f' ({choice})' if choice else ''}"
