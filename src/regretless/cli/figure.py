"""`regretless figure`: the figures of the texts, made anew."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from regretless.cli.exits import USAGE, clean_errors
from regretless.cli.terminal import say


def figure(
    name: Annotated[str, typer.Argument(help="Which one; `list` shows them.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and runs: seconds, and rougher.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Decides all that is drawn at random.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes. The numbers do not depend on it.")] = 2,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("figures"),
) -> None:
    """Make a figure of the texts anew: its numbers as CSV, its picture as PNG and SVG.

    Example: regretless figure aioli-2 --quick
    """
    from regretless.figures import ABOUT, make

    if name == "list":
        width = max(map(len, ABOUT))
        for each, about in ABOUT.items():
            print(f"{each:{width}}  {about}")
        return
    if name not in ABOUT:
        print(f"there is no figure {name!r}: choose one of {', '.join(ABOUT)}, or `list`.", file=sys.stderr)
        raise typer.Exit(USAGE)
    from regretless.figures.common import Work

    with clean_errors(), _bar(name) as told:
        paths = make(name, out, quick=quick, seed=seed, work=Work(jobs, told))
    print(f"{name}: {ABOUT[name]}")
    say(f"written: {', '.join(map(str, paths))}")


@contextmanager
def _bar(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Yields what is to be told of tasks done; it shows a bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)
        yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
