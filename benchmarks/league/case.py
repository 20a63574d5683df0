"""What a learner is told before it sees the rows."""

from dataclasses import dataclass
from typing import Any

from benchmarks.league.datasets import CLASSIFICATION


@dataclass(frozen=True)
class Case:
    """The task, the training columns, the seed and the threads of one run.

    `lightgbm_seconds` is the time that LightGBM took to fit the same rows, for learners whose
    budget is a multiple of it.
    """

    task: str
    X: Any
    seed: int
    threads: int
    lightgbm_seconds: float | None = None

    def choose(self, classifier: Any, regressor: Any) -> Any:
        """The class that fits the task."""
        return classifier if self.task == CLASSIFICATION else regressor
