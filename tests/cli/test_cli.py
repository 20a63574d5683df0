"""The command line as a user runs it: real processes, real files."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits, load_wine

import craftmaps
from commands import run
from craftmaps.cli import options
from craftmaps.cli.main import craftmaps as command_line
from craftmaps.storage import array_file

COMMANDS = ("fit", "predict", "evaluate", "compare", "info", "export", "bench", "demo")
ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "craftmaps.cli.main"]


def here(*words):
    """The JSON report of a command in this process, which need not import the library again."""
    done = CliRunner().invoke(command_line, [*map(str, words), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Wine as CSV with names of classes, digits as a Parquet folder and as .npz."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("cli")
    wine = load_wine()
    labels = np.array(["barolo", "grignolino", "barbera"])[wine.target]
    for name, rows in (("train", slice(0, None, 2)), ("test", slice(1, None, 2))):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*wine.feature_names, "class"])
            pairs = zip(wine.data[rows].tolist(), labels[rows], strict=True)
            writer.writerows([*row, label] for row, label in pairs)
    X, y = load_digits(return_X_y=True)
    columns = {f"pixel_{j}": X[:, j].astype(np.float32) for j in range(64)} | {"digit": y}
    (folder / "digits").mkdir()
    for part, rows in enumerate((slice(0, 700), slice(700, 1400))):
        table = pa.table({name: column[rows] for name, column in columns.items()})
        parquet.write_table(table, folder / "digits" / f"part-{part}.parquet")
    parquet.write_table(
        pa.table({name: column[1400:] for name, column in columns.items()}), folder / "new.parquet"
    )
    target = X[:600] @ np.linspace(-1, 1, 64) + np.sin(X[:600, 20])
    np.savez(folder / "numbers.npz", X=X[:600], y=target)
    for name in ("holed.csv", "holed"):
        (folder / name).write_text("a,y\n1,2\n,3\n")
    (folder / "targetless.csv").write_text("a,y\n1,2\n2,\n")
    craftmaps.OnePassRegressor().fit([[1.0], [2.0]], [1.0, 2.0]).save(folder / "holed.craft")
    return folder


def examples():
    """The examples of every --help, in an order in which files are made before they are used."""
    for command in ("", *COMMANDS):
        text, _ = run(f"craftmaps {command} --help", ".")
        found = re.findall(r"^\s+(craftmaps .*)$", text.partition("Example:")[2], flags=re.M)
        assert found, f"{command} --help shows no example"
        yield command, found


def test_the_command_that_left_says_where_it_went(folder):
    _, err = run("craftmaps reproduce all --quick", folder, code=2)
    assert err == (
        "craftmaps: the papers are reproduced from a checkout of the repository: "
        "python -m reproduction all --quick\n"
    )


@pytest.mark.slow
def test_every_example_of_help_runs_as_printed(folder):
    for command, lines in examples():
        for line in lines:
            out, _ = run(line, folder)
            assert out, command
    written = ("model.craft", "predictions.csv", "model.onnx")
    assert all((folder / name).stat().st_size for name in written)
    with (folder / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 89
    chances = [[float(v) for name, v in row.items() if name != "prediction"] for row in rows]
    assert np.allclose(np.sum(chances, axis=1), 1, atol=1e-5)


def test_from_a_parquet_folder_to_onnx_in_three_commands(folder):
    runtime = pytest.importorskip("onnxruntime")
    from pyarrow import parquet

    out, _ = run(
        "craftmaps fit digits --target digit --degree 4 --components 256 -o digits.craft --json",
        folder,
    )
    facts = json.loads(out)
    assert facts["rows"] == 1400
    assert facts["classes"] == 10
    assert facts["loss"] == "log"
    assert facts["training_error"] < 0.01
    out, _ = run("craftmaps predict digits.craft new.parquet -o out.parquet --json", folder)
    assert json.loads(out)["rows"] == 397
    run("craftmaps export digits.craft -o digits.onnx", folder)

    predicted = parquet.read_table(folder / "out.parquet")["prediction"].to_numpy()
    new = parquet.read_table(folder / "new.parquet")
    X = np.stack([new[f"pixel_{j}"].to_numpy() for j in range(64)], axis=1)
    session = runtime.InferenceSession(folder / "digits.onnx")
    assert np.array_equal(session.run(["label"], {"X": X})[0], predicted)
    facts = here("evaluate", folder / "digits.craft", folder / "new.parquet", "--target", "digit")
    wrong = np.mean(predicted != new["digit"].to_numpy())
    assert facts["error"] == pytest.approx(wrong)
    assert wrong < 0.1


@pytest.mark.parametrize("components", [128, 512])
def test_alpha_is_judged_by_rows_left_out(folder, components):
    """397 rows are more than 128 features, and fewer than 512."""
    options = ("--target", "digit", "--components", components, "-o", folder / "few.craft")
    options = (*options, "--kernel", "poly", "--loss", "squared")
    facts = here("fit", folder / "new.parquet", *options)
    assert 0 < facts["leave_one_out_brier_score"] < 0.2


def test_a_learnt_metric(folder):
    """Wine's columns have very different units: they are scaled first, then weighed."""
    same = ("--target", "class", "--scale", "standard", "--components", 32)
    facts = here("fit", folder / "train.csv", *same, "--metric", "-o", folder / "seen.craft")
    assert "MetricMap" in facts["map"]
    learner = craftmaps.load(folder / "seen.craft")
    assert learner.feature_map_.feature_map_.metric_root_.shape == (13, 13)
    facts = here("evaluate", folder / "seen.craft", folder / "test.csv", "--target", "class")
    assert facts["error"] < 0.1


@pytest.mark.slow
def test_images(folder):
    """With and without a metric or a search; the model file has the gradients in it."""
    same = ("--target", "digit", "--components", 64, "--images", "-o", folder / "strokes.craft")
    for more in ((), ("--metric",), ("--auto",)):
        facts = here("fit", folder / "new.parquet", *same, *more)
        assert "ImageMap" in facts["map"]
        assert ("MetricMap" in facts["map"]) == ("--metric" in more)
        assert facts["training_error"] < 0.05
    facts = here("evaluate", folder / "strokes.craft", folder / "new.parquet", "--target", "digit")
    assert facts["error"] < 0.05


def test_a_search_on_npz_learns_a_regression(folder):
    out, _ = run("craftmaps fit numbers.npz --target y --components 64 -o r.craft", folder)
    assert "KernelRegressor: numbers learned from 600 rows" in out
    assert "expected error: " in out
    facts = here("evaluate", folder / "r.craft", folder / "numbers.npz", "--target", "y")
    assert facts["r2"] > 0.9


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("fit absent.csv --target y -o m.craft", "there is no file"),
        ("fit train.csv --target colour -o m.craft", "no column 'colour'"),
        ("fit train.csv -o m.craft", "--target COLUMN"),
        ("fit train.csv --target class --budget 9s --degree 2 -o m.craft", "leave --degree or"),
        ("fit train.csv --target class --auto --metric -o m.craft", "leave --auto or --metric out"),
        ("fit train.csv --target class --images --scale none -o m.craft", "--images or --scale"),
        ("fit train.csv --target class --images --unit-norm -o m.craft", "--images or --unit-norm"),
        ("fit train.csv --target class --images -o m.craft", "square number of pixels"),
        ("predict train.csv test.csv -o p.csv", "train.csv"),
        ("predict model.craft test.csv -o p.xls", "ends in .parquet or .pq or .csv"),
        ("fit train.csv --target class -o nowhere/m.craft", "nowhere"),
        ("fit train.csv --target class -o digits", "not a file that can be replaced"),
        (
            "fit train.csv --target class --every nan -o m.craft",
            "--checkpoint-every must be at least 0",
        ),
        (
            "fit train.csv --target class --checkpoint-every -1 -o m.craft",
            "every must be at least 0",
        ),
        ("compare train.csv --target class --rows -3", "--rows"),
        (
            "predict holed.craft holed.csv -o p.csv",
            "'a': nan is not a finite number; choose the columns",
        ),
        ("fit holed --target y -o m.craft", "suffix does not tell the format; give --format."),
        (
            "fit holed.csv --target y --columns y -o m.craft",
            "choose the columns to read with --columns.",
        ),
        ("fit --colour", "--colour"),
    ],
)
def test_mistakes_are_told_in_one_sentence(line, complaint, folder):
    out, err = run(f"craftmaps {line}", folder, code=2)
    assert complaint in err
    assert err.startswith("craftmaps: ")
    assert err.count("\n") == 1
    assert not out
    assert not (folder / "m.craft").exists()


def test_predictions_are_written_whole_or_not_at_all(folder, tmp_path):
    model = folder / "whole.craft"
    here("fit", folder / "train.csv", "--target", "class", "--components", 32, "-o", model)
    lines = (folder / "test.csv").read_text().splitlines()
    values = lines[1].split(",")
    bad = ",".join(["oops", *values[1:]])
    (tmp_path / "bad.csv").write_text("\n".join([lines[0], *lines[1:] * 100, bad]) + "\n")
    (tmp_path / "out.csv").write_text("before")
    _, err = run(f"craftmaps predict {model} bad.csv -o out.csv", tmp_path, code=2)
    assert "oops" in err or "bad.csv" in err
    assert (tmp_path / "out.csv").read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv", "out.csv"}


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_fit_is_resumed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 16)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", X=X, y=(X[:, 0] * X[:, 1] > 0).astype(int))
    line = (
        "fit rows.npz --target y --components 512 --kernel rbf --alpha 1 --loss squared "
        "--checkpoint kept --every 0.01 -o model.craft"
    )
    for _ in range(5):  # on a busy machine the fit may end before it is interrupted
        shutil.rmtree(tmp_path / "kept", ignore_errors=True)
        (tmp_path / "model.craft").unlink(missing_ok=True)
        process = subprocess.Popen(
            [*PROGRAM, *line.split()],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while process.poll() is None and not list((tmp_path / "kept").glob("checkpoint-*.craft")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode:
            break
    assert process.returncode == 130, err
    assert "run the same command again" in err
    assert "Traceback" not in err
    assert not (tmp_path / "model.craft").exists()
    kept = max((tmp_path / "kept").glob("checkpoint-*.craft"))
    n_kept = array_file.read(kept, "checkpoint")[0]["n_rows"]
    assert 0 < n_kept < 60_000

    run(f"craftmaps {line}", tmp_path)
    resumed = craftmaps.load(tmp_path / "model.craft")
    monkeypatch.chdir(tmp_path)
    here(*line.replace("kept", "other").split())
    assert np.array_equal(resumed.coef_, craftmaps.load(tmp_path / "model.craft").coef_)
    assert resumed.n_samples_seen_ == 60_000


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_no_library_makes_another_error_of_an_interruption(handler):
    def careless():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise TypeError("careless")

    before = signal.signal(signal.SIGINT, handler)
    try:
        error, text = {
            signal.default_int_handler: (options.StoppedError, "the way on"),
            signal.SIG_IGN: (TypeError, "careless"),
        }[handler]
        with pytest.raises(error, match=text), options.stoppable(lambda: "the way on"):
            careless()
        assert signal.getsignal(signal.SIGINT) is handler
        with pytest.raises(OSError, match="full"), options.stoppable(lambda: "the way on"):
            raise OSError("full")
    finally:
        signal.signal(signal.SIGINT, before)


def test_help_starts_without_the_library():
    """Scikit-learn and Numba take seconds to import, which --help and --version do not need."""
    program = (
        "import sys; from craftmaps.cli import main; "
        "print([name for name in ('numpy', 'sklearn', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    out, _ = run("craftmaps --version", ".")
    assert out == f"craftmaps {craftmaps.__version__}\n"


def test_the_installed_command_is_this_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["craftmaps"].partition(":")
    assert callable(getattr(import_module(module), name))
