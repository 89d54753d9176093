"""Exit codes, and errors in words: 0 done, 2 usage, 3 data, 4 interrupted and resumable."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from regretless.cli.terminal import say

USAGE, DATA, INTERRUPTED = 2, 3, 4


TOO_LARGE = (
    "Use fewer columns (of VW text, --bits), or a learner that keeps a few numbers per column: LinearizedFTRL or OGD."
)


@contextmanager
def clean_errors() -> Iterator[None]:
    """What is wrong with the data is said in one line, without a traceback, and exits with 3."""
    try:
        yield
    except MemoryError as error:
        say(f"error: not enough memory ({str(error) or 'no size is told'}). {TOO_LARGE}", sys.stderr)
        raise typer.Exit(DATA) from error
    except (ValueError, OSError, ImportError) as error:
        say(f"error: {error}", sys.stderr)
        raise typer.Exit(DATA) from error
