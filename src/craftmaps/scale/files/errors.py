"""Errors about files, as separate parts, so that each interface can add its own advice."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

IN_PYTHON = {  # advice for each keyword of `read`
    "on_bad_rows": "on_bad_rows='skip' leaves such rows out",
    "unlabeled": "on_bad_rows='unlabeled' leaves such rows out",
    "table": "on_bad_rows='skip' leaves such rows out, and table=True reads them as a table",
    "format": "give format='csv', or the name of another format",
    "encoding": "give the encoding of the file, such as encoding='latin-1' or 'utf-16'",
    "columns": "choose the columns to read with columns=[...]",
    "n_columns": "n_columns= says how many there are",
    "zero_based": "zero_based=True counts columns from 0",
}


class FileError(ValueError):
    """Error about a file of rows.

    Attributes
    ----------
    path : str
    reason : str
        What is wrong, without advice.
    option : str or None
        The keyword of `read` that helps.
    place : str or None
        The row or line, such as "line 19".
    column : object or None
        The name or index of the column.
    """

    def __init__(
        self,
        path: Any,
        reason: str,
        option: str | None = None,
        place: str | None = None,
        column: Any = None,
    ) -> None:
        super().__init__(path, reason, option, place, column)  # pickling needs all of them
        self.path, self.reason, self.option = path, reason, option
        self.place, self.column = place, column

    def worded(self, advice: Mapping[str, str], quoted: Callable[[str], str] = repr) -> str:
        """Return the error as one sentence, with the advice for its option if there is any.

        `quoted` writes the name of the column in the advice.
        """
        column = None if self.column is None else f"column {self.column!r}"
        where = ", ".join(part for part in (str(self.path), self.place, column) if part)
        way_out = f"; {advice[self.option]}" if self.option and self.option in advice else ""
        way_out = way_out.format(name=quoted(str(self.column)))
        return f"{where}: {self.reason}{way_out}."

    def __str__(self) -> str:
        return self.worded(IN_PYTHON)


class BadRowError(FileError):
    """Error about a row that cannot be learned from."""


@contextmanager
def refusing_damage(path: str, kind: str) -> Iterator[None]:
    """Turn the errors of a parser about damaged bytes into one sentence that names the file.

    NumPy, zipfile and pyarrow raise a dozen different types of exceptions about such bytes.
    """
    try:
        yield
    except (FileError, FileNotFoundError, PermissionError, ImportError):
        raise
    except Exception as error:
        cause = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise FileError(path, f"the file is damaged, or is not {kind} ({cause})") from error
