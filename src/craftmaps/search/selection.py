"""How much lower the loss of a chosen candidate is on the rows that chose it than on others.

The best of many candidates is in part the luckiest one. A bootstrap of the rows repeats the choice:
each time, the candidate with the least score on the drawn rows is judged by the rows that were not
drawn (Tsamardinos, Greasidou and Borboudakis, "Bootstrapping the out-of-sample predictions for
efficient and accurate cross-validation", Machine Learning 107, 2018).
"""

from collections.abc import Sequence

import numpy as np

from craftmaps.search.targets import score_of
from craftmaps.search.trials import Trial

_N_DRAWS = 200
_HALF_A_ROW = 0.5  # added to sums of losses, because all of them may be 0


def flattery_of(rounds: list[list[Trial]]) -> float:
    """Return the flattery of the first trial of the last round, among all trials on its rows."""
    best = rounds[-1][0]
    rivals = [
        trial.losses
        for trials in reversed(rounds)
        for trial in trials
        if (trial.n_rows, len(trial.losses)) == (best.n_rows, len(best.losses))
    ]
    return flattery(rivals)


def flattery(losses: Sequence[np.ndarray], chosen: int = 0) -> float:
    """Return the loss of the chosen candidate, relative to the loss to expect on other rows.

    Parameters
    ----------
    losses : sequence of ndarrays of shape (n_rows, n_losses)
        For each candidate, the losses of the same rows, see `Targets.losses`. The mean of the first
        one is the loss that is compared.
    chosen : int, default=0
        The candidate that all rows chose.

    Returns
    -------
    float
        A ratio of at most 1.
    """
    n = len(losses[0])
    columns = np.stack(losses, axis=1).astype(np.float64)  # rows, candidates, losses
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=_N_DRAWS)
    rest = (drawn == 0).astype(np.float64)
    first = np.tensordot(drawn / n, columns, 1)
    best = score_of(first, n).argmin(axis=1)
    others = (rest @ columns[:, :, 0]) / np.maximum(rest.sum(axis=1, keepdims=True), 1)
    expected = others[np.arange(_N_DRAWS), best].mean()
    observed = columns[:, chosen, 0].mean()
    return float(min(1.0, (observed + _HALF_A_ROW / n) / (expected + _HALF_A_ROW / n)))
