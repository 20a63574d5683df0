"""The command `craftmaps`, its sub-commands, and its treatment of errors."""

import os
import sys
import warnings
from typing import Any, TextIO

import click

from craftmaps.cli.bench import bench
from craftmaps.cli.compare import compare
from craftmaps.cli.demo import demo
from craftmaps.cli.evaluate import evaluate
from craftmaps.cli.export import export
from craftmaps.cli.fit import fit
from craftmaps.cli.info import info
from craftmaps.cli.options import StoppedError, shell_word
from craftmaps.cli.predict import predict
from craftmaps.scale.files.errors import FileError

ADVICE = {  # advice in a terminal for each option or doubt of the library
    "on_bad_rows": "--skip-bad-rows leaves such rows out",
    "unlabeled": "--skip-bad-rows leaves such rows out",
    "table": "--skip-bad-rows leaves such rows out",
    "format": "give --format",
    "encoding": "give the encoding of the file, such as --encoding latin-1 or utf-16",
    "columns": "choose the columns to read with --columns",
    "kind": "if it may hold such values, repeat fit with --as {name}=text",
    "key": "leave it out with --drop {name}, unless it says something about new rows",
    "order": "use --as {name}=dayfirst, or --as {name}=date if the month comes first",
    "mixed": "make it empty in the file, or keep the text with --as {name}=text",
    "number": "use --as {name}=number, or keep the text with --as {name}=text",
}
_WARNED: set[str] = set()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="craftmaps", message="craftmaps %(version)s")
def craftmaps() -> None:
    """Kernel machines at the price of linear ones, for files of any size.

    \b
    Example:
      craftmaps fit --help
    """


for command in (fit, predict, evaluate, compare, info, export, bench, demo):
    craftmaps.add_command(command)


@craftmaps.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
def reproduce(words: tuple[str, ...]) -> None:
    """Say where this command of version 0.1.0 went."""
    raise click.UsageError(
        "the papers are reproduced from a checkout of the repository: python -m reproduction "
        + " ".join(words)
    )


def main() -> None:
    """Run the command line; exit code 2 means a mistake of the user, 130 an interruption."""
    warnings.showwarning = _show_warning
    try:
        sys.exit(_exit_code())
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _exit_code() -> int:
    try:
        result = craftmaps.main(prog_name="craftmaps", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _complain(error.format_message(), 2)
    except StoppedError as error:
        return _complain(str(error), 130)
    except (click.Abort, KeyboardInterrupt):
        return _complain("stopped; nothing was written.", 130)
    except FileError as error:
        return _complain(error.worded(ADVICE, shell_word), 2)
    except BrokenPipeError:
        raise
    except OSError as error:
        told = error.strerror or str(error)
        return _complain(f"{told}: {error.filename}" if error.filename else told, 2)
    except (ValueError, ImportError, MemoryError) as error:
        return _complain(str(error) or "there is not enough memory.", 2)


def _complain(message: str, code: int) -> int:
    click.echo(f"craftmaps: {' '.join(message.split())}", err=True)
    return code


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> Any:
    told = message.worded(ADVICE, shell_word) if hasattr(message, "worded") else str(message)
    text = " ".join(told.split())
    if text not in _WARNED:  # files are read several times
        _WARNED.add(text)
        click.echo(f"craftmaps: warning: {text}", err=True)


if __name__ == "__main__":
    main()
