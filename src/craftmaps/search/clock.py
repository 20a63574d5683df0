"""The time limit of a search, and the number of rows that fit into it."""

import time
from dataclasses import dataclass, field

import numpy as np

from craftmaps.loops import cholesky
from craftmaps.threads import at_most_threads, n_threads

_PROBE_ROWS = 400
_PROBES = 3  # the fastest one counts
_FACTORS_OF_A_TRIAL = 6.0  # cost of a trial, in factors and inverses of all rows
_LEAST_ROWS = 100
_SHARE_OF_A_ROUND = 0.3  # share of the remaining time for a round
_GOOD_PART = 0.4  # optional steps need this share of the time


@dataclass
class Clock:
    """The elapsed time of a search and its limit in seconds (None means no limit).

    The time of trials on n rows is assumed to grow as n^3. The speed of the machine is measured in
    the first call of `affordable_rows`.
    """

    limit: float | None = None
    start: float = field(default_factory=time.perf_counter)
    _seconds_of_probe: float | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.start

    @property
    def remaining(self) -> float:
        """Remaining seconds, at least 0."""
        return np.inf if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def has_time(self) -> bool:
        """Whether enough time is left for an optional step."""
        return self.limit is None or self.remaining > _GOOD_PART * self.limit

    def affordable_rows(self, wanted: int, n_trials: int) -> int:
        """Return how many rows, at most `wanted`, the time that is left allows for each trial."""
        if self.limit is None:
            return wanted
        if self._seconds_of_probe is None:
            with at_most_threads(1):
                self._seconds_of_probe = min(_seconds_of_factor() for _ in range(_PROBES))
        seconds = _SHARE_OF_A_ROUND * self.remaining * n_threads() / n_trials
        ratio = seconds / (_FACTORS_OF_A_TRIAL * self._seconds_of_probe)
        return int(min(wanted, max(_PROBE_ROWS * ratio ** (1 / 3), _LEAST_ROWS)))


def _seconds_of_factor() -> float:
    """The time for a Cholesky factor and its inverse."""
    matrix = np.eye(_PROBE_ROWS) + 0.5
    begun = time.perf_counter()
    cholesky.factor(matrix)
    cholesky.invert(matrix)
    return max(time.perf_counter() - begun, 1e-5)
