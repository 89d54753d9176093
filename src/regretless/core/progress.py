"""The progress bar of all long computations: shown by rich on standard error, only in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from regretless.core.kernels import compiling

BAR = 24  # columns of the terminal
SHORTENED: Any = {"no_wrap": True, "overflow": "ellipsis", "ratio": 1}  # a long text, before the count and the time


class Bar:
    """A progress bar. Without a display, its methods do nothing."""

    def __init__(self, display: Any = None, task: Any = None) -> None:
        self._display = display
        self._task = task

    def advance(self, amount: int = 1) -> None:
        """Add to the completed amount."""
        if self._display is not None:
            self._display.advance(self._task, amount)

    def update(self, *, description: str | None = None, completed: int | None = None, total: int | None = None) -> None:
        """Set the description, the completed amount or the total; None leaves a value unchanged."""
        if self._display is not None:
            self._display.update(self._task, description=description, completed=completed, total=total)

    @property
    def speed(self) -> float | None:
        """The amount completed per second, if it is known."""
        return None if self._display is None else self._display.tasks[0].speed


@contextmanager
def progress_bar(
    wanted: bool,
    total: int | None,
    description: str = "rows",
    *,
    unit: Literal["count", "bytes"] = "count",
    transient: bool = False,
) -> Iterator[Bar]:
    """Show a progress bar on standard error if it is a terminal and rich is installed; else yield a silent `Bar`.

    Parameters
    ----------
    wanted : whether to show a bar at all.
    total : the amount to complete, or None if it is unknown.
    description : the text after the bar.
    unit : "count", or "bytes", which also shows the transfer speed.
    transient : whether the bar disappears at the end.

    Examples
    --------
    >>> with progress_bar(True, total=3) as bar:
    ...     for _ in range(3):
    ...         bar.advance()
    """
    try:
        from rich import progress as rich_progress
        from rich.console import Console
        from rich.table import Column
    except ImportError:
        wanted = False
    if not wanted or not (console := Console(stderr=True)).is_terminal:
        yield Bar()
        return
    columns = (
        rich_progress.BarColumn(bar_width=BAR),
        *(
            (rich_progress.MofNCompleteColumn(),)
            if unit == "count"
            else (rich_progress.DownloadColumn(), rich_progress.TransferSpeedColumn())
        ),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.description}", markup=False, table_column=Column(**SHORTENED)),
    )
    bar = rich_progress.Progress(*columns, console=console, transient=transient, expand=True)
    with compiling.line.hidden(), bar as display:
        yield Bar(display, display.add_task(description, total=total))
