"""`regretless log`: logs as Parquet files, and without events that are over."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regretless.cli.exits import clean_errors
from regretless.cli.terminal import say

log = typer.Typer(help="The log of a service: export, import, compact.", no_args_is_help=True)
Log = Annotated[str, typer.Argument(metavar="LOG", help="An SQLite file, or postgresql://USER@HOST/NAME.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A Parquet file.")]


@log.command()
def export(source: Log, file: File) -> None:
    """Write a log to a Parquet file. A service may be running."""
    with clean_errors():
        from regretless.serve.log import EventLog
        from regretless.serve.transfer import export as write

        reading = EventLog(source, write=False)
        try:
            say(f"{write(reading, file):,} events: {file}")
        finally:
            reading.close()


@log.command("import")
def bring_in(target: Log, file: File) -> None:
    """Write the events of a Parquet file to a new log."""
    with clean_errors():
        from regretless.serve.log import EventLog
        from regretless.serve.transfer import bring_in as read

        writing = EventLog(target)
        try:
            say(f"{read(writing, file):,} events: {target}")
        finally:
            writing.close()


@log.command()
def compact(
    target: Log,
    snapshots: Annotated[
        Path | None, typer.Option(help="The folder of snapshots (default: beside an SQLite log).")
    ] = None,
) -> None:
    """Remove forecasts that have their labels: every model starts from its present state. Export the log first.

    The service must be stopped. What was removed cannot be replayed, explained or labelled again.
    """
    with clean_errors():
        from regretless.serve.log import EventLog
        from regretless.serve.snapshots import Snapshots
        from regretless.serve.transfer import compact as shorten

        folder = snapshots or (None if "://" in target else Path(f"{target}.snapshots"))
        writing = EventLog(target)
        try:
            say(f"{shorten(writing, Snapshots(folder)):,} events removed")
        finally:
            writing.close()
