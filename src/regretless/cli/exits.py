"""Exit codes (0 done, 2 usage, 3 data, 4 interrupted and resumable) and errors without tracebacks."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from regretless.cli.terminal import say
from regretless.cli.wording import for_command

USAGE, DATA, INTERRUPTED = 2, 3, 4

TOO_LARGE = "Use fewer columns (for VW text, --bits), or a learner with few numbers per column: LinearizedFTRL or OGD."


@contextmanager
def clean_errors() -> Iterator[None]:
    """Print data errors in one line, without a traceback, and exit with 3."""
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe, such as head, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
        raise typer.Exit from None
    except MemoryError as error:
        say(f"error: not enough memory ({str(error) or 'unknown size'}). {TOO_LARGE}", sys.stderr)
        raise typer.Exit(DATA) from error
    except (ValueError, OSError, ImportError) as error:
        say(f"error: {for_command(str(error))}", sys.stderr)
        raise typer.Exit(DATA) from error


def refuse_to_replace(path: Path, there: str, choices: list[tuple[str, str]]) -> None:
    """Leave earlier results alone, and name the commands to choose from: for each, what it does and its option."""
    told = "\n".join(f"  to {what}:  {this_command(option)}" for what, option in choices)
    say(f"{path} holds {there}. Choose:\n{told}", sys.stderr)
    raise typer.Exit(USAGE)


def this_command(option: str) -> str:
    """The command line, with another option."""
    given = [each for each in sys.argv[1:] if each not in ("--resume", "--overwrite")]
    return f"{shlex.join(['regretless', *given])} {option}"
