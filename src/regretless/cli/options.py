"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OnBad(StrEnum):
    """How to handle rows that cannot be read."""

    error = "error"
    skip = "skip"
    quarantine = "quarantine"


class Kind(StrEnum):
    """The format of forecasts."""

    parquet = "parquet"
    csv = "csv"


class Decimal(StrEnum):
    """The decimal mark."""

    point = "."
    comma = ","


class Sync(StrEnum):
    """When a commit of a service is on the disk."""

    normal = "normal"
    full = "full"


COLUMNS, OUTPUT = "Columns", "Output"
FORMATS = "csv, tsv, jsonl, parquet, arrow, svmlight or vw (default: from the file name; csv for standard input)."
FORMULAS = "In CSV, put an apostrophe before text that a spreadsheet would read as a formula."

Names = list[str] | None  # of columns or labels, separated by commas

Data = Annotated[str, typer.Argument(help="A file, or - for standard input.")]
Format = Annotated[str | None, typer.Option(help=FORMATS)]
Encoding = Annotated[str | None, typer.Option(help="The encoding of text, such as latin-1 (default: UTF-8).")]
DecimalMark = Annotated[Decimal | None, typer.Option(help="The decimal mark in CSV (default: as the column looks).")]
Drop = Annotated[Names, typer.Option(help="Columns to leave out: a,b.", rich_help_panel=COLUMNS)]
Category = Annotated[
    Names, typer.Option(help="Columns of categories, such as codes of digits.", rich_help_panel=COLUMNS)
]
Number = Annotated[Names, typer.Option(help="Columns of numbers.", rich_help_panel=COLUMNS)]
Date = Annotated[Names, typer.Option(help="Columns of dates or times.", rich_help_panel=COLUMNS)]
Id = Annotated[
    Names,
    typer.Option(help="Columns to copy to the forecasts, such as order numbers.", rich_help_panel=COLUMNS),
]
Cost = Annotated[
    str | None,
    typer.Option(
        help="Costs of errors, fp=1,fn=20, for two classes: decides for the positive class where it costs less.",
        rich_help_panel=OUTPUT,
    ),
]
Positive = Annotated[
    str | None, typer.Option(help="The positive class (default: the last of two).", rich_help_panel=OUTPUT)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors, and no progress.", rich_help_panel=OUTPUT)
]
EscapeFormulas = Annotated[bool, typer.Option("--escape-formulas", help=FORMULAS, rich_help_panel=OUTPUT)]


Features = Annotated[Names, typer.Option(help="The columns, a,b,c, or their number, for a new model.")]
Classes = Annotated[Names, typer.Option(help="The labels, no,yes, for a new model.")]
Snapshots = Annotated[Path | None, typer.Option(help="The folder of snapshots (default: beside an SQLite log).")]
SyncMode = Annotated[
    Sync, typer.Option(help="SQLite: full keeps the last commits through a power failure, and is slower.")
]
Keys = Annotated[Path | None, typer.Option(help="The file of API keys; see `regretless keys`.")]
Host = Annotated[str, typer.Option(help="The address to listen on; others than this machine need --keys.")]


def names(given: Names) -> list[str]:
    """Names of columns, from `--drop a,b --drop c`."""
    return [name.strip() for text in given or [] for name in text.split(",") if name.strip()]


def declared(decimal: Decimal | None = None, **by_kind: Names) -> dict[str, str]:
    """Kinds of columns by name; an error if a column is declared twice. Numbers may have a decimal comma.

    >>> declared(category=["zip,code"], drop=["name"])
    {'zip': 'category', 'code': 'category', 'name': 'drop'}
    """
    found: dict[str, str] = {}
    for kind, given in by_kind.items():
        kind = "comma" if kind == "number" and decimal is Decimal.comma else kind
        for name in names(given):
            if name in found:
                raise typer.BadParameter(f"column {name!r} is declared twice: as {found[name]} and as {kind}.")
            found[name] = kind
    return found


def require_file(data: str) -> None:
    """A usage error if there is no such file."""
    if data != "-" and not Path(data).is_file():
        raise typer.BadParameter(f"no such file: {data!r}.")
