"""`python -m reproduction` as a user runs it: real processes, real files."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from reproduction import spec
from reproduction.command import main, reproduce

PROGRAM = [sys.executable, "-m", "reproduction"]
ROOT = Path(__file__).parents[2]
SEARCHED = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
ENVIRONMENT = os.environ | {"PYTHONPATH": SEARCHED}  # as if the command ran in the checkout
SPEC = """
title = "Digits"
paper = "No paper"
protocol = "Handwritten digits, (1 + t)^3."
choices = []
measure = "classification"
value = "error"
unit = "test error, %"
axis = "size"
x_label = "E"

[[panels]]
name = "errors"
title = "Test errors"
x = [32, 64, 128, 256]
quick = [32, 64]
seeds = 4
digits = 1
methods = ["CRAFT v2"]
settings = { data = "digits", degree = 3, bits = 20 }
printed = { TS = [50.0, 20.0, 0.1, 5.0] }

[[panels]]
name = "plot"
title = "The same as a plot"
x = [32, 64, 128, 256]
quick = [32, 64]
seeds = 4
kind = "plot"
methods = ["TS", "CRAFT v2"]
settings = { data = "digits", degree = 3, bits = 20 }

[[claims]]
text = "CraftMap is better"
panel = "errors"
better = "CRAFT v2"
than = "TS"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.toml").write_text(SPEC)
    return tmp_path


def run(folder, *words, code=0):
    done = subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "\r" not in done.stderr, "progress in a pipe"
    return done.stdout, done.stderr


def test_all_tables_are_listed(folder):
    out, _ = run(folder, "--list")
    assert [line.split()[0] for line in out.splitlines()] == spec.names()
    assert spec.load("craft-table-1").title in out
    assert list(json.loads(run(folder, "--list", "--json")[0])) == spec.names()
    assert [path.name for path in folder.iterdir()] == ["mine.toml"]


def here(*words):
    """The JSON report of a command in this process, which need not import the library again."""
    done = CliRunner().invoke(reproduce, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_a_table_of_ones_own(folder, monkeypatch):
    monkeypatch.chdir(folder)
    out, err = run(folder, "mine.toml", "--seeds", "2")
    assert err == ""
    head, row = (line.split() for line in out.splitlines()[:2])
    assert head[:3] == ["name", "measured", "better"]
    assert row[0] == "mine"
    assert "The report is in reproduction-output/README.md." in out
    page = (folder / "reproduction-output" / "README.md").read_text()
    assert "This is a quick run" in page
    results = folder / "reproduction-output" / "results.jsonl"
    assert len(results.read_text().splitlines()) == 8  # the runs of both panels are the same
    before = results.read_bytes()
    facts = here("mine.toml", "--seeds", "2")
    assert results.read_bytes() == before  # nothing is run twice
    assert facts["tables"][0]["claims"] == 1
    judged = [facts["tables"][0][word] for word in ("better", "within the spread", "worse")]
    assert sum(judged) == 2  # of TS at two sizes
    again = here("mine.toml", "--report-only", "--out", "reproduction-output")
    assert again["tables"] == facts["tables"]
    nothing = here("mine.toml", "--report-only", "--out", "empty")
    assert nothing["tables"][0]["measured"] == 0
    assert not (folder / "empty" / "results.jsonl").exists()
    here("mine.toml", "--full", "--seeds", "1", "--out", "other")
    assert len((folder / "other" / "results.jsonl").read_text().splitlines()) == 8


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nothing"], "there is no table or figure 'nothing'; there are craft-figure-2"),
        ([], "give the NAME of a table or figure, or all"),
        (["gone.toml"], "gone.toml"),
        (["bad.toml"], "bad is no specification: it has no 'panels'."),
        (["worse.toml"], "worse is no specification: "),
        (["mine.toml", "--seeds", "0"], "0 is not in the range"),
    ],
)
def test_mistakes_are_told_in_one_sentence(folder, words, complaint, monkeypatch, capsys):
    """In this process; the other tests show that the command runs in one of its own."""
    (folder / "bad.toml").write_text('title = "A table"')
    (folder / "worse.toml").write_text(SPEC.replace("seeds", "sseds"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["reproduction", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.startswith("reproduction: ")
    assert err.count("\n") == 1
    assert not (folder / "reproduction-output").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_reproduction_goes_on(folder):
    process = subprocess.Popen(
        [*PROGRAM, "mine.toml", "--full"],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    results = folder / "reproduction-output" / "results.jsonl"
    while process.poll() is None and not (results.exists() and results.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "results are kept in reproduction-output: run the same command again to continue." in err
    assert "Traceback" not in err
    kept = results.read_text().splitlines()
    assert 0 < len(kept) < 32
    run(folder, "mine.toml", "--full")
    lines = results.read_text().splitlines()
    assert lines[: len(kept)] == kept
    assert len(lines) == 32


@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_progress_is_shown_on_a_terminal(folder):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "mine.toml"],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    lines = shown.decode().split("\r")
    assert lines[1].startswith("run 1 of 4: TS, digits, 32; 0:00")
    assert any(line.startswith("run 4 of 4: ") and "left" in line for line in lines)
    assert "rows/s" not in shown.decode()
