"""Budgets and the sizes that they pay for."""

import numpy as np
import pytest

from craftmaps.search.budget import DEFAULT_COMPONENTS, MOST_COMPONENTS, Budget, training_bytes
from craftmaps.search.clock import Clock
from craftmaps.search.sized import affordable_size


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [
        (None, "default", DEFAULT_COMPONENTS),
        ("unlimited", "components", MOST_COMPONENTS),
        (512, "components", 512),
        ("60s", "training", 60),
        ("5 min", "training", 300),
        ("200MB", "memory", 2e8),
        ("1ms/row", "predicting", 1e-3),
        (".5s", "training", 0.5),
    ],
)
def test_parsing(text, kind, amount):
    budget = Budget.parse(text)
    assert (budget.kind, budget.amount) == (kind, pytest.approx(amount))


@pytest.mark.parametrize(
    "text", ["10", "10 parsecs", "-1s", 0, -5, 1.5, "0s", "s", "1MB/row", True]
)
def test_what_is_no_budget(text):
    with pytest.raises(ValueError, match="budget must be a number of components"):
        Budget.parse(text)


def test_sizes_grow_with_budgets_and_end_at_the_rows():
    sizes = [Budget.parse(f"{n}MB").components(100_000, 20, float("inf")) for n in (10, 100, 1000)]
    assert sizes == sorted(set(sizes))
    assert training_bytes(sizes[1], 100_000) <= 1e8
    assert Budget.parse("100GB").components(700, 20, float("inf")) == 700
    assert Budget.parse("1us").components(700, 20, 1e-6) == 32
    assert Budget.parse("1000s").components(100, 20, 1000.0) == 100
    assert Budget.parse("1us/row").components(10**6, 20, float("inf")) < 4096


def test_by_default_few_rows_have_a_component_each():
    default = Budget.parse(None)
    assert default.components(3000, 5, float("inf")) == 3000
    assert default.components(100_000, 5, float("inf")) == DEFAULT_COMPONENTS


def test_by_default_components_fall_while_rows_grow_so_that_their_sums_cost_the_same():
    default = Budget.parse(None)
    sizes = [default.components(n, 5, float("inf")) for n in (4096, 4097, 8192, 16_384, 20_000)]
    assert sizes == [4096, 4095, 2896, 2048, 2048]


def test_a_clock_affords_fewer_rows_in_less_time():
    assert Clock().affordable_rows(400, 50) == 400
    short, long = Clock(limit=0.01), Clock(limit=1000.0)
    assert short.affordable_rows(4000, 50) < long.affordable_rows(4000, 50)


def test_trials_are_smaller_where_time_is_short():
    assert affordable_size(2048, 20_000, 10, np.inf) == 1024
    sizes = [affordable_size(2048, 20_000, 10, seconds) or 0 for seconds in (0.0, 1e-2, 1e6)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 0
    assert sizes[-1] == 1024
