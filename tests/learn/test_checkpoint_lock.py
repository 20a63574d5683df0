"""Two processes on one checkpoint folder: the second is told about the first."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from craftmaps import OnePassRegressor
from craftmaps.storage.folder_lock import FolderLock

pytest.importorskip("fcntl", reason="locks of files are those of POSIX")

CHILD = """
import sys, time
import numpy as np
from craftmaps import OnePassRegressor

def blocks():
    rng = np.random.default_rng(0)
    for number in range(4):
        X = rng.standard_normal((50, 4))
        yield X, X[:, 0]
        if number == 2:
            print("learning", flush=True)
            if sys.argv[2] == "wait":
                time.sleep(120)

OnePassRegressor(alpha=1.0).fit_blocks(blocks(), checkpoint=sys.argv[1], checkpoint_every=0)
"""


def blocks():
    rng = np.random.default_rng(0)
    for _ in range(4):
        X = rng.standard_normal((50, 4))
        yield X, X[:, 0]


def started(folder):
    """A process in the middle of a fit."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), "wait"], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "learning\n"
    return child


def ended(child, signal_number):
    child.send_signal(signal_number)
    child.wait(60)
    child.stdout.close()


def fit(folder):
    return OnePassRegressor(alpha=1.0).fit_blocks(blocks(), checkpoint=folder, checkpoint_every=0)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_folder_in_use_is_refused_and_taken_over_when_its_process_is_gone(end, tmp_path):
    child = started(tmp_path)
    try:
        files = sorted(tmp_path.iterdir())
        whom = f"{tmp_path} is in use by process {child.pid} on {socket.gethostname()} (since 20"
        with pytest.raises(OSError, match=re.escape(whom)):
            fit(tmp_path)
        assert sorted(tmp_path.iterdir()) == files  # nothing of the other fit is touched
        another = subprocess.run(
            [sys.executable, "-c", CHILD, str(tmp_path), "go"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert another.returncode == 1
        assert f"in use by process {child.pid}" in another.stderr
    finally:
        ended(child, end)
    resumed = fit(tmp_path)
    assert resumed.n_samples_seen_ == 200
    expected = OnePassRegressor(alpha=1.0).fit_blocks(blocks())
    np.testing.assert_array_equal(resumed.coef_, expected.coef_)
    assert not (tmp_path / "in-use.json").exists()


def test_a_folder_is_free_after_a_fit_that_fails(tmp_path):
    def failing():
        yield from blocks()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        OnePassRegressor(alpha=1.0).fit_blocks(failing(), checkpoint=tmp_path)
    with FolderLock(tmp_path), pytest.raises(OSError, match=f"process {os.getpid()} on"):
        fit(tmp_path)  # also in one process
    assert fit(tmp_path).n_samples_seen_ == 200


def test_a_process_on_another_host_is_believed(tmp_path):
    lock = tmp_path / "in-use.json"
    lock.write_text(json.dumps({"process": 12, "host": "elsewhere", "since": time.time()}))
    with pytest.raises(OSError, match=f"process 12 on elsewhere .*remove {re.escape(str(lock))}"):
        fit(tmp_path)
    lock.unlink()
    assert fit(tmp_path).n_samples_seen_ == 200


@pytest.mark.parametrize("content", ["", "{", "[]", '{"process": 12}'])
def test_a_damaged_lock_of_nobody_is_taken_over(content, tmp_path):
    host = {"host": socket.gethostname()} if content.startswith('{"') else {}
    text = json.dumps(json.loads(content) | host) if host else content
    (tmp_path / "in-use.json").write_text(text)
    assert fit(tmp_path).n_samples_seen_ == 200


@pytest.mark.slow
def test_of_many_processes_one_at_a_time_has_the_folder(tmp_path):
    """Each writes its mark, waits and looks whether it is still there."""
    script = """
import random, sys, time
from pathlib import Path
from craftmaps.storage.folder_lock import FolderLock
folder, had = Path(sys.argv[1]), 0
while had < 20:
    try:
        with FolderLock(folder):
            mark = folder / "mark"
            mark.write_text(sys.argv[2])
            time.sleep(random.uniform(0, 0.002))
            assert mark.read_text() == sys.argv[2]
            had += 1
    except OSError:
        time.sleep(random.uniform(0, 0.001))
"""
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(i)]) for i in range(5)
    ]
    assert [child.wait(300) for child in children] == [0] * 5
