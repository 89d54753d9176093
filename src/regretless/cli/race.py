"""`regretless race`: compare all learners on the same streams."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli.exits import clean_errors
from regretless.cli.terminal import printable, say
from regretless.core.progress import progress_bar

COMPILING = " (compiling new code, once per machine)"
WIDTH = 120  # of a table written to a file


def race(
    streams: Annotated[
        list[str] | None,
        typer.Argument(metavar="STREAM", help="Names of streams, or files (default: breast-cancer wine)."),
    ] = None,
    learners: Annotated[
        list[str] | None, typer.Option(help='The learners, AIOLI,"FOLKLORE(radius=5)" (default: all that apply).')
    ] = None,
    orders: Annotated[int, typer.Option(min=1, help="The number of random orders of the rows.")] = 10,
    jobs: Annotated[int, typer.Option(min=1, help="Processes. The results do not depend on it.")] = 2,
    against: Annotated[str | None, typer.Option(help="Other libraries: any of river,vw,sklearn.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Use this many rows of each order (default: all).")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the random orders.")] = 0,
    target: Annotated[str, typer.Option(help="For files: the label column.")] = "label",
    format: Annotated[str | None, typer.Option(help="For files: the format (default: from the file name).")] = None,
    out: Annotated[Path, typer.Option(help="The output folder for leaderboard, plots and curves.")] = Path("race"),
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the leaderboard as Markdown.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the leaderboard as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the leaderboard as CSV.")] = False,
) -> None:
    """Run all learners on streams in several random orders, and compare loss, regret bounds and time.

    The default race takes less than half a minute on two cores, once the code is compiled.

    Examples: regretless race digits --orders 5; regretless race clicks.csv --target click --against river,vw
    """
    if markdown + json + csv > 1:
        raise typer.BadParameter("choose one of --markdown, --json and --csv.")
    wanted = [name for text in learners or [] for name in split(text)]
    rivals = split(against or "")
    with clean_errors():
        from regretless.evaluate.race import playing

        _check_usage(streams or [], wanted, rivals)
        first = f"the first game{COMPILING}"
        with progress_bar(not (markdown or json or csv), None, first, transient=True) as bar:

            def told(what: str, done: int, total: int) -> None:
                compiling = COMPILING if "order 1:" in what else ""
                bar.update(description=printable(what) + compiling, completed=done, total=total)

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
    """Split a list at its commas, except inside brackets.

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
    """Report unknown names before anything is read or compiled."""
    from difflib import get_close_matches

    from regretless.evaluate.race.entrants import field_of
    from regretless.evaluate.race.rivals import rivals_of
    from regretless.streams import NAMES
    from regretless.streams import stream as named_stream

    for name in streams:
        if name not in NAMES and not Path(name).is_file():
            near = get_close_matches(name, NAMES, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise typer.BadParameter(f"{name!r} is neither a stream nor a file.{hint} Streams: {', '.join(NAMES)}.")
    try:
        rivals_of(rivals)
        field_of(named_stream("logistic", 10), learners)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


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
