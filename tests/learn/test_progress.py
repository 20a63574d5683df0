"""The line of progress: on a terminal only, with rows, speed and time left."""

import io

import numpy as np

from craftmaps import OnePassClassifier
from craftmaps.learn.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_a_line_on_a_terminal_only(capsys):
    X, y = np.arange(3000.0)[:, None], np.arange(3000) % 2
    OnePassClassifier().fit_blocks([(X, y)])
    assert capsys.readouterr() == ("", "")
    OnePassClassifier().fit_blocks([(X, y)], progress=True)
    assert f"{len(X):,} rows" in capsys.readouterr().err
    for stream, silent in ((io.StringIO(), True), (Terminal(), False)):
        with Progress(2000, stream=stream) as progress:
            progress._next = 0.0  # as if a second had passed
            progress.advance(500)
        assert (stream.getvalue() == "") == silent


def test_progress_tells_rows_speed_and_time_left():
    progress = Progress(4000, shown=False)
    progress.rows = 1000
    assert progress.line(10.0) == "1,000 of 4,000 rows (25%), 100 rows/s, 0:30 left"
    progress.total = None
    assert progress.line(4000.0) == "1,000 rows, 0 rows/s, 1:06:40"
