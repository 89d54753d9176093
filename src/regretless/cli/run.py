"""`regretless run` and `regretless predict`: a file through a learner, and other rows through what it has learned."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli.exits import INTERRUPTED, clean_errors
from regretless.cli.terminal import output, printable, printable_json, say


class OnBad(StrEnum):
    """What is done with a row nobody can learn from."""

    error = "error"
    skip = "skip"
    quarantine = "quarantine"


class Kind(StrEnum):
    """The format of forecasts."""

    parquet = "parquet"
    csv = "csv"


FORMULAS = "In CSV, put an apostrophe before text that a spreadsheet would take for a formula."
FORMAT = "csv, tsv, jsonl, parquet, arrow, svmlight or vw (default: by the name's ending; csv for standard input)."


def run(
    data: Annotated[str, typer.Argument(help="A file, or - for standard input.")],
    target: Annotated[str, typer.Option(help="The column of labels.")] = "label",
    model: Annotated[
        str | None,
        typer.Option(
            help="A learner, 'AIOLI(radius=5)', or a model file to go on from (default: OnlineLogisticRegression; "
            "LinearizedFTRL for sparse rows of more than 1024 columns)."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of the report (default: NAME-run).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run was interrupted.")] = False,
    on_bad: Annotated[OnBad, typer.Option(help="Rows nobody can learn from: stop, leave out, or set aside.")] = (
        OnBad.error
    ),
    forecasts: Annotated[Kind, typer.Option(help="How forecasts are written.")] = Kind.parquet,
    format: Annotated[str | None, typer.Option(help=FORMAT)] = None,
    weight: Annotated[str | None, typer.Option(help="The column of weights.")] = None,
    classes: Annotated[
        str | None, typer.Option(help="The labels, a,b,c, where the first rows may not show all.")
    ] = None,
    bits: Annotated[int, typer.Option(min=1, max=30, help="VW features are hashed into 2^bits columns.")] = 18,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 100_000,
    escape_formulas: Annotated[bool, typer.Option("--escape-formulas", help=FORMULAS)] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Stream a file through a learner: forecasts, model, score, and a report with pictures.

    Every row is forecast before its label is used. Interrupted by Ctrl-C or killed, the run goes on with --resume and
    ends with the same files.

    Example: regretless run clicks.csv --target click
    """
    with clean_errors():
        from regretless.evaluate.run import report
        from regretless.evaluate.run.folder import Folder
        from regretless.evaluate.run.run import Interrupted, Run, Settings, stopping_at_once

        if data != "-" and not Path(data).is_file():
            raise typer.BadParameter(f"there is no file {data!r}.")
        named = None if classes is None else tuple(classes.split(","))
        settings = Settings(
            data, target, model, format, on_bad.value, weight, named, bits, checkpoint_every=checkpoint_every
        )
        path = out or Path(f"{'stdin' if data == '-' else Path(data).name.split('.')[0]}-run")
        if resume and not path.is_dir():
            raise ValueError(f"there is nothing to resume: there is no folder {path}.")
        try:
            with stopping_at_once(), Folder(path) as folder:
                summary = folder.finished() if resume else None
                if summary is None or (summary.get("data"), summary.get("target")) != (data, target):
                    going = Run(settings, folder, resume)
                    with _bar(quiet=json, total=_lines_about(data, going.reading.format)) as tell:
                        going.play(tell)
                    with _spinner("putting forecasts together, finding the best in hindsight", quiet=json):
                        going.finish(forecasts is Kind.csv, escape_formulas)
                        summary = report.write(going)
                    folder.clear()
        except (Interrupted, KeyboardInterrupt):
            again = shlex.join([*sys.argv[1:], *([] if resume else ["--resume"])])
            say(f"interrupted. To go on: regretless {again}", sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        if json:
            print(printable_json((path / "summary.json").read_text(encoding="utf-8")), end="")
        else:
            _print_summary(report.entries(summary), path)


def predict(
    model: Annotated[Path, typer.Argument(help="A model file, such as `regretless run` leaves.", exists=True)],
    data: Annotated[str, typer.Argument(help="A file, or - for standard input.")],
    out: Annotated[Path | None, typer.Option(help="Where to write: .csv or .parquet (default: CSV, printed).")] = None,
    format: Annotated[str | None, typer.Option(help=FORMAT)] = None,
    bits: Annotated[int, typer.Option(min=1, max=30, help="VW features are hashed into 2^bits columns.")] = 18,
    escape_formulas: Annotated[bool, typer.Option("--escape-formulas", help=FORMULAS)] = False,
) -> None:
    """Forecast the rows of a file by a model, which does not change.

    Example: regretless predict clicks-run/model.npz tomorrow.csv
    """
    with clean_errors():
        from regretless.core.files import replacing
        from regretless.evaluate.run.predict import predict_file

        if data != "-" and not Path(data).is_file():
            raise typer.BadParameter(f"there is no file {data!r}.")
        if out is not None and out.suffix not in (".csv", ".parquet"):
            raise typer.BadParameter(f"--out {str(out)!r}: give a name that ends in .csv or .parquet.")
        with ExitStack() as stack:
            tell = stack.enter_context(_bar(quiet=out is None, total=_lines_about(data, format)))
            to = output() if out is None else stack.enter_context(replacing(out))
            csv = out is None or out.suffix == ".csv"
            rows = predict_file(model, data, to, csv, format, bits, tell, escape_formulas)
        if out is not None:
            say(f"{rows} rows: {out}")


def _lines_about(data: str, format: str | None) -> int | None:
    """How many lines a text file has, guessed from its first megabyte."""
    path = Path(data)
    if data == "-" or format in ("parquet", "arrow") or path.suffix in (".gz", ".bz2", ".xz", ".parquet", ".arrow"):
        return None
    size = path.stat().st_size
    with path.open("rb") as file:
        some = file.read(1 << 20)
    return max(1, round(size * some.count(b"\n") / max(len(some), 1)))


@contextmanager
def _bar(quiet: bool, total: int | None) -> Iterator[Callable[[Any], None]]:
    """Yields what is to be told of the progress; it shows a bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("reading (and compiling, once a machine)", total=total)

        def tell(now: Any) -> None:
            speed = progress.tasks[0].speed
            told = [f"{now.rows:,} rows"]
            if speed:
                told.append(f"{speed:,.0f} rows/s")
            told.append(f"loss {now.mean_loss:.4f}")
            if now.certificate == now.certificate:
                told.append(f"certificate {now.certificate:.4g}")
            progress.update(task, description="  ".join(told), completed=now.lines)

        yield tell


@contextmanager
def _spinner(words: str, quiet: bool) -> Iterator[None]:
    """Says what is going on, where there is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(words):
        yield


def _print_summary(entries: list[tuple[str, str]], folder: Path) -> None:
    width = max(len(title) for title, _ in entries)
    for title, value in entries:
        print(f"{title:<{width}}  {printable(value)}")
    say(f"report: {folder / 'index.html'}")
