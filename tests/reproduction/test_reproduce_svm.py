"""KK's and PP's tables: rows, maps, learners and specifications."""

import importlib
from collections.abc import Iterator

import numpy as np
import pytest

from craftmaps.kernels import Exponential, Polynomial
from reproduction import spec
from reproduction.dot_maps import kernel_of, map_of
from reproduction.judge import cell_values
from reproduction.map_time import measure as map_time
from reproduction.pair_errors import ball
from reproduction.pair_errors import measure as pair_errors
from reproduction.rows import codes, regrouped, rows_of, scaled
from reproduction.spec import Panel
from reproduction.store import Results
from reproduction.svm import EXACT, measure

# as the command does: the measured values say whether LIBLINEAR converged
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

OURS = ["CRAFT + one pass", "RM v2 + one pass"]
SPECS = [name for name in spec.names() if name.startswith(("kk-", "pp-"))]
RUN = {
    "data": "gisette",
    "kernel": "(1 + <x,y>)^3",
    "size": 300,
    "seed": 0,
    "train_rows": 600,
    "test_rows": 400,
    "lengths": "constant",
    "classes": "two",
}
TOY = {"kernel": "(1 + <x,y>)^10", "rows": 100, "columns": 20, "size": 30, "seed": 0}


@pytest.fixture(scope="module", autouse=True)
def rings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """In the place of Gisette: rows inside and outside a sphere, which only a kernel separates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    folder = tmp_path_factory.mktemp("data")
    np.savez(folder / "gisette.npz", X=X, y=(np.linalg.norm(X, axis=1) > 2.1).astype(np.uint8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRAFTMAPS_DATA", str(folder))
        yield


@pytest.mark.parametrize("method", [EXACT, *OURS, "RF + LIBLINEAR", "H0/1 + LIBLINEAR"])
@pytest.mark.parametrize("kernel", ["(1 + <x,y>)^3", "exp(<x,y>/s^2)"])
def test_all_methods_learn_what_no_linear_classifier_can(method, kernel):
    values = measure(RUN | {"method": method, "kernel": kernel})
    linear = measure(RUN | {"method": EXACT, "kernel": "<x,y>^1"})
    assert values["accuracy"] > 85 > linear["accuracy"]
    assert {"train_seconds", "test_seconds"} <= set(values)


def test_tensor_sketch_learns_it_too_and_its_time_has_two_parts():
    values = measure(RUN | {"method": "TS + LIBLINEAR"})
    assert values["accuracy"] > 85
    assert values["train_seconds"] == values["map_seconds"] + values["fit_seconds"]
    assert values["C"] in (0.001, 0.01, 0.1, 1, 10, 100)


def test_the_exact_svm_is_made_once_for_all_sizes():
    one, other = (measure(RUN | {"method": EXACT, "size": size}) for size in (10, 1000))
    assert one == other
    assert 0 < one["support_vectors"] <= RUN["train_rows"]
    assert measure(RUN | {"method": EXACT, "seed": 1}) != one


def test_the_exponential_svm_predicts_as_with_its_whole_gram_matrix():
    from sklearn.svm import SVC

    run = RUN | {"kernel": "exp(<x,y>/s^2)", "method": EXACT}
    values, rows = measure(run), rows_of(run)
    kernel = kernel_of(run["kernel"], rows.X_train)
    whole = SVC(C=values["C"], kernel=kernel).fit(rows.X_train, rows.y_train)
    assert values["accuracy"] == pytest.approx(100 * whole.score(rows.X_test, rows.y_test))


def test_times_of_tests_are_those_of_all_rows():
    rows = rows_of(RUN)
    assert (len(rows.X_train), len(rows.X_test), rows.n_tested) == (600, 400, 1400)
    assert len(rows_of(RUN | {"train_rows": 10_000}).X_train) == 1200  # 60 %


def test_lengths_are_learnt_from_training_rows():
    train, test = np.array([[0.0, 10.0], [4.0, 30.0]]), np.array([[8.0, 20.0]])
    ours, theirs = scaled(train, test, "constant")
    assert np.linalg.norm(ours, axis=1).max() == pytest.approx(1)
    np.testing.assert_allclose(theirs, [[2 / 2**0.5, 0.5 / 2**0.5]])
    np.testing.assert_allclose(np.linalg.norm(scaled(train, test, "unit")[1], axis=1), 1)


def test_classes_are_split_in_random_halves_of_every_class():
    y = np.repeat([3, 5, 7, 11, 13], 10)
    halves = [regrouped(y, "nursery", "two", seed) for seed in range(20)]
    for one in halves:
        assert {len(set(one[y == label])) for label in set(y)} == {1}
        assert one.sum() == 20  # two classes of five
    assert len({tuple(one) for one in halves}) > 3
    np.testing.assert_array_equal(regrouped(y // 3, "covertype", "two", 0), y == 7)
    np.testing.assert_array_equal(regrouped(y, "mnist", "all", 0), np.repeat(range(5), 10))


def test_nursery_has_eight_columns():
    first, last = np.zeros((2, 27))
    first[[0, 3, 8, 12, 16, 19, 21, 24]] = 1
    last[[2, 7, 11, 15, 18, 20, 23, 26]] = 1
    assert codes(np.array([first, last])).tolist() == [[0] * 8, [2, 4, 3, 3, 2, 1, 2, 2]]


def test_kernels_are_read_as_they_are_written():
    assert kernel_of("<x,y>^4") == Polynomial(4, coef0=0.0)
    assert kernel_of("(1 + <x,y>)^10") == Polynomial(10)
    assert kernel_of("exp(<x,y>)") == Exponential()
    X = np.array([[0.0], [3.0]])
    assert kernel_of("exp(<x,y>/s^2)", X) == Exponential(1 / 9)
    with pytest.raises(ValueError, match="no kernel is written 'rbf'"):
        kernel_of("rbf")


def test_h01_counts_random_features_alone_and_rf_is_as_printed():
    X = ball(50, 20, seed=0)
    kernel = kernel_of("(1 + <x,y>)^10")
    h01 = map_of("H0/1", kernel, 30, n_columns=20, seed=0).fit(X)
    assert h01.transform(X).shape == (50, 51)
    assert h01.n_per_degree_[:2].tolist() == [1, 20]
    rf = map_of("RF", kernel, 4000, n_columns=20, seed=0).fit(X)
    # P[N = n] = 2^-(n+1): 6 standard errors, a false alarm in 10^8
    assert abs(rf.n_per_degree_[0] / 4000 - 0.5) < 6 * 0.5 / 4000**0.5
    with pytest.raises(ValueError, match="there is no map 'XY'"):
        map_of("XY", kernel, 30, n_columns=20, seed=0)


@pytest.mark.parametrize("kernel", ["(1 + <x,y>)^10", "exp(<x,y>)"])
@pytest.mark.parametrize("size", [100, 1000])
def test_h01_has_the_smaller_error(kernel, size):
    """KK Figure 1, on the mean of 10 seeds: they differ by a factor of 1.6 and more."""

    def error(method):
        run = TOY | {"kernel": kernel, "size": size, "method": method}
        return np.mean([pair_errors(run | {"seed": s})["mean_absolute"] for s in range(10)])

    assert error("H0/1") < error("RF")


def test_errors_tell_a_map_of_the_wrong_degree(monkeypatch):
    """Features of (1 + t)^2 in the place of (1 + t)^3 are off by more than any number mends."""
    run = TOY | {"kernel": "(1 + <x,y>)^3", "method": "H0/1", "size": 20_000}
    right = pair_errors(run)["mean_relative"]
    module = importlib.import_module("reproduction.pair_errors")

    def wrong(name, kernel, size, **more):
        return map_of(name, Polynomial(kernel.degree - 1), size, **more)

    monkeypatch.setattr(module, "map_of", wrong)
    assert pair_errors(run)["mean_relative"] > 3 * right


def test_points_are_uniform_in_the_ball():
    """P[|x| <= r] = r^d, by Kolmogorov and Smirnov at a false-alarm rate of 1e-6."""
    from scipy.stats import kstest

    lengths = np.linalg.norm(ball(4000, 3, seed=0), axis=1)
    assert kstest(lengths**3, "uniform").pvalue > 1e-6
    assert kstest(lengths, "uniform").pvalue < 1e-6


def test_relative_errors_leave_out_pairs_without_a_value():
    values = pair_errors(
        {"data": "gisette", "rows": 50, "kernel": "<x,y>^2", "size": 64, "seed": 0, "method": "TS"}
    )
    assert 0 < values["mean_relative"] < np.inf


@pytest.mark.parametrize("method", ["TS", "RM", "CRAFT"])
@pytest.mark.parametrize("more", [{"data": "gisette"}, {}])
def test_times_of_maps_add_up(method, more):
    run = {"kernel": "(1 + <x,y>)^4", "rows": 500, "size": 64, "seed": 0, "method": method}
    values = map_time(run | more)
    assert values["seconds"] == pytest.approx(values["draw_seconds"] + values["map_seconds"])


def test_ratios_are_taken_seed_by_seed(tmp_path):
    panel = Panel(
        "p", "", "svm", "seconds", "times", "size", [8], "D", ["fast"], relative_to="slow"
    )
    made = list(panel.runs(quick=False, seeds=2))
    assert [run["method"] for run in made] == ["slow", "fast"] * 2
    results = Results(tmp_path)
    seconds = {("slow", 0): 10.0, ("slow", 1): 30.0, ("fast", 0): 5.0, ("fast", 1): 3.0}
    for run in made:
        results.add(run, values={"seconds": seconds[run["method"], run["seed"]]})
    results.add(panel.run("fast", 8) | {"seed": 2}, values={"seconds": 1.0})
    assert cell_values(panel, results, "fast", 8) == [2, 10]
    assert cell_values(panel, results, "slow", 8) == [1, 1]


def test_sizes_go_with_methods_and_x():
    sizes = {"RF": [500, 1000]}
    axis = ["nursery", "covertype"]
    panel = Panel("p", "", "svm", "a", "", "data", axis, "", ["K", "RF"], sizes=sizes)
    assert panel.run("RF", "covertype")["size"] == 1000
    assert "size" not in panel.run("K", "covertype")
    text = f"""title = ""\npaper = ""\nprotocol = ""\nchoices = []
        [[panels]]\nname = "p"\ntitle = ""\nmeasure = "svm"\nvalue = ""\nunit = ""\naxis = "data"
        x = ["nursery"]\nx_label = ""\nmethods = ["RF"]\nsizes = {{ RF = {sizes["RF"]} }}"""
    with pytest.raises(ValueError, match="RF has 2 sizes for 1 of x"):
        spec.parse("wrong", text)


@pytest.mark.parametrize("name", SPECS)
def test_specifications_ask_for_what_there_is(name):
    found = spec.load(name)
    assert found.choices
    assert found.runs(quick=True)
    for run in found.runs():
        assert run["method"] in importlib.import_module(f"reproduction.{run['measure']}").METHODS
        assert run["method"] == EXACT or run["size"] > 0
        kernel_of(run["kernel"], np.eye(2))
    panels = {panel.name: panel for panel in found.panels}
    for claim in found.claims:
        assert {claim.better, claim.than} <= set(panels[claim.panel].methods)

    for panel in found.panels:
        higher = panel.value == "accuracy" or bool(panel.relative_to)
        assert panel.lower_is_better != higher
        assert set(panel.quick) <= set(panel.x)


def test_every_table_and_figure_of_the_two_papers_is_there():
    tables = ["kk-table-1", *(f"pp-table-{n}" for n in (1, 2, 3))]
    figures = ["kk-figure-1", "kk-figure-2", *(f"pp-figure-{n}" for n in (1, 2, 3, 4))]
    assert sorted(SPECS) == sorted(tables + figures)
