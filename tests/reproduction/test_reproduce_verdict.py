"""Verdicts: known numbers, and how often they cry wolf."""

import math

import numpy as np
import pytest

from reproduction import verdict as module
from reproduction.verdict import (
    BETTER,
    FAILS,
    HOLDS,
    ONE_RUN,
    UNDECIDED,
    WITHIN,
    WORSE,
    Spread,
    compared,
    half_width,
    pooled,
    verdict,
)

N_TRIALS = 4000
VALUES = [5.0, 5.2, 5.1]  # s = 0.1, t of 2 degrees of freedom 4.3027, half a width of 0.4968


def test_spreads_are_pooled_relative_to_the_means():
    assert pooled([[9.0, 11.0], [5.0], [20.0, 20.0], []]) == Spread(pytest.approx(0.1), 2)
    assert pooled([[900.0, 1100.0], [0.09, 0.11]]).relative == pytest.approx(math.sqrt(0.02))
    assert pooled([[0.0, 0.0]]) == Spread(0.0, 1)
    assert pooled([[5.0], [6.0]]).freedom == 0


def test_the_interval_is_that_of_one_further_run():
    assert half_width(5.1, 3, pooled([VALUES])) == pytest.approx(4.302653 * 0.1 * math.sqrt(4 / 3))
    assert half_width(10.0, 1, Spread(0.05, 4)) == pytest.approx(2.776445 * 0.5 * math.sqrt(2))
    assert math.isnan(half_width(10.0, 1, pooled([[10.0]])))


@pytest.mark.parametrize(
    ("printed", "lower", "higher"),
    [(5.64, WITHIN, WITHIN), (5.66, BETTER, WORSE), (4.56, WITHIN, WITHIN), (4.54, WORSE, BETTER)],
)
def test_a_cell_against_what_is_printed(printed, lower, higher):
    """The interval is 4.603 to 5.597, and half a digit is 0.05."""
    spread = pooled([VALUES])
    assert verdict(VALUES, printed, spread, 1) == lower
    assert verdict(VALUES, printed, spread, 1, lower_is_better=False) == higher


def test_a_single_run_borrows_the_spread_of_other_cells_or_decides_nothing():
    assert verdict([5.0], 9.0, pooled([[5.0], [7.0]]), 1) == ONE_RUN
    assert verdict([5.0], 9.0, pooled([[5.0], VALUES]), 1) == BETTER
    assert verdict([5.0], 5.3, pooled([[5.0], VALUES]), 1) == WITHIN


def test_without_spread_rounding_decides():
    spread = pooled([[4.96, 4.96]])
    assert verdict([4.96, 4.96], 5.0, spread, 1) == WITHIN
    assert verdict([4.96, 4.96], 5.0, spread, 2) == BETTER
    assert verdict([5.05, 5.05], 5.0, spread, 1) == WITHIN  # half a digit, in floating point
    assert verdict([5.06, 5.06], 5.0, spread, 1) == WORSE


def test_one_method_against_another():
    """Welch: the difference of means 1.0 has a deviation of 0.0816 and 4 degrees of freedom."""
    spread = pooled([VALUES])
    same = [value / 5.1 * 5.327 for value in VALUES]  # 2.776 deviations of the difference or so
    far = [value + 1.0 for value in VALUES]
    assert compared(VALUES, far, (spread, pooled([far]))) == HOLDS
    assert compared(far, VALUES, (pooled([far]), spread)) == FAILS
    assert compared(VALUES, far, (spread, pooled([far])), lower_is_better=False) == FAILS
    assert compared(VALUES, same, (spread, pooled([same]))) == UNDECIDED
    assert compared(VALUES, [9.0], (spread, pooled([[9.0]]))) == ONE_RUN
    exact = pooled([[3.0, 3.0]])
    assert compared([3.0, 3.0], [3.1, 3.1], (exact, exact)) == HOLDS
    assert compared([3.0, 3.0], [3.0, 3.0], (exact, exact)) == UNDECIDED


def false_verdicts():
    """The share of cells called better or worse where ours and the paper's are of one law."""
    rng = np.random.default_rng(0)
    wrong = 0
    for trial in range(N_TRIALS):
        cells = [rng.normal(mean, 0.05 * mean, n) for mean, n in ((8.0, 3), (5.0, 3), (2.0, 1))]
        judged = trial % 3  # one cell of each row: those of a row share their spread
        printed = rng.normal((8.0, 5.0, 2.0)[judged], 0.05 * (8.0, 5.0, 2.0)[judged])
        wrong += verdict(cells[judged], printed, pooled(cells), 9) != WITHIN
    return wrong / N_TRIALS


def false_claims():
    """The share of claims that are decided where both methods are of one law."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(N_TRIALS):
        better, than = rng.normal(5.0, 0.25, (2, 4))
        wrong += compared(better, than, (pooled([better]), pooled([than]))) != UNDECIDED
    return wrong / N_TRIALS


def near_five_per_cent(share):
    """Within 4 standard deviations of a count: a right interval fails once in 16,000 seeds."""
    return abs(share - 0.05) < 4 * math.sqrt(0.05 * 0.95 / N_TRIALS)


def test_one_cell_in_twenty_is_called_better_or_worse_by_chance(monkeypatch):
    assert near_five_per_cent(false_verdicts())
    right = module.half_width

    def of_the_mean(mean, n_seeds, spread):
        return right(mean, n_seeds, spread) / math.sqrt(n_seeds + 1)

    monkeypatch.setattr(module, "half_width", of_the_mean)
    assert not near_five_per_cent(false_verdicts())


def test_one_claim_in_twenty_is_decided_by_chance(monkeypatch):
    assert near_five_per_cent(false_claims())
    monkeypatch.setattr(module, "_quantile", lambda freedom: 1.96)  # as if the spread were known
    assert not near_five_per_cent(false_claims())
