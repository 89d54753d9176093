"""`regretless race`: every learner on the same streams."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli.exits import clean_errors
from regretless.cli.terminal import printable, say

WIDTH = 120  # of a table that goes to a file


def race(
    streams: Annotated[
        list[str] | None,
        typer.Argument(metavar="STREAM", help="Names of streams, or files (default: breast-cancer wine)."),
    ] = None,
    learners: Annotated[
        list[str] | None, typer.Option(help='Who plays, AIOLI,"FOLKLORE(radius=5)" (default: all that can).')
    ] = None,
    orders: Annotated[int, typer.Option(min=1, help="Random orders of the rows.")] = 10,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; the results are the same for any number.")] = 2,
    against: Annotated[str | None, typer.Option(help="Other libraries, of river,vw,sklearn.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Play this many rows of each order (default: all).")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides the orders.")] = 0,
    target: Annotated[str, typer.Option(help="Of a file: the column of labels.")] = "label",
    format: Annotated[str | None, typer.Option(help="Of a file: how to read it (default: by its ending).")] = None,
    out: Annotated[Path, typer.Option(help="The folder of leaderboard, pictures and curves.")] = Path("race"),
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the leaderboard as Markdown.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print it as CSV.")] = False,
) -> None:
    """Play every learner on streams, in several random orders: what each lost, what it can prove, what it cost.

    Without arguments it takes less than half a minute on two cores, once the code is compiled.

    Examples: regretless race digits --orders 5; regretless race clicks.csv --target click --against river,vw
    """
    if markdown + json + csv > 1:
        raise typer.BadParameter("choose one of --markdown, --json and --csv.")
    wanted = [name for text in learners or [] for name in split(text)]
    rivals = split(against or "")
    with clean_errors():
        from regretless.evaluate.race import playing

        _check_usage(streams or [], wanted, rivals)
        with _bar(quiet=markdown or json or csv) as told:
            result = playing.race(
                streams or playing.STREAMS,
                wanted or None,
                orders=orders,
                jobs=jobs,
                against=rivals,
                rows=rows,
                seed=seed,
                target=target,
                format=format,
                told=told,
            )
        pictures = result.save(out)
    if json or csv or markdown:
        text = result.to_json() if json else result.to_csv() if csv else result.to_markdown()
        print(printable(text, keep="\n") if sys.stdout.isatty() else text, end="")
    else:
        _print_tables(result)
        say(f"leaderboard: {out / 'leaderboard.md'}")
        for picture in pictures:
            say(f"picture: {picture}")


def split(text: str) -> list[str]:
    """Cut a list at its commas, but not inside brackets.

    >>> split("AIOLI, Mixture([AIOLI(radius=5), OGD()])")
    ['AIOLI', 'Mixture([AIOLI(radius=5), OGD()])']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _check_usage(streams: list[str], learners: list[str], rivals: list[str]) -> None:
    """Names nobody knows, before anything is read or compiled."""
    from difflib import get_close_matches

    from regretless.evaluate.race.entrants import field_of
    from regretless.evaluate.race.rivals import rivals_of
    from regretless.streams import NAMES
    from regretless.streams import stream as named_stream

    for name in streams:
        if name not in NAMES and not Path(name).is_file():
            near = get_close_matches(name, NAMES, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise typer.BadParameter(
                f"there is neither a stream nor a file {name!r}.{hint} Streams: {', '.join(NAMES)}."
            )
    try:
        rivals_of(rivals)
        field_of(named_stream("logistic", 10), learners)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yields what is to be told of the progress; it shows a bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("games"), TimeRemainingColumn())
    words = TextColumn("{task.description}", markup=False)
    with Progress(*columns, words, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("the first game (new code is compiled, once a machine)", total=None)

        def told(what: str, done: int, total: int) -> None:
            compiling = " (new code is compiled, once a machine)" if "order 1:" in what else ""
            bar.update(task, description=printable(what) + compiling, completed=done, total=total)

        yield told


def _print_tables(result: Any) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from regretless.evaluate.race.results import HEADINGS, NOTE, OVERALL, about, cells, refused

    console = Console(width=None if sys.stdout.isatty() else WIDTH)

    def show(headings: list[str], body: list[list[str]]) -> None:
        table = Table()
        for heading in headings:
            table.add_column(heading, justify="left" if heading == "learner" else "right")
        for row in body:
            table.add_row(*(Text(printable(cell)) for cell in row))
        console.print(table)

    for stream in result.streams:
        console.print(Text.assemble((printable(stream.name), "bold"), f": {printable(about(stream))}"))
        show(HEADINGS, cells(stream))
        for each in stream.refusals:
            console.print(Text(printable(refused(each))))
        console.print()
    if len(result.streams) > 1:
        console.print(Text(OVERALL))
        show(["learner", "mean place"], [[name, f"{place:.2f}"] for name, place in result.overall()])
        console.print()
    console.print(Text(NOTE, style="dim"))
