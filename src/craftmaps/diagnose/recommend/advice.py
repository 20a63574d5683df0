"""What `recommend` returns: an estimator, the reasons, and a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from craftmaps.diagnose.plots import finish, new_figure
from craftmaps.diagnose.prediction_error import error_axis, error_text
from craftmaps.diagnose.recommend.budget import Budget, training_bytes
from craftmaps.diagnose.recommend.trial import Trial

_N_SHOWN_KERNELS = 12  # in a plot


@dataclass(frozen=True)
class Advice:
    """A ready, unfitted estimator and the trials behind it.

    Attributes
    ----------
    estimator : OnePassClassifier, OnePassRegressor or Pipeline
        The learner, around a `ScaledMap` or an `ImageMap` and the map inside. If rows have missing
        values, it is a pipeline of an imputer and the learner.
    best : Trial
        The candidate that was chosen, with its error on held-out rows.
    rounds : tuple of lists of Trial
        All candidates: kernels on few rows, kernels on more rows, maps.
    budget : Budget
    n_rows, n_targets : int
        Number of rows of the data, and of columns of targets.
    classification : bool
    seconds : float
        Duration of the search.
    """

    estimator: Any
    best: Trial
    rounds: tuple[list[Trial], list[Trial], list[Trial]]
    budget: Budget
    n_rows: int
    n_targets: int
    classification: bool
    seconds: float

    @property
    def learner(self) -> Any:
        """The recommended learner, without an imputer."""
        return self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator

    @property
    def feature_map(self) -> Any:
        """The recommended map, together with the preparation of rows."""
        return self.learner.feature_map

    def reasons(self) -> list[str]:
        """One line for each choice."""
        best, size, alpha = self.best, self.feature_map.n_components, self.learner.alpha
        seconds = best.training_seconds(self.n_rows, size)
        megabytes = training_bytes(size, self.n_targets) / 1e6
        chosen = "by the learner, from all rows" if isinstance(alpha, str) else f"{alpha:.3g}"
        return [
            f"preprocessing: {best.preparation}{self._next_preparation()}",
            f"kernel: {best.kernel!r}{self._next_kernel()}",
            f"map: {_map_name(best)}{self._next_map()}",
            f"size: {size} components, for a budget of {self.budget.text}; training takes about "
            f"{seconds:.2g} s and {megabytes:.3g} MB, a prediction "
            f"{1e6 * best.predicting_seconds(size):.3g} us per row",
            f"alpha: {chosen}",
        ]

    def __str__(self) -> str:
        n_trials = sum(len(trials) for trials in self.rounds)
        kind = "wrong labels" if self.classification else "RMSE / standard deviation"
        head = (
            f"Expect an error of about {self._text(self.best)} ({kind}), as on held-out rows when "
            f"{self.best.n_rows} of {self.n_rows} rows were learned from. "
            f"{n_trials} trials in {self.seconds:.1f} s.\n"
        )
        return head + "\n".join(f"- {line}" for line in self.reasons()) + f"\n\n{self.estimator!r}"

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the errors of kernels by preprocessing, and of maps; returns the figure."""
        figure, (left, right) = new_figure(11, 4.6, 2)
        label, unit = error_axis(self.classification)
        kernels = sorted(self.rounds[1], key=_score)[:_N_SHOWN_KERNELS][::-1]
        names = [f"{t.kernel!r}\n{t.preparation}" for t in kernels]
        left.barh(names, [unit * t.error for t in kernels], color="C0", height=0.6)
        left.set_title("kernels, on few rows", fontsize="medium")
        maps = sorted(self.rounds[2], key=_score)[::-1]
        colors = ["C1" if t is self.best else "0.6" for t in maps]
        names = [f"{_map_name(t)}\n{t.kernel!r}, {t.preparation}" for t in maps]
        right.barh(names, [unit * t.error for t in maps], color=colors, height=0.6)
        right.set_title("maps, on more rows (chosen: colored)", fontsize="medium")
        for axes in (left, right):
            axes.tick_params(axis="y", labelsize=7)
            axes.set_xlabel(label)
        return finish(figure, path)

    def _next_preparation(self) -> str:
        own = [t for t in self.rounds[1] if t.preparation == self.best.preparation]
        others = [t for t in self.rounds[1] if t.preparation != self.best.preparation]
        return self._against(own, others, lambda trial: trial.preparation)

    def _next_kernel(self) -> str:
        own = [t for t in self.rounds[1] if t.kernel == self.best.kernel]
        others = [t for t in self.rounds[1] if t.kernel != self.best.kernel]
        return self._against(own, others, lambda trial: repr(trial.kernel))

    def _next_map(self) -> str:
        others = [t for t in self.rounds[2] if t is not self.best]
        return self._against([self.best], others, lambda t: f"{_map_name(t)} of {t.kernel!r}")

    def _against(self, own: list[Trial], others: list[Trial], name: Any) -> str:
        """The error of the best of the own trials, and the name and error of the next one."""
        if not others:
            return ""
        mine, rival = min(own, key=_score, default=self.best), min(others, key=_score)
        return f" ({self._text(mine)}; next {name(rival)}, {self._text(rival)})"

    def _text(self, trial: Trial) -> str:
        return error_text(trial.error, self.classification)


def _score(trial: Trial) -> float:
    return trial.score


def _map_name(trial: Trial) -> str:
    """The name of the map, with the parameter that matters most."""
    feature_map = trial.feature_map
    choice = getattr(feature_map, "landmarks", None) or getattr(feature_map, "sampling", None)
    return f"{type(feature_map).__name__}{f' ({choice})' if choice else ''}"
