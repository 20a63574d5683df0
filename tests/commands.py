"""The command line in real processes, which need not import the library one after the other."""

import multiprocessing
import os
import shlex
import sys
import tempfile
from pathlib import Path

_METHODS = multiprocessing.get_all_start_methods()
_PROCESSES = multiprocessing.get_context("forkserver" if "forkserver" in _METHODS else "spawn")
if "forkserver" in _METHODS:  # a process that has imported all this, and forks for each command
    _PROCESSES.set_forkserver_preload(
        ["craftmaps.cli.main", "craftmaps.learn", "craftmaps.scale", "craftmaps.search", "pyarrow"]
    )


def run(line, folder, code=0):
    """Run `craftmaps ...` and return what it wrote to standard output and standard error."""
    with tempfile.TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        process = _PROCESSES.Process(
            target=_main, args=(shlex.split(line), os.fspath(folder), out, err)
        )
        process.start()
        process.join(500)
        assert process.exitcode is not None, f"{line} has not ended"
        out, err = out.read_text(), err.read_text()
    assert process.exitcode == code, err
    assert "Traceback" not in err
    assert "\x1b" not in out + err, "colors in a file"
    assert "\r" not in err, "a progress bar in a file"
    return out, err


def _main(words, folder, out, err):
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    sys.argv = words
    from craftmaps.cli.main import main

    main()
