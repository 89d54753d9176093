"""`noregret race`: every learner on one stream."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

StreamName = StrEnum("StreamName", ["breast-cancer", "digits", "wine", "iris", "adversarial"])


DEFAULT = StreamName("breast-cancer")


def race(
    stream: Annotated[StreamName, typer.Option(help="The built-in stream to play on.")] = DEFAULT,
    seed: Annotated[int, typer.Option(min=0, help="Decides the order of the rows.")] = 0,
    rows: Annotated[int | None, typer.Option(min=1, help="Play this many rows (default: all).")] = None,
) -> None:
    """Play every learner on a stream: what each lost, what it can prove, what it cost.

    Example: noregret race --stream digits --seed 3
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from noregret.race import entrants
    from noregret.race import race as run_race
    from noregret.streams import stream as named_stream

    console = Console()
    played = named_stream(stream.value, rows, seed)
    field = entrants(played)
    console.print(f"[bold]{played.name}[/bold]: {played.about}")
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("compiling (once a machine)", total=len(field) * len(played.y))
        results = run_race(played, field, lambda name, done: progress.update(task, description=name, advance=done))
    console.print(_table(results))
    console.print(
        "Regret certificate: the total loss is at most this much above that of the best comparator of "
        f"radius {played.radius:.3g}, on these very rows (OnlineLogisticRegression's are rescaled, its radius "
        "is 8); 'none' where nothing is proved. It is in "
        "the learner's own "
        "loss: the log loss, or where none is shown the hinge loss (Perceptron: mistakes minus hinge loss), and for "
        "Vovk-Azoury-Warmuth the squared loss of -1 and +1.",
        style="dim",
    )


def _certificate(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.1f}" if abs(value) < 1e6 else f"{value:.1e}"


def _table(results: list[Any]) -> Any:
    from rich.table import Table

    table = Table()
    table.add_column("learner")
    for heading in ("mean\nlog loss", "error\nrate", "regret\ncertificate", "µs per\nrow"):
        table.add_column(heading, justify="right")
    for r in results:
        table.add_row(
            r.learner,
            "-" if r.log_loss is None else f"{r.log_loss:.4f}",
            f"{r.error:.1%}",
            _certificate(r.certificate),
            f"{r.microseconds:.1f}",
        )
    return table
