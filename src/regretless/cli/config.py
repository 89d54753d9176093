"""`--config FILE`: options of a command from a TOML file. Options on the command line take precedence."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli.options import OUTPUT


def _configure(context: typer.Context, path: Path | None) -> Path | None:
    if path is None or context.resilient_parsing:
        return path
    known = {each.name for each in context.command.params if each.name and each.name not in ("config", "help")}
    given = _options(path)
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise typer.BadParameter(f"{path}: there is no option {name!r}.{hint}")
    context.default_map = {**(context.default_map or {}), **given}
    return path


def _options(path: Path) -> dict[str, Any]:
    """The options in a file: `on-bad = "skip"`, `drop = ["name", "street"]`."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path} cannot be read as TOML ({error}).") from None
    nested = [name for name, value in found.items() if isinstance(value, dict)]
    if nested:
        raise typer.BadParameter(f"{path}: write options without sections, not under [{nested[0]}].")
    return {name.replace("-", "_"): value for name, value in found.items()}


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=_configure,
        is_eager=True,
        help="A TOML file with options, such as target = 'click'.",
        rich_help_panel=OUTPUT,
    ),
]
