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
_SHARE_OF_DRAWS = 0.5  # draws in which the choice must beat a plain model
_HALF_A_ROW = 0.5  # added to sums of losses, because all of them may be 0


def flattery_of(rounds: list[list[Trial]]) -> float:
    """Return the flattery of the first trial of the last round, among all trials on its rows."""
    return flattery(_losses_like(rounds[-1][0], rounds))


def is_as_good(plain: Trial, rounds: list[list[Trial]]) -> bool:
    """Whether a plain model may be as good on other rows as the choice among all trials.

    The choice must be better than the plain model in half of the draws, on the rows not drawn.
    The plain model is a single one, so it is not flattered, and a choice among many is.
    """
    rivals = _losses_like(plain, rounds)
    if not rivals:
        return False
    chosen, (others,) = _repeated_choice(rivals, [plain.losses])
    n = len(plain.losses)
    return bool(np.mean(score_of(chosen, n) < score_of(others, n)) < _SHARE_OF_DRAWS)


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
    expected = _repeated_choice(losses)[0][:, 0].mean()
    observed = losses[chosen][:, 0].mean()
    return float(min(1.0, (observed + _HALF_A_ROW / n) / (expected + _HALF_A_ROW / n)))


def _losses_like(trial: Trial, rounds: list[list[Trial]]) -> list[np.ndarray]:
    """Return the losses of all trials that were judged on the same rows as a trial."""
    return [
        other.losses
        for trials in reversed(rounds)
        for other in trials
        if (other.n_rows, len(other.losses)) == (trial.n_rows, len(trial.losses))
    ]


def _repeated_choice(
    losses: Sequence[np.ndarray], others: Sequence[np.ndarray] = ()
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return, for each draw of the rows, the mean losses of its choice on the other rows.

    The second result has the mean losses of further candidates on the same rows.
    """
    n = len(losses[0])
    columns = np.stack(losses, axis=1).astype(np.float64)  # rows, candidates, losses
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=_N_DRAWS)
    rest = (drawn == 0).astype(np.float64)
    rest /= np.maximum(rest.sum(axis=1, keepdims=True), 1)
    best = score_of(np.tensordot(drawn / n, columns, 1), n).argmin(axis=1)
    unseen = np.tensordot(rest, columns, 1)[np.arange(_N_DRAWS), best]
    return unseen, [rest @ other for other in others]


def deviations(values: np.ndarray) -> float:
    """Return the mean of values in standard errors."""
    return float(values.mean() * np.sqrt(len(values)) / (values.std() or np.inf))
