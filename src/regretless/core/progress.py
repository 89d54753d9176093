"""The one progress bar: in a terminal, with rich installed; silent elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(wanted: bool, total: int | None, description: str = "rows") -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the bar by a number of steps."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    except ImportError:
        wanted = False
    if not wanted or not (console := Console(stderr=True)).is_terminal:
        yield lambda steps: None
        return
    with Progress(description, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(description, total=total)
        yield lambda steps: progress.advance(task, steps)
