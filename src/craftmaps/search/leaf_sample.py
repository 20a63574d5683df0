"""Trials of candidates within a few leaves of a tree of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.search.candidates import Candidate
from craftmaps.search.exact import Judged, judge
from craftmaps.search.preparation import Preparation
from craftmaps.search.targets import Targets
from craftmaps.search.trials import Trial
from craftmaps.threads import on_threads


@dataclass(frozen=True)
class LeafSample:
    """Some rows of a few leaves, which judge candidates for all leaves.

    Attributes
    ----------
    X : ndarray
        All rows.
    targets : Targets
        The targets of all rows.
    parts : list of ndarray
        Places of the rows of each leaf. Leaves with equal targets are left out.
    everywhere : ndarray
        Places of rows from all leaves, which preparations are fitted to as well.
    """

    X: np.ndarray
    targets: Targets
    parts: list[np.ndarray]
    everywhere: np.ndarray

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        targets: Targets,
        leaves: list[np.ndarray],
        n_rows: int,
        rng: np.random.Generator,
        everywhere: Any = (),
    ) -> "LeafSample":
        """Draw at most `n_rows` rows of each of the leaves."""
        Y = targets.Y
        parts = [at_most(rows, n_rows, rng) for rows in leaves]
        parts = [rows for rows in parts if (Y[rows] != Y[rows[0]]).any()]
        return cls(X, targets, parts, np.asarray(everywhere, np.int64))

    def prepared(self, preparation: Preparation) -> list[np.ndarray]:
        """Return the prepared rows of each part."""
        places = [self.everywhere, *self.parts]
        ends = np.cumsum([len(part) for part in places])[:-1]
        return np.split(preparation.applied(self.X[np.concatenate(places)]), ends)[1:]

    def part_targets(self) -> list[Targets]:
        """Return the targets of each part."""
        return [self.targets.rows(part) for part in self.parts]

    def trial(self, candidate: Candidate) -> Trial:
        """Judge a candidate by leave-one-out predictions from the other rows of each leaf."""
        prepared, targets = self.prepared(candidate.preparation), self.part_targets()

        def one(part: int) -> Judged:
            return judge(candidate.gram(prepared[part]), targets[part], candidate.alpha)

        found = on_threads(one, range(len(self.parts)))
        rows = np.concatenate(self.parts)
        alpha = float(np.median([one.alpha for one in found]))  # some leaves have no noise
        predicted = np.concatenate([one.predicted for one in found])
        return Trial.of(candidate, self.targets.rows(rows), predicted, alpha, len(rows))


def at_most(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n random ones of the rows in their order, or all if there are fewer."""
    return rows if len(rows) <= n else np.sort(rng.choice(rows, n, replace=False))
