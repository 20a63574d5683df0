"""Budgets of a search, and the number of components that they allow."""

import re
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from craftmaps.validation import is_integer

DEFAULT_COMPONENTS = 2048
EXACT_ROWS = 4096  # with fewer rows, the default is a component per row: an exact kernel machine
MOST_COMPONENTS = 8192  # limit of an unlimited budget, whose sums take half a gigabyte
_SECONDS_OF = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES_OF = {"kb": 1e3, "mb": 1e6, "gb": 1e9}
_SIZES = sorted(size * 2**k for k in range(4, 13) for size in (2, 3))  # 32, 48, 64, 96, ...
_SHARE_OF_FIT = 0.5  # share of the time after the search to plan with, as estimates are rough
_PASSES = 300  # passes over the features, including the search for alpha and several folds
_PROBE = 512  # size of the matrices for measuring the speed of the machine


@dataclass(frozen=True)
class Budget:
    """A limit of a kind, with its amount.

    `kind` is "default", "components", "training" (in seconds), "memory" (in bytes) or "predicting"
    (in seconds per row).
    """

    kind: str
    amount: float
    text: str

    @classmethod
    def parse(cls, budget: Any) -> "Budget":
        """Read a budget such as None, 1024, "60s", "200MB", "1ms/row" or "unlimited"."""
        if budget is None:
            return cls("default", DEFAULT_COMPONENTS, "the default size")
        if isinstance(budget, str) and budget.strip().lower() == "unlimited":
            return cls("components", MOST_COMPONENTS, "unlimited")
        if is_integer(budget) and budget >= 1:
            return cls("components", int(budget), f"{budget} components")
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]+)\s*(/\s*row)?\s*", str(budget))
        if match and float(match[1]) > 0:
            amount, unit = float(match[1]), match[2].lower()
            if unit in _SECONDS_OF:
                kind = "predicting" if match[3] else "training"
                return cls(kind, amount * _SECONDS_OF[unit], str(budget))
            if unit in _BYTES_OF and not match[3]:
                return cls("memory", amount * _BYTES_OF[unit], str(budget))
        raise ValueError(
            f"budget must be a number of components (1024), a training time ('60s', '5min'), a "
            f"memory ('200MB'), a prediction time ('1ms/row'), 'unlimited' or None, got {budget!r}."
        )

    @property
    def seconds(self) -> float | None:
        """The allowed training time in seconds, or None if it is not limited."""
        return self.amount if self.kind == "training" else None

    def components(self, n_rows: int, n_columns: int, remaining: float, n_classes: int = 0) -> int:
        """Return the largest number of components within the budget, at most one per row.

        Parameters
        ----------
        n_rows, n_columns : int
            Number of all training rows, and of the columns of prepared rows.
        remaining : float
            Remaining training time in seconds.
        n_classes : int
            0 for regression. Classes take time for passes over the features.
        """
        if self.kind == "default":  # the sums of more rows cost no more than those of EXACT_ROWS
            affordable = int((EXACT_ROWS**3 / n_rows) ** 0.5)
            return min(max(affordable, DEFAULT_COMPONENTS), n_rows)
        if self.kind == "components":
            return min(int(self.amount), n_rows)
        affordable = 0
        for size in (*_SIZES, n_rows):
            if affordable < size <= n_rows and self._pays(
                size, n_rows, n_columns, remaining, n_classes
            ):
                affordable = size
        return affordable or min(_SIZES[0], n_rows)

    def _pays(
        self, size: int, n_rows: int, n_columns: int, remaining: float, n_classes: int
    ) -> bool:
        if self.kind == "memory":
            return training_bytes(size, n_rows) <= self.amount
        if self.kind == "predicting":
            return 2 * size * (n_columns + size) / operations_per_second() <= self.amount
        operations = training_operations(size, n_rows, n_columns, n_classes)
        seconds = operations / operations_per_second()
        return seconds <= _SHARE_OF_FIT * remaining


def training_bytes(n_components: int, n_rows: int) -> int:
    """Estimate the memory of a fit in float64: sums, a factor, and blocks of features."""
    return 8 * (3 * n_components**2 + min(n_rows, 4096) * n_components)


def training_operations(size: int, n_rows: int, n_columns: int, n_classes: int = 0) -> float:
    """Estimate the operations of a fit: features, sums, factors for ten alphas, and passes."""
    passes = 4.0 * _PASSES * n_rows * size * n_classes
    return 2.0 * n_rows * size * (n_columns + 1.5 * size) + 6.0 * size**3 + passes


@cache
def operations_per_second() -> float:
    """Floating-point operations of a matrix product, on all threads."""
    matrix = np.ones((_PROBE, _PROBE))
    matrix @ matrix
    start = time.perf_counter()
    matrix @ matrix
    return 2.0 * _PROBE**3 / max(time.perf_counter() - start, 1e-9)
