"""Exit codes, and errors in words: 0 done, 2 usage, 3 data, 4 interrupted and resumable."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

USAGE, DATA, INTERRUPTED = 2, 3, 4


@contextmanager
def clean_errors() -> Iterator[None]:
    """What is wrong with the data is said in one line, without a traceback, and exits with 3."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(DATA) from error
