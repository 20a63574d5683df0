"""The league: runs are kept and not repeated, and the report counts what was measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.league import results
from benchmarks.league.columns import plain
from benchmarks.league.datasets import DATASETS, Rows
from benchmarks.league.methods import METHODS
from benchmarks.league.standings import compared, coverage, share_below, standings, tables

ROOT = Path(__file__).parents[2]


def league(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.league", *arguments],
        cwd=ROOT,
        env=os.environ | {"CRAFTMAPS_DATA": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def write_tables(folder, n=150):
    """A classification and a regression under names of the league, of which a third are tested."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    test = np.arange(n)[None] % 3 == 0
    np.savez(folder / "phoneme.npz", X=X, y=(X[:, 0] > 0).astype(int), test=test)
    np.savez(folder / "airfoil.npz", X=X, y=X[:, 0] + 0.1 * X[:, 1], test=test)


@pytest.mark.slow
def test_runs_are_kept_resumed_and_reported(tmp_path):
    write_tables(tmp_path)
    file, page = tmp_path / "results.jsonl", tmp_path / "page.md"
    run = ["run", "--methods", "forest,nystroem", "--results", str(file), "--max-rows", "60"]
    said = league(tmp_path, *run, "--threads", "1")
    assert "cars_mpg: skipped, there is no cars.csv" in said
    found = results.read(file)
    assert len(found) == 4
    for one in found:
        assert one["n_train"] == one["max_rows"] == 60
        assert one["n_test"] == 50
        assert one["error"] < 0.5  # a constant has 0.5 in classification and 1 in regression
        assert (one["log_loss"] is None) == (one["task"] == "regression")
        assert one["peak_bytes"] > 10**7
        assert min(one["fit_seconds"], one["predict_seconds"]) > 0
        assert one["versions"]["scikit-learn"]

    kept = file.read_text()
    assert "error" not in league(tmp_path, *run)
    assert file.read_text() == kept
    last = kept.splitlines(keepends=True)[-1]
    file.write_text(kept.removesuffix(last))
    assert league(tmp_path, *run, "--threads", "1").count("error") == 1
    again = json.loads(file.read_text().splitlines()[-1])
    assert again["error"] == json.loads(last)["error"]

    league(tmp_path, "report", "--results", str(file), "--page", str(page))
    text = page.read_text()
    assert "## Classification: 1 tables" in text
    assert "| phoneme, 60 rows | classification | 60 | 50 | 3 | 2 |" in text
    assert page.with_suffix(".png").stat().st_size > 1000


@pytest.mark.slow
def test_a_run_beyond_its_time_is_written_down(tmp_path):
    write_tables(tmp_path)
    file = tmp_path / "results.jsonl"
    limited = ["--time-limit", "1", "--results", str(file)]  # imports alone take longer
    league(tmp_path, "run", "--methods", "svm", "--datasets", "phoneme", *limited)
    (one,) = results.read(file)
    assert one["failure"] == "took more than 1 s of processor time"


def made_up(dataset, method, error, task="classification", seconds=1.0, **more):
    return {
        "dataset": dataset,
        "method": method,
        "seed": 0,
        "task": task,
        "n_train": 1000,
        "n_test": 100,
        "error": error,
        "log_loss": None,
        "fit_cpu_seconds": seconds,
        "predict_cpu_seconds": 0.0,
        "peak_bytes": 1e9,
        **more,
    }


def test_standings_of_made_up_results():
    rows = tables(
        [
            made_up("german", "lightgbm", 0.10, log_loss=0.5),
            made_up("german", "forest", 0.10, seconds=3.0, log_loss=0.4),
            made_up("german", "svm", 0.20, seconds=8.0),
            made_up("crx", "lightgbm", 0.0, seconds=0.001, log_loss=0.2),
            made_up("crx", "forest", 0.01, seconds=0.03, log_loss=0.3),
            made_up("crx", "svm", None, seconds=None, failure="took more than 10 s"),
            made_up("phoneme", "lightgbm", 0.5),  # the others have not come to it
            made_up("wine", "forest", 0.5, "regression"),
            made_up("german", "mlp", 0.01),
        ]
    )
    assert [table.label for table in rows] == ["crx", "german", "phoneme"]
    methods, rows = compared(METHODS, rows)
    assert [table.label for table in rows] == ["crx", "german"]
    assert [one.name for one in methods] == ["lightgbm", "forest", "svm"]
    found = {one.method.name: one for one in standings(methods, rows)}
    assert list(found) == ["lightgbm", "forest", "svm"]
    assert [one.mean_rank for one in found.values()] == [1.25, 1.75, 3.0]
    assert [one.wins for one in found.values()] == [2, 1, 0]
    assert [one.close for one in found.values()] == [1.0, 0.5, 0.0]
    assert found["forest"].worst_ratio == pytest.approx(0.015 / 0.005)
    assert found["forest"].ratio == pytest.approx(np.sqrt(3))
    assert found["forest"].time == pytest.approx(3.0)  # 3 on both, as 1 ms counts as 10 ms
    assert found["svm"].time == pytest.approx(8.0)
    assert found["svm"].ratio == pytest.approx(0.205 / 0.105)
    assert [one.failures for one in found.values()] == [0, 0, 1]
    assert share_below("forest", "lightgbm", rows) == (1, 2)


def test_expected_intervals_are_counted():
    interval = {"expected_interval": [0.1, 0.2]}
    rows = tables(
        [
            made_up("german", "auto-default", 0.15, **interval),
            made_up("crx", "auto-default", 0.25, **interval),
            made_up("phoneme", "auto-default", 0.25),
        ]
    )
    assert coverage("auto-default", rows) == (1, 2)


def test_a_whole_table_counts_for_a_higher_cap(tmp_path):
    whole = made_up("german", "forest", 0.1, max_rows=None)
    capped = made_up("german", "forest", 0.2, max_rows=500)
    assert results.find([capped, whole], "german", "forest", None, 0) is whole
    assert results.find([capped, whole], "german", "forest", 2000, 0) is whole
    assert results.find([whole, capped], "german", "forest", 500, 0) is capped
    assert results.find([whole], "german", "forest", 500, 0) is None
    assert results.find([whole], "german", "forest", None, 1) is None
    results.append(tmp_path / "results", whole)
    results.append(tmp_path / "results", {**whole, "error": 0.3})
    assert [one["error"] for one in results.read(tmp_path / "results")] == [0.3]


def test_a_class_that_training_lacks_is_wrong_for_all(tmp_path):
    y = np.array([5, 7, 7, 9, 5, 7])
    np.savez(tmp_path / "phoneme.npz", X=np.eye(6), y=y, test=np.arange(6)[None] >= 3)
    phoneme = next(one for one in DATASETS if one.name == "phoneme")
    rows = Rows.of(phoneme, tmp_path, None)
    assert rows.y.tolist() == [0, 1, 1]
    assert rows.y_test.tolist() == [-1, 0, 1]
    assert rows.n_classes == 2


@pytest.mark.skipif("CRAFTMAPS_DATA" not in os.environ, reason="CRAFTMAPS_DATA is not set")
@pytest.mark.parametrize("name", ["cars_mpg", "cars_origin", "crx", "seattle", "concrete"])
def test_real_tables_are_read_and_split(name):
    dataset = next(one for one in DATASETS if one.name == name)
    rows = Rows.of(dataset, Path(os.environ["CRAFTMAPS_DATA"]), None)
    assert len(rows.X) == len(rows.y) > len(rows.y_test) == len(rows.X_test) > 50
    assert rows.X.shape[1] == rows.X_test.shape[1]
    assert not np.isnan(rows.y).any()
    X, X_test = plain(rows.X, rows.X_test)
    if hasattr(X, "dtypes"):
        kinds = {str(kind) for kind in X.dtypes}
        assert kinds <= {"category", "int32", "int64", "float64"}
        assert X.dtypes.equals(X_test.dtypes)
    if rows.n_classes:
        assert set(np.unique(rows.y)) == set(range(rows.n_classes))
