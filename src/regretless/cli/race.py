"""`regretless race`: compare all learners on the same streams."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from json import dumps as dump
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli.exits import INTERRUPTED, clean_errors, refuse_to_replace, this_command
from regretless.cli.options import Category, Date, DecimalMark, Drop, Encoding, Number, OnBad, Quiet, declared
from regretless.cli.terminal import printable, say
from regretless.core.progress import progress_bar

COMPILING = " (compiling new code, once per machine)"
WIDTH = 120  # of a table written to a file
GAP = 2  # between two columns
LEAST_IMPORTANT = ("bound", "certificate", "regret")  # the columns that a narrow terminal lacks
UNFINISHED = "unfinished.jsonl"  # the finished games of an interrupted race


class Order(StrEnum):
    """The order of the rows."""

    auto = "auto"
    random = "random"
    file = "file"


def race(
    streams: Annotated[
        list[str] | None,
        typer.Argument(metavar="STREAM", help="Names of streams, or files (default: breast-cancer wine)."),
    ] = None,
    learners: Annotated[
        list[str] | None, typer.Option(help='The learners, AIOLI,"FOLKLORE(radius=5)" (default: all that apply).')
    ] = None,
    order: Annotated[
        Order, typer.Option(help="Random orders, or that of the file (default: file if it has dates).")
    ] = Order.auto,
    orders: Annotated[
        int | None, typer.Option(min=1, help="The number of random orders of the rows (default: 10, or as --budget).")
    ] = None,
    budget: Annotated[
        float, typer.Option(min=1, help="Seconds: fewer orders and rows are chosen if all would take longer.")
    ] = 300.0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes. The results do not depend on it.")] = 2,
    against: Annotated[str | None, typer.Option(help="Other libraries: any of river,vw,sklearn.")] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Use this many rows of each order (default: all, or as --budget).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the random orders.")] = 0,
    target: Annotated[str, typer.Option(help="For files: the label column.")] = "label",
    format: Annotated[str | None, typer.Option(help="For files: the format (default: from the file name).")] = None,
    on_bad: Annotated[OnBad, typer.Option(help="For files: rows that cannot be read: stop, skip, or set aside.")] = (
        OnBad.error
    ),
    encoding: Encoding = None,
    decimal: DecimalMark = None,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    date: Date = None,
    out: Annotated[Path, typer.Option(help="The output folder for leaderboard, plots and curves.")] = Path("race"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted race.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an interrupted race.")] = False,
    quiet: Quiet = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the leaderboard as Markdown.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the leaderboard as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the leaderboard as CSV.")] = False,
) -> None:
    """Run all learners on streams in several random orders, and compare loss, regret bounds and time.

    The default race takes less than half a minute on two cores, once the code is compiled. After Ctrl-C, --resume
    continues with the games that are not finished.

    Examples: regretless race digits --orders 5; regretless race clicks.csv --target click --against river,vw
    """
    if markdown + json + csv > 1:
        raise typer.BadParameter("choose one of --markdown, --json and --csv.")
    wanted = [name for text in learners or [] for name in split(text)]
    rivals = split(against or "")
    shows = not (markdown or json or csv or quiet)
    with clean_errors():
        from regretless.evaluate.race import playing

        _check_usage(streams or [], wanted, rivals)
        path = out / UNFINISHED
        if path.exists() and not (resume or overwrite):
            refuse_to_replace(out, "an interrupted race", [("continue it", "--resume"), ("start again", "--overwrite")])
        bad: list[Any] = []
        read = {
            "on_bad": on_bad.value,
            "on_bad_line": bad.append,
            "encoding": encoding,
            "decimal": None if decimal is None else decimal.value,
            "declare": declared(decimal, drop=drop, category=category, number=number, time=date),
        }
        options: dict[str, Any] = {
            "orders": orders,
            "jobs": jobs,
            "against": rivals,
            "rows": rows,
            "seed": seed,
            "order": order.value,
            "budget": budget,
            "target": target,
            "format": format,
            "read": read,
        }
        result = _carry_out(
            partial(playing.race, streams or playing.STREAMS, wanted or None, **options), path, resume, shows
        )
        _tell_bad(bad, on_bad, out)
        pictures = result.save(out)
        path.unlink(missing_ok=True)
    if json or csv or markdown:
        text = result.to_json() if json else result.to_csv() if csv else result.to_markdown()
        print(printable(text, keep="\n") if sys.stdout.isatty() else text, end="")
    elif not quiet:
        _print_tables(result)
        say(f"leaderboard: {out / 'leaderboard.md'}")
        for picture in pictures:
            say(f"picture: {picture}")
        for each in result.streams:
            _print_recipe(each, streams or [], target, out)


def _carry_out(race: Callable[..., Any], path: Path, resume: bool, shows: bool) -> Any:
    """Play the games; those that are finished are kept in a file."""
    from regretless.evaluate.race.kept import Kept
    from regretless.evaluate.run.run import stopping_at_once

    def planned(plan: Any) -> None:
        if shows and plan.seconds is not None:
            rows = ", ".join(f"{n:,}" for n in plan.rows)
            say(
                f"about {plan.seconds:.0f} s: {plan.orders} orders of {rows} rows (--budget sets the time).", sys.stderr
            )

    first = f"the first game{COMPILING}"
    try:
        with stopping_at_once(), progress_bar(shows, None, first, transient=True) as bar:

            def told(what: str, done: int, total: int) -> None:
                compiling = COMPILING if "order 1:" in what else ""
                bar.update(description=printable(what) + compiling, completed=done, total=total)

            return race(kept=Kept(path, resume), planned=planned, told=told)
    except KeyboardInterrupt:
        say(f"interrupted. Finished games are kept. To continue: {this_command('--resume')}", sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _tell_bad(bad: list[Any], on_bad: OnBad, out: Path) -> None:
    """Say how many rows were left out, and write them down if asked to."""
    if not bad:
        return
    told = f"{len(bad)} bad rows were skipped."
    if on_bad is OnBad.quarantine:
        from regretless.core.files.writing import write_text

        out.mkdir(parents=True, exist_ok=True)
        write_text(out / "bad.jsonl", "".join(dump(line._asdict(), ensure_ascii=True) + "\n" for line in bad))
        told = f"{len(bad)} bad rows were written to {out / 'bad.jsonl'}."
    say(told, sys.stderr)


def _print_recipe(stream: Any, sources: list[str], target: str, out: Path) -> None:
    """The command that plays the best line again."""
    if stream.recipes is None:
        return
    from json import loads

    source = next((each for each in sources if Path(each).name.split(".")[0] == stream.name), None)
    known = loads(stream.recipes)["models"]
    best = next((line.learner for line in stream.lines() if line.learner in known), None)
    if source is not None and best is not None:
        again = shlex.join(["regretless", "run", source, "--target", target, "--race", str(out), "--model", best])
        say(f"to run the best line again, or another by its name: {again}")


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
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from regretless.evaluate.race.results import HEADINGS, NOTE, OVERALL, about, cells, refused

    console = Console(width=None if sys.stdout.isatty() else WIDTH)

    def show(headings: list[str], body: list[list[str]]) -> None:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        body = [[printable(cell) for cell in row] for row in body]
        shown = columns_that_fit(headings, body, console.width)
        for i in shown:
            table.add_column(headings[i], justify="left" if headings[i] == "learner" else "right", overflow="fold")
        for row in body:
            table.add_row(*(Text(row[i]) for i in shown))
        console.print(table)
        if len(shown) < len(headings):
            left_out = " and ".join(heading for i, heading in enumerate(headings) if i not in shown)
            console.print(Text(f"The terminal is too narrow for {left_out}: see leaderboard.md.", style="dim"))

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


def columns_that_fit(headings: list[str], body: list[list[str]], width: int) -> list[int]:
    """The columns that a terminal of this width has room for, without those that matter least.

    >>> columns_that_fit(["learner", "error", "bound"], [["OnlineLogisticRegression", "3.7%", "12.3"]], 35)
    [0, 1]
    """
    widths = [max(len(heading), *(len(row[i]) for row in body)) for i, heading in enumerate(headings)]
    shown = list(range(len(headings)))
    for least in LEAST_IMPORTANT:
        if sum(widths[i] + GAP for i in shown) <= width:
            break
        shown = [i for i in shown if headings[i] != least]
    return shown
