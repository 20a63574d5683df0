"""Time that a search may take, and how many rows can be afforded in it."""

import time
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh

_PROBE_ROWS = 200
_SHARE_OF_A_ROUND = 0.3  # of the time that is left
_GOOD_PART = 0.4  # of the time, for steps that can be left out


@dataclass
class Clock:
    """Seconds since a search began, beside the seconds that it may take (None: any number).

    Trials on n rows cost about n^3. The first question about rows measures the speed of the
    machine.
    """

    limit: float | None = None
    start: float = field(default_factory=time.perf_counter)
    _seconds_of_probe: float | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.start

    @property
    def remaining(self) -> float:
        """Seconds that are left, at least 0."""
        return np.inf if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def has_time(self) -> bool:
        """Whether a good part of the time is left."""
        return self.limit is None or self.remaining > _GOOD_PART * self.limit

    def affordable_rows(self, wanted: int, n_trials: int) -> int:
        """Return how many rows, at most `wanted`, the time that is left allows for each trial."""
        if self.limit is None:
            return wanted
        if self._seconds_of_probe is None:
            matrix = np.eye(_PROBE_ROWS) + 0.5
            begun = time.perf_counter()
            eigh(matrix)
            self._seconds_of_probe = max(time.perf_counter() - begun, 1e-4)
        seconds = _SHARE_OF_A_ROUND * self.remaining / n_trials
        rows = _PROBE_ROWS * (seconds / self._seconds_of_probe) ** (1 / 3)
        return int(min(wanted, max(rows, 0.5 * _PROBE_ROWS)))
