"""What a user can afford, and the number of components that this pays for."""

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from craftmaps.diagnose.recommend.trial import Trial
from craftmaps.learn.solvers.memory import available_bytes, equations_bytes
from craftmaps.validation import is_integer

_SECONDS_OF = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES_OF = {"kb": 1e3, "mb": 1e6, "gb": 1e9}
_SIZES = [size * 2**k for k in range(4, 15) for size in (2, 3)]  # 32, 48, 64, 96, ...
_MAX_SEARCH_SIZE = 512
_BLOCK_ROWS = 4096  # rows whose features a learner holds at a time


@dataclass(frozen=True)
class Budget:
    """`kind` is "components", "training" (seconds), "memory" (bytes) or "predicting" (s/row)."""

    kind: str
    amount: float
    text: str

    @classmethod
    def parse(cls, budget: Any) -> "Budget":
        """Read a budget such as 1024, "60s", "200MB" or "1ms/row"."""
        if is_integer(budget) and budget >= 1:
            return cls("components", int(budget), f"{budget} components")
        match = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]+)\s*(/\s*row)?\s*", str(budget))
        if match and re.fullmatch(r"\d+\.?\d*|\.\d+", match[1]) and float(match[1]) > 0:
            amount, unit = float(match[1]), match[2].lower()
            if unit in _SECONDS_OF:
                kind = "predicting" if match[3] else "training"
                return cls(kind, amount * _SECONDS_OF[unit], str(budget))
            if unit in _BYTES_OF and not match[3]:
                return cls("memory", amount * _BYTES_OF[unit], str(budget))
        raise ValueError(
            f"budget must be a number of components (1024), a training time ('60s', '5min'), a "
            f"memory ('200MB') or a prediction time ('1ms/row'), got {budget!r}."
        )

    def search_size(self, n_rows: int, n_targets: int) -> int:
        """The number of components at which candidates are compared."""
        if self.kind == "components":
            return int(self.amount)
        size = min(_MAX_SEARCH_SIZE, self.components(None, n_rows, n_targets))
        return size or self._refuse(n_rows)

    def best(self, trials: list[Trial], n_rows: int, n_targets: int) -> Trial:
        """The trial with the least score among those whose map this budget pays for at all."""
        paid = [trial for trial in trials if self.components(trial, n_rows, n_targets)]
        return min(paid, key=lambda trial: trial.score) if paid else self._refuse(n_rows)

    def components(self, trial: Trial | None, n_rows: int, n_targets: int) -> int:
        """The largest size that this budget pays for, or 0 if it pays for none.

        The times are those of the map of the trial; without a trial only memory counts.
        """
        if self.kind == "components":
            return int(self.amount)
        memory = available_bytes() or float("inf")
        if self.kind == "memory":
            memory = min(memory, self.amount)
        affordable = 0
        for size in _SIZES:
            fits = training_bytes(size, n_targets) <= memory
            if trial is not None and self.kind == "training":
                fits &= trial.training_seconds(n_rows, size) <= self.amount
            if trial is not None and self.kind == "predicting":
                fits &= trial.predicting_seconds(size) <= self.amount
            if fits and (size <= n_rows or size == _SIZES[0]):
                affordable = size
        return affordable

    def _refuse(self, n_rows: int) -> NoReturn:
        raise ValueError(
            f"a budget of {self.text} does not pay for the smallest model that is worth "
            f"trying, with {_SIZES[0]} components on {n_rows} rows; allow more."
        )


def training_bytes(n_components: int, n_targets: int) -> int:
    """Bytes that a learner holds in float64: the normal equations and a block of features."""
    return equations_bytes(n_components, n_targets, 8) + 8 * _BLOCK_ROWS * n_components
