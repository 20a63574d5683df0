"""Compiled code that cannot be kept, or is damaged on disk: one sentence, and the same results."""

import os
import subprocess
import sys

import pytest

from craftmaps.loops.compiled import compiled

SCRIPT = """
import numpy as np
from craftmaps.loops.sketch import sketch_dense
out = np.zeros((1, 4))
sketch_dense(np.ones((1, 2)), np.array([0, 3], np.int32), np.array([1.0, -1.0]), out)
print(out.tolist())
"""


def run(folder, **options):
    """Errors and warnings of a process that uses one loop, with this folder for compiled code."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
        **options,
    )
    assert done.stdout == "[[1.0, 0.0, 0.0, -1.0]]\n"
    return done.stderr


def sentences(text, words):
    assert text.count("UserWarning") == 1, text
    assert words in text
    assert "NUMBA_CACHE_DIR" in text


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numba")
    assert run(folder) == ""
    assert run(folder) == ""
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("nbi", 9), ("nbi", 0), ("nbc", 99)])
def test_damaged_code_is_told_and_compiled_again(kept, kind, size):
    files = list(kept.rglob(f"*.{kind}"))
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:size])
    sentences(run(kept), f"compiled loops in {files[0].parent} cannot be read")
    assert run(kept) == ""  # it has mended itself


def test_a_loop_without_a_folder_is_told_and_works():
    """A function that is in no file, for which there is no folder."""
    space: dict = {}
    exec("def double(x):\n    return 2 * x\n", space)
    with pytest.warns(UserWarning, match="no folder is writable .* set .*NUMBA_CACHE_DIR"):
        double = compiled(space["double"])
    assert double(3) == 6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of the size of files are of POSIX")
def test_a_disk_without_room_is_told(tmp_path):
    import resource
    import signal

    def no_large_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    sentences(run(tmp_path, preexec_fn=no_large_files), "cannot be written to")
