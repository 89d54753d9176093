"""`regretless predict`: forecast the rows of a file with a model."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from regretless.cli import bars
from regretless.cli.exits import clean_errors
from regretless.cli.options import (
    Cost,
    Data,
    Encoding,
    EscapeFormulas,
    Format,
    Id,
    OnBad,
    Positive,
    Quiet,
    names,
    require_file,
)
from regretless.cli.terminal import output, say


def predict(
    model: Annotated[Path, typer.Argument(help="A model file, for example from `regretless run`.", exists=True)],
    data: Data,
    out: Annotated[Path | None, typer.Option(help="Output file, .csv or .parquet (default: print CSV).")] = None,
    on_bad: Annotated[
        OnBad, typer.Option(help="Rows that cannot be read: stop, skip, or write to OUT-bad.jsonl.")
    ] = OnBad.error,
    id: Id = None,
    format: Format = None,
    encoding: Encoding = None,
    bits: Annotated[
        int | None,
        typer.Option(min=1, max=30, help="VW features are hashed into 2^bits columns (default: as for the model)."),
    ] = None,
    cost: Cost = None,
    positive: Positive = None,
    escape_formulas: EscapeFormulas = False,
    quiet: Quiet = False,
) -> None:
    """Forecast the rows of a file with a model, which is not changed.

    Example: regretless predict clicks-run/model.npz tomorrow.csv
    """
    with clean_errors():
        from regretless.core.files.writing import replacing
        from regretless.evaluate.run.decision import costs_of
        from regretless.evaluate.run.predict import Request, predict_file

        require_file(data)
        if out is not None and out.suffix not in (".csv", ".parquet"):
            raise typer.BadParameter(f"--out {str(out)!r}: the name must end in .csv or .parquet.")
        if on_bad is OnBad.quarantine and out is None:
            raise typer.BadParameter("--on-bad quarantine needs --out: bad rows are written beside it.")
        costs = None if cost is None else costs_of(cost)
        request = Request(data, format, encoding, bits, names(id), on_bad.value, positive, costs)
        with ExitStack() as stack:
            bar = stack.enter_context(bars.reading(out is not None and not quiet, data, format))
            to = output() if out is None else stack.enter_context(replacing(out))
            bad = None
            if on_bad is OnBad.quarantine and out is not None:
                bad = stack.enter_context(replacing(out.with_name(f"{out.stem}-bad.jsonl")))
            csv = out is None or out.suffix == ".csv"
            rows, skipped = predict_file(model, request, to, csv, escape_formulas, partial(bars.tell, bar), bad)
        if skipped and not quiet:
            say(f"{skipped} bad rows were skipped.", sys.stderr)
        if out is not None and not quiet:
            say(f"{rows} rows: {out}")
