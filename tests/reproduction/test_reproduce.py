"""Specifications of the papers' tables, their runs, and results that survive a stop."""

import json

import numpy as np
import pytest

from craftmaps.kernels import Gaussian
from reproduction import spec
from reproduction.environment import environment
from reproduction.judge import cells, curves
from reproduction.methods import GAUSSIAN, feature_map, kernel_of
from reproduction.run import measure, reproduce
from reproduction.store import Results

TEXT = """
title = "A table"
paper = "A paper"
protocol = "As printed."
choices = ["None."]
measure = "classification"
value = "error"
unit = "%"
axis = "size"
x_label = "E"

[[panels]]
name = "a"
title = "Digits"
x = [32, 64, 128]
quick = [32]
seeds = 2
seeds_at = { "64" = 1 }
not_run = { "128" = "too large" }
methods = ["TS", "CRAFT v2"]
settings = { data = "digits", degree = 3, bits = 50 }
printed = { TS = [20.0, 10.0, 5.0] }

[[panels]]
name = "b"
title = "The same runs, other values"
x = [32]
value = "fit_seconds"
seeds = 2
methods = ["TS"]
settings = { data = "digits", degree = 3, bits = 50 }

[[claims]]
text = "CraftMap is better"
panel = "a"
better = "CRAFT v2"
than = "TS"
"""


@pytest.fixture
def table():
    return spec.parse("table", TEXT)


def test_runs_of_a_specification(table):
    runs = [(run["seed"], run["method"], run["size"]) for run in table.runs()]
    assert runs == [
        (0, "TS", 32),
        (0, "TS", 64),
        (0, "CRAFT v2", 32),
        (0, "CRAFT v2", 64),
        (1, "TS", 32),
        (1, "CRAFT v2", 32),
    ]
    assert [(run["seed"], run["size"]) for run in table.runs(quick=True)] == [(0, 32), (0, 32)]
    assert max(run["seed"] for run in table.runs(seeds=4)) == 3
    panel = table.panels[0]
    assert panel.printed_at("TS", 64) == 10.0
    assert np.isnan(panel.printed_at("CRAFT v2", 64))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("TS = [20.0, 10.0, 5.0]", "TS = [20.0]"), "TS has 1 printed values for 3 of x"),
        (('title = "Digits"', 'title = "Digits"\ncolour = 3'), "colour"),
    ],
)
def test_a_wrong_specification_is_refused(change, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint):
        spec.parse("table", TEXT.replace(*change))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"there is no table or figure .tabel.; .*craft-table-1"):
        spec.load("tabel")


def test_a_single_method_may_be_left_out_with_its_reason():
    text = TEXT.replace('{ "128" = "too large" }', '{ "128" = { TS = "too slow" } }')
    panel = spec.parse("table", text).panels[0]
    assert panel.why_not_run("TS", 128) == "too slow"
    assert not panel.why_not_run("CRAFT v2", 128)
    assert not panel.why_not_run("TS", 64)
    runs = {(run["method"], run["size"]) for run in panel.runs(quick=False, seeds=None)}
    assert runs == {("TS", 32), ("TS", 64), *(("CRAFT v2", size) for size in (32, 64, 128))}


@pytest.mark.parametrize("name", spec.names())
def test_every_specification_can_be_read_and_run(name):
    loaded = spec.load(name)
    assert loaded.title
    assert loaded.paper
    panels = {panel.name: panel for panel in loaded.panels}
    assert len(panels) == len(loaded.panels)
    for claim in loaded.claims:
        assert {claim.better, claim.than} <= set(panels[claim.panel].methods)
    for panel in loaded.panels:
        assert not panel.printed or set(panel.quick) <= set(panel.x)
        assert set(panel.not_run) | set(panel.seeds_at) <= {str(x) for x in panel.x}
        if panel.measure in ("classification", "kernel_error", "rank"):
            for method in set(panel.methods) - {"Exact", "Recommended", "Recommended, log-loss"}:
                gaussian = method in GAUSSIAN
                kernel = Gaussian(1.0) if gaussian else kernel_of({"degree": 3} | panel.settings)
                made = feature_map(method, kernel, 64, n_columns=8, seed=0, n_up=128)
                assert made.n_components == 64


def test_runs_go_on_where_they_stopped(table, tmp_path):
    results = reproduce([table], tmp_path, seeds=1)
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == len(results) == 4
    row = json.loads(lines[0])
    assert row["environment"] == environment() == json.loads(json.dumps(environment()))
    assert {"cpu", "threads", "versions", "commit", "python"} <= set(row["environment"])
    assert len(row["data_sha256"]) == 64
    told = []
    reproduce([table], tmp_path, tell=lambda *what: told.append(what[2]))
    assert [(run["seed"], run["method"]) for run in told] == [(1, "TS"), (1, "CRAFT v2")]
    assert len(Results(tmp_path).of(table.panels[0].run("TS", 32))) == 2
    assert len(Results(tmp_path).of(table.panels[0].run("TS", 64))) == 1


def test_a_run_says_all_there_is_to_know(table):
    """Equal runs give equal errors, another seed another map."""
    run = table.runs()[0]
    first, again, other = (measure(one) for one in (run, run, run | {"seed": 5}))
    assert first["error"] == again["error"]
    assert first["alpha"] == again["alpha"]
    assert (first["error"], first["alpha"]) != (other["error"], other["alpha"])


def test_advice_is_a_method_too(table):
    run = table.runs()[0] | {"method": "Recommended, log-loss"}
    assert measure(run)["error"] < measure(table.runs()[0])["error"]


def test_a_line_that_was_cut_off_is_made_again(table, tmp_path):
    reproduce([table], tmp_path, seeds=1)
    path = tmp_path / "results.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-30])
    assert len(Results(tmp_path)) == 3
    reproduce([table], tmp_path, seeds=1)
    assert len(path.read_text().splitlines()) == 4
    first = whole.splitlines()[0].encode()
    for line in (
        b"nonsense",
        b"\xff",
        b"12",
        b"[]",
        b"{}",
        b'{"run": 3, "values": {}}',
        b"[" * 10**5,
    ):
        path.write_bytes(line + b"\n" + whole.encode())
        with pytest.raises(ValueError, match=r"results\.jsonl, line 1 is not a result; remove"):
            Results(tmp_path)
    for line in (b'{"run": {}}', b'{"values": {}, "skipped": null}', b"null"):
        path.write_bytes(first + b"\n" + line + b"\n")  # no stop leaves that behind
        with pytest.raises(ValueError, match="line 2 is not a result; remove the line"):
            Results(tmp_path)


def test_data_that_cannot_be_had_are_skipped_by_name(tmp_path, monkeypatch):
    monkeypatch.delenv("CRAFTMAPS_DATA", raising=False)
    missing = spec.parse("table", TEXT.replace('data = "digits"', 'data = "gisette"'))
    results = reproduce([missing], tmp_path, quick=True)
    run = missing.panels[0].run("TS", 32, quick=True)
    assert "gisette" in results.skipped(run)
    assert results.of(run) == []
    assert run | {"seed": 0} not in results  # tried again when the data are there


def test_a_run_for_which_memory_is_too_small_is_skipped_with_the_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("craftmaps.learn.solvers.memory.available_bytes", lambda: 1000)
    small = spec.parse("table", TEXT)
    results = reproduce([small], tmp_path, quick=True)
    run = small.panels[0].run("TS", 32, quick=True)
    assert "features (n_components)" in results.skipped(run)
    assert run | {"seed": 0} not in results


def test_a_run_that_fails_is_named_and_what_was_made_is_kept(tmp_path):
    wrong = spec.parse("table", TEXT.replace('"CRAFT v2"]', '"Nonsense"]').split("[[claims]]")[0])
    with pytest.raises(ValueError, match=r"the run \(.*method Nonsense, seed 0\) failed, KeyError"):
        reproduce([wrong], tmp_path, quick=True)
    assert len(Results(tmp_path)) == 1


def test_times_may_be_measured_apart_from_errors(tmp_path):
    text = TEXT.split("[[panels]]")
    head = text[0] + 'curve = "compute_seconds"\ncurve_measure = "hessian_time"\n'
    panel = spec.parse("figure", head + "[[panels]]" + text[1]).panels[0]
    runs = list(panel.runs(quick=True, seeds=None))
    assert [(run["measure"], run["method"]) for run in runs] == [
        ("classification", "TS"),
        ("hessian_time", "TS"),
        ("classification", "CRAFT v2"),
        ("hessian_time", "CRAFT v2"),
    ]
    assert set(measure(runs[1])) == {"compute_seconds"}
    results = Results(tmp_path)
    for seed, error, seconds in ((0, 5.0, 2.0), (1, 6.0, 4.0)):
        run = panel.run("TS", 32) | {"seed": seed}
        results.add(run, values={"error": error})
        results.add(run | {"measure": "hessian_time"}, values={"compute_seconds": seconds})
    assert curves(panel, "TS", 32, results, quick=False) == [([3.0], [5.0]), ([3.0], [6.0])]
    assert cells(panel, results)[0].values == (5.0, 6.0)


@pytest.mark.parametrize("name", spec.names())
def test_seconds_of_another_machine_are_not_judged(name):
    for panel in spec.load(name).panels:
        if panel.printed and panel.value.endswith("_seconds") and not panel.relative_to:
            assert not panel.same_settings
