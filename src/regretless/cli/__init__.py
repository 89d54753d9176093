"""The `regretless` command, one module per subcommand. Each subcommand imports what it needs when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:  # pragma: no cover - exercised by a test in a subprocess
    sys.exit('The regretless command needs typer and rich: pip install "regretless[cli]"')

from regretless import __version__
from regretless.cli.consume import consume
from regretless.cli.doctor import doctor, warmup
from regretless.cli.figure import figure
from regretless.cli.keys import keys
from regretless.cli.listing import list_names
from regretless.cli.log import log
from regretless.cli.predict import predict
from regretless.cli.race import race
from regretless.cli.replay import replay
from regretless.cli.run import run
from regretless.cli.serve import serve

app = typer.Typer(
    help="Online learning that is provably almost as good as the best model chosen in hindsight.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        print(f"regretless {__version__}")
        raise typer.Exit


@app.callback()
def command(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Online learning that is provably almost as good as the best model chosen in hindsight."""


app.command()(race)
app.command()(run)
app.command()(predict)
app.command()(serve)
app.command()(consume)
app.command()(replay)
app.add_typer(keys, name="keys")
app.add_typer(log, name="log")
app.command()(doctor)
app.command()(warmup)
app.command()(figure)
app.command("list")(list_names)


def main() -> None:
    """Entry point of the command."""
    app()
