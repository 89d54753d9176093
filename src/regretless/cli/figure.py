"""`regretless figure`: reproduce figures of the papers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from regretless.cli.exits import USAGE, clean_errors
from regretless.cli.listing import complete_figure
from regretless.cli.terminal import say
from regretless.core.progress import progress_bar


def figure(
    name: Annotated[str, typer.Argument(help="The figure; `list` shows all.", autocompletion=complete_figure)],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and runs: takes seconds, less precise.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all random numbers.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes. The results do not depend on it.")] = 2,
    out: Annotated[Path, typer.Option(help="The output folder.")] = Path("figures"),
) -> None:
    """Reproduce a figure of a paper: its numbers as CSV, its plot as PNG and SVG.

    Example: regretless figure aioli-2 --quick
    """
    from regretless.figures import ABOUT, make

    if name == "list":
        width = max(map(len, ABOUT))
        for each, about in ABOUT.items():
            print(f"{each:{width}}  {about}")
        return
    if name not in ABOUT:
        print(f"unknown figure {name!r}: choose one of {', '.join(ABOUT)}, or `list`.", file=sys.stderr)
        raise typer.Exit(USAGE)
    from regretless.figures.common import Work

    with clean_errors(), progress_bar(True, None, name, transient=True) as bar:

        def told(what: str, done: int, total: int) -> None:
            bar.update(description=what, completed=done, total=total)

        paths = make(name, out, quick=quick, seed=seed, work=Work(jobs, told))
    print(f"{name}: {ABOUT[name]}")
    say(f"written: {', '.join(map(str, paths))}")
