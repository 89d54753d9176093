"""`regretless run`: stream a file through a learner."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from regretless.cli import bars
from regretless.cli.config import Config
from regretless.cli.exits import INTERRUPTED, clean_errors, refuse_to_replace, this_command
from regretless.cli.listing import complete_learner
from regretless.cli.options import (
    COLUMNS,
    OUTPUT,
    Category,
    Cost,
    Data,
    Date,
    DecimalMark,
    Drop,
    Encoding,
    EscapeFormulas,
    Format,
    Id,
    Kind,
    Names,
    Number,
    OnBad,
    Positive,
    Quiet,
    declared,
    require_file,
)
from regretless.cli.terminal import printable, printable_json, say
from regretless.core.progress import progress_bar


def run(
    data: Data,
    target: Annotated[str, typer.Option(help="The label column.")] = "label",
    model: Annotated[
        str | None,
        typer.Option(
            help="A learner, 'AIOLI(radius=5)', or a model file to continue from (default: OnlineLogisticRegression).",
            autocompletion=complete_learner,
        ),
    ] = None,
    race: Annotated[
        Path | None,
        typer.Option(help="The folder of a race: --model is then a name of its leaderboard, with the same rows."),
    ] = None,
    on_bad: Annotated[OnBad, typer.Option(help="Rows that cannot be learned from: stop, skip, or set aside.")] = (
        OnBad.error
    ),
    format: Format = None,
    encoding: Encoding = None,
    decimal: DecimalMark = None,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    date: Date = None,
    trend: Annotated[
        Names, typer.Option(help="Columns of dates to use as numbers of days, for a trend.", rich_help_panel=COLUMNS)
    ] = None,
    id: Id = None,
    weight: Annotated[str | None, typer.Option(help="The column of sample weights.", rich_help_panel=COLUMNS)] = None,
    classes: Annotated[str | None, typer.Option(help="All labels, a,b,c, if the first rows may lack some.")] = None,
    bits: Annotated[int, typer.Option(min=1, max=30, help="VW features are hashed into 2^bits columns.")] = 18,
    columns: Annotated[
        int | None, typer.Option(min=1, help="Columns of svmlight text (default: as many as its first rows have).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The output folder (default: NAME-run).", rich_help_panel=OUTPUT)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run.", rich_help_panel=OUTPUT)
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the output folder.", rich_help_panel=OUTPUT)
    ] = False,
    forecasts: Annotated[Kind, typer.Option(help="The format of the forecasts.", rich_help_panel=OUTPUT)] = (
        Kind.parquet
    ),
    no_hindsight: Annotated[
        bool,
        typer.Option(
            "--no-hindsight",
            help="Do not compute the best model in hindsight: a shorter report.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    cost: Cost = None,
    positive: Positive = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=1, help="Rows between two checkpoints.", rich_help_panel=OUTPUT)
    ] = 100_000,
    escape_formulas: EscapeFormulas = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print only the summary, as JSON.", rich_help_panel=OUTPUT)
    ] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Also print how each column is read.", rich_help_panel=OUTPUT),
    ] = False,
    config: Config = None,
) -> None:
    """Stream a file through a learner, and write forecasts, the model, its score and a report with plots.

    Every row is forecast before its label is used. After Ctrl-C or a crash, --resume continues the run and produces the
    same files. Options for columns take names separated by commas, and may be repeated.

    Example: regretless run clicks.csv --target click
    """
    with clean_errors():
        from regretless.evaluate.run.decision import costs_of
        from regretless.evaluate.run.run import DEFAULT, Settings

        require_file(data)
        settings = Settings(
            data,
            target,
            model or DEFAULT,
            None if race is None else str(race),
            format,
            on_bad.value,
            weight,
            None if classes is None else tuple(classes.split(",")),
            bits,
            columns,
            declared(decimal, drop=drop, category=category, number=number, time=date, trend=trend, id=id),
            None if decimal is None else decimal.value,
            encoding,
            checkpoint_every=checkpoint_every,
        )
        path = out or Path(f"{'stdin' if data == '-' else Path(data).name.split('.')[0]}-run")
        if resume and not path.is_dir():
            raise ValueError(f"cannot resume: there is no folder {path}.")
        costs = None if cost is None else costs_of(cost)
        output = Output(forecasts is Kind.csv, escape_formulas, not no_hindsight, positive, costs)
        summary = _carry_out(settings, path, (resume, overwrite), output, json or quiet)
        if json:
            print(printable_json((path / "summary.json").read_text(encoding="utf-8")), end="")
        elif not quiet:
            _print_summary(summary, path, verbose)


class Output(NamedTuple):
    """What to write after the last row."""

    csv: bool
    escape_formulas: bool
    hindsight: bool
    positive: str | None
    costs: tuple[float, float] | None


def _carry_out(settings: Any, path: Path, again: tuple[bool, bool], output: Output, quiet: bool) -> dict[str, Any]:
    """Run, and write the report; returns the summary. `again`: whether to resume, and whether to overwrite."""
    from regretless.evaluate.run import report
    from regretless.evaluate.run.decision import decision_of
    from regretless.evaluate.run.folder import Folder
    from regretless.evaluate.run.run import Interrupted, Run, stopping_at_once

    resume, overwrite = again
    try:
        with stopping_at_once(), Folder(path) as folder:
            summary = folder.finished() if resume else None
            if summary and (summary.get("data"), summary.get("target")) == (settings.source, settings.target):
                return summary
            if not (resume or overwrite) and (there := folder.holds()):
                _refuse(path, there)
            try:
                going = Run(settings, folder, resume)
                with bars.reading(not quiet, settings.source, going.reading.format) as bar:
                    going.play(partial(bars.tell, bar))
            except ValueError:
                if not resume:
                    folder.discard()  # the data or the options must be changed: there is nothing to resume
                raise
            with progress_bar(not quiet, None, "report: collecting forecasts", transient=True) as bar:
                decision = None
                if output.costs is not None or output.positive is not None:
                    decision = decision_of(getattr(going.learner, "classes_", []), output.positive, output.costs)
                going.finish(output.csv, output.escape_formulas, decision)
                summary = report.write(going, partial(bars.tell_step, bar), output.hindsight, decision)
            folder.clear()
            return summary
    except (Interrupted, KeyboardInterrupt):
        say(f"interrupted. To continue: {this_command('--resume')}", sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _refuse(path: Path, there: str) -> None:
    """Leave an earlier run alone."""
    choices = [("start again", "--overwrite")]
    if "interrupted" in there:
        choices.insert(0, ("continue it", "--resume"))
    else:
        choices.append(("keep it", f"--out {shlex.quote(str(path) + '-2')}"))
    refuse_to_replace(path, there, choices)


def _print_summary(summary: dict[str, Any], folder: Path, verbose: bool) -> None:
    from regretless.evaluate.run.wording import entries

    lines = entries(summary)
    if verbose:
        kinds = summary["columns"] if isinstance(summary["columns"], dict) else {}
        lines = [("learner", summary["learner"]), *((f"column {name}", kind) for name, kind in kinds.items()), *lines]
    width = max(len(title) for title, _ in lines)
    for title, value in lines:
        print(f"{printable(title):<{width}}  {printable(value)}")
    say(f"report: {folder / 'index.html'}")
