"""A line on the terminal that shows the progress of a long fit.

tqdm does more, but it would be one more dependency for every user.
"""

import shutil
import sys
import time
from typing import Self, TextIO

_SILENT_SECONDS = 1.0  # before the first line, so that short fits show nothing
_INTERVAL = 0.2  # seconds between two lines


class Line:
    """A line of text that is rewritten in place.

    Parameters
    ----------
    shown : bool or None, default=None
        None shows it if `stream` is a terminal.
    stream : text stream, default=None
        sys.stderr if None.
    """

    def __init__(self, shown: bool | None = None, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.shown = self._stream.isatty() if shown is None else shown
        self._width = 0

    def write(self, text: str) -> None:
        """Replace the text of the line, cut to the width of the terminal."""
        if self.shown:
            text = text[: shutil.get_terminal_size().columns - 1]
            self._stream.write("\r" + text.ljust(self._width))
            self._stream.flush()
            self._width = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._width:
            self._stream.write("\n")
            self._stream.flush()


class Progress:
    """A line with rows done, rows per second and time left.

    Parameters
    ----------
    total : int or None
        Rows to come, if known.
    shown : bool or None, default=None
        None shows the line if `stream` is a terminal.
    doing : str, default=""
        What is done with the rows; the line begins with it.
    stream : text stream, default=None
        sys.stderr if None.

    Examples
    --------
    >>> with Progress(total=1000) as progress:  # silent: this is no terminal
    ...     progress.advance(500)
    >>> progress.rows
    500
    """

    def __init__(
        self,
        total: int | None,
        shown: bool | None = None,
        doing: str = "",
        stream: TextIO | None = None,
    ) -> None:
        self.total = total
        self._doing = doing
        self.rows = 0
        self._line = Line(shown, stream)
        self._start = time.perf_counter()
        self._next = self._start + (_SILENT_SECONDS if shown is None else 0.0)

    def advance(self, rows: int) -> None:
        """Count rows, and rewrite the line if enough time has passed."""
        self.rows += rows
        now = time.perf_counter()
        if self._line.shown and now >= self._next:
            self._next = now + _INTERVAL
            self._line.write(self._doing + self.line(now - self._start))

    def line(self, elapsed: float) -> str:
        """Return the text to show after `elapsed` seconds."""
        speed = self.rows / max(elapsed, 1e-9)
        if self.total is None:
            return f"{self.rows:,} rows, {speed:,.0f} rows/s, {clock(elapsed)}"
        left = (self.total - self.rows) / max(speed, 1e-9)
        share = self.rows / max(self.total, 1)
        return (
            f"{self.rows:,} of {self.total:,} rows ({share:.0%}), {speed:,.0f} rows/s, "
            f"{clock(left)} left"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(*error)


def clock(seconds: float) -> str:
    """Format a time as hours, minutes and seconds."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
