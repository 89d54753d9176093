"""`regretless run` and `regretless predict`: train on a file, and forecast other rows with the trained model."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager, ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli.exits import INTERRUPTED, clean_errors
from regretless.cli.terminal import output, printable, printable_json, say
from regretless.core.progress import Bar, progress_bar


class OnBad(StrEnum):
    """How to handle rows that cannot be learned from."""

    error = "error"
    skip = "skip"
    quarantine = "quarantine"


class Kind(StrEnum):
    """The format of forecasts."""

    parquet = "parquet"
    csv = "csv"


FORMULAS = "In CSV, put an apostrophe before text that a spreadsheet would read as a formula."
FORMAT = "csv, tsv, jsonl, parquet, arrow, svmlight or vw (default: from the file name; csv for standard input)."


def run(
    data: Annotated[str, typer.Argument(help="A file, or - for standard input.")],
    target: Annotated[str, typer.Option(help="The label column.")] = "label",
    model: Annotated[
        str | None,
        typer.Option(
            help="A learner, 'AIOLI(radius=5)', or a model file to continue from (default: OnlineLogisticRegression)."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The output folder (default: NAME-run).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    on_bad: Annotated[OnBad, typer.Option(help="Rows that cannot be learned from: stop, skip, or set aside.")] = (
        OnBad.error
    ),
    forecasts: Annotated[Kind, typer.Option(help="The format of the forecasts.")] = Kind.parquet,
    format: Annotated[str | None, typer.Option(help=FORMAT)] = None,
    weight: Annotated[str | None, typer.Option(help="The column of sample weights.")] = None,
    classes: Annotated[str | None, typer.Option(help="All labels, a,b,c, if the first rows may lack some.")] = None,
    bits: Annotated[int, typer.Option(min=1, max=30, help="VW features are hashed into 2^bits columns.")] = 18,
    columns: Annotated[
        int | None, typer.Option(min=1, help="Columns of svmlight text (default: as many as its first rows have).")
    ] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 100_000,
    no_hindsight: Annotated[
        bool, typer.Option("--no-hindsight", help="Do not compute the best model in hindsight: a shorter report.")
    ] = False,
    escape_formulas: Annotated[bool, typer.Option("--escape-formulas", help=FORMULAS)] = False,
    json: Annotated[bool, typer.Option("--json", help="Print only the summary, as JSON.")] = False,
) -> None:
    """Stream a file through a learner, and write forecasts, the model, its score and a report with plots.

    Every row is forecast before its label is used. After Ctrl-C or a crash, --resume continues the run and produces the
    same files.

    Example: regretless run clicks.csv --target click
    """
    with clean_errors():
        from regretless.evaluate.run import report
        from regretless.evaluate.run.folder import Folder
        from regretless.evaluate.run.run import DEFAULT, Interrupted, Run, Settings, stopping_at_once
        from regretless.evaluate.run.summary import entries

        if data != "-" and not Path(data).is_file():
            raise typer.BadParameter(f"no such file: {data!r}.")
        named = None if classes is None else tuple(classes.split(","))
        settings = Settings(
            data,
            target,
            model or DEFAULT,
            format,
            on_bad.value,
            weight,
            named,
            bits,
            columns,
            checkpoint_every=checkpoint_every,
        )
        path = out or Path(f"{'stdin' if data == '-' else Path(data).name.split('.')[0]}-run")
        if resume and not path.is_dir():
            raise ValueError(f"cannot resume: there is no folder {path}.")
        try:
            with stopping_at_once(), Folder(path) as folder:
                summary = folder.finished() if resume else None
                if summary is None or (summary.get("data"), summary.get("target")) != (data, target):
                    going = Run(settings, folder, resume)
                    with _bar(not json, _lines_about(data, going.reading.format)) as bar:
                        going.play(partial(_tell, bar))
                    with progress_bar(not json, None, "collecting forecasts", transient=True) as bar:
                        going.finish(forecasts is Kind.csv, escape_formulas)
                        summary = report.write(going, partial(_tell_step, bar), not no_hindsight)
                    folder.clear()
        except (Interrupted, KeyboardInterrupt):
            again = shlex.join([*sys.argv[1:], *([] if resume else ["--resume"])])
            say(f"interrupted. To continue: regretless {again}", sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        if json:
            print(printable_json((path / "summary.json").read_text(encoding="utf-8")), end="")
        else:
            _print_summary(entries(summary), path)


def predict(
    model: Annotated[Path, typer.Argument(help="A model file, for example from `regretless run`.", exists=True)],
    data: Annotated[str, typer.Argument(help="A file, or - for standard input.")],
    out: Annotated[Path | None, typer.Option(help="Output file, .csv or .parquet (default: print CSV).")] = None,
    format: Annotated[str | None, typer.Option(help=FORMAT)] = None,
    bits: Annotated[
        int | None,
        typer.Option(min=1, max=30, help="VW features are hashed into 2^bits columns (default: as for the model)."),
    ] = None,
    escape_formulas: Annotated[bool, typer.Option("--escape-formulas", help=FORMULAS)] = False,
) -> None:
    """Forecast the rows of a file with a model, which is not changed.

    Example: regretless predict clicks-run/model.npz tomorrow.csv
    """
    with clean_errors():
        from regretless.core.files import replacing
        from regretless.evaluate.run.predict import predict_file

        if data != "-" and not Path(data).is_file():
            raise typer.BadParameter(f"no such file: {data!r}.")
        if out is not None and out.suffix not in (".csv", ".parquet"):
            raise typer.BadParameter(f"--out {str(out)!r}: the name must end in .csv or .parquet.")
        with ExitStack() as stack:
            bar = stack.enter_context(_bar(out is not None, _lines_about(data, format)))
            to = output() if out is None else stack.enter_context(replacing(out))
            csv = out is None or out.suffix == ".csv"
            rows = predict_file(model, data, to, csv, format, bits, partial(_tell, bar), escape_formulas)
        if out is not None:
            say(f"{rows} rows: {out}")


def _lines_about(data: str, format: str | None) -> int | None:
    """The approximate number of lines of a text file, from its first megabyte."""
    path = Path(data)
    if data == "-" or format in ("parquet", "arrow") or path.suffix in (".gz", ".bz2", ".xz", ".parquet", ".arrow"):
        return None
    size = path.stat().st_size
    with path.open("rb") as file:
        some = file.read(1 << 20)
    return max(1, round(size * some.count(b"\n") / max(len(some), 1)))


def _bar(wanted: bool, lines: int | None) -> AbstractContextManager[Bar]:
    return progress_bar(wanted, lines, "reading (and compiling, once per machine)", transient=True)


def _tell(bar: Bar, now: Any) -> None:
    """Show the state of a run."""
    shown = [f"{now.rows:,} rows"]
    if bar.speed:
        shown.append(f"{bar.speed:,.0f} rows/s")
    shown.append(f"loss {now.mean_loss:.4f}")
    if now.certificate == now.certificate:
        shown.append(f"certificate {now.certificate:.4g}")
    bar.update(description="  ".join(shown), completed=now.lines)


def _tell_step(bar: Bar, what: str, done: int, total: int | None) -> None:
    """Show a step of the report."""
    bar.update(description=f"report: {what}", completed=done, total=total)


def _print_summary(entries: list[tuple[str, str]], folder: Path) -> None:
    width = max(len(title) for title, _ in entries)
    for title, value in entries:
        print(f"{title:<{width}}  {printable(value)}")
    say(f"report: {folder / 'index.html'}")
