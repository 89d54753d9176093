"""`regretless keys`: API keys of a service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from regretless.cli.exits import clean_errors
from regretless.cli.options import names
from regretless.cli.terminal import say

keys = typer.Typer(help="API keys of a service.", no_args_is_help=True)
File = Annotated[Path, typer.Option("--file", help="The file of keys, with their hashes.")]
FILE = Path("keys.json")


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="Who uses the key.")],
    scopes: Annotated[
        list[str] | None,
        typer.Option(help="Any of predict,label,read,admin (default: predict,label,read)."),
    ] = None,
    file: File = FILE,
) -> None:
    """Make a key and print it. It is not stored: only its hash is.

    Example: regretless keys add shop --scopes predict,label
    """
    with clean_errors():
        from regretless.serve.keys import KeyFile

        print(KeyFile(file).add(name, names(scopes) or ["predict", "label", "read"]))


@keys.command()
def revoke(name: Annotated[str, typer.Argument(help="The name of the key.")], file: File = FILE) -> None:
    """Remove a key. A running service refuses it within a second."""
    with clean_errors():
        from regretless.serve.keys import KeyFile

        KeyFile(file).revoke(name)


@keys.command("list")
def list_keys(file: File = FILE) -> None:
    """List the names of keys, their scopes and when they were made."""
    with clean_errors():
        from regretless.serve.keys import KeyFile

        for key in KeyFile(file).read():
            made = time.strftime("%Y-%m-%d %H:%M", time.localtime(key.created))
            say(f"{key.name}  {','.join(key.scopes)}  {made}")
