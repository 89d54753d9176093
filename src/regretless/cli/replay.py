"""`regretless replay`: what other learners would have done, or whether a log gives what was served."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from regretless.cli.exits import DATA, clean_errors
from regretless.cli.listing import complete_learner
from regretless.cli.terminal import printable, say


def replay(
    log: Annotated[str, typer.Argument(help="The log: an SQLite file, or postgresql://USER@HOST/NAME.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="A learner or a model file to try; may be repeated.", autocompletion=complete_learner),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The model whose history is replayed (default: the first).")] = None,
    until: Annotated[int | None, typer.Option(min=1, help="Stop after this event.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that the log gives every served forecast and every snapshot.")
    ] = False,
    snapshots: Annotated[
        Path | None, typer.Option(help="For --verify: the folder of snapshots (default: beside an SQLite log).")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for traces.json and replay.png.")] = Path("replay"),
) -> None:
    """Replay a log: the same rows, labels and delays, with other learners. The log is not changed.

    Examples: regretless replay regretless.db --model "AIOLI(radius=5)" --model OGD; regretless replay regretless.db
    --verify
    """
    with clean_errors():
        try:
            from regretless.serve.log import EventLog
            from regretless.serve.replay import Other, draw, what_if
            from regretless.serve.replay import verify as check
            from regretless.serve.snapshots import Snapshots
        except ModuleNotFoundError as error:
            raise ImportError(f'the service needs {error.name}: pip install "regretless[serve]"') from None
        if not verify and not model:
            raise typer.BadParameter("pass learners to try with --model, or --verify.")
        reading = EventLog(log, write=False)
        try:
            if verify:
                folder = snapshots or (None if "://" in log else Path(f"{log}.snapshots"))
                found = check(reading, name, Snapshots(folder), until)
                say(f"{found.forecasts:,} forecasts, {found.labels:,} labels, {found.snapshots} snapshots")
                for what, seqs in (("forecasts", found.different), ("snapshots", found.different_snapshots)):
                    if seqs:
                        some = ", ".join(map(str, seqs[:10])) + (", ..." if len(seqs) > 10 else "")
                        say(f"error: {len(seqs)} {what} differ, at the events {some}", sys.stderr)
                if not found.is_exact:
                    raise typer.Exit(DATA)
                say("the log reproduces all of them, to the bit")
            if model:
                traces, lines = what_if(reading, model, name, until)
                out.mkdir(parents=True, exist_ok=True)
                traces.to_json(out / "traces.json")
                draw(traces, out / "replay.png")
                width = max(len(each) for each in traces)
                print(f"{'learner':<{width}}  {'labels':>9}  {'log loss':>8}  {'errors':>7}  {'certificate':>11}")
                for each, trace in traces.items():
                    last = trace.checkpoints[-1]
                    promised = f"{last.certificate:.4g}" if last.certificate == last.certificate else ""
                    print(
                        f"{printable(each):<{width}}  {last.rows:>9,.0f}  {trace.mean_log_loss:>8.4f}  "
                        f"{trace.error_rate:>7.2%}  {promised:>11}"
                    )
                    line = lines[each]
                    if isinstance(line, Other) and line.sums.refused:
                        say(f"  {line.sums.refused:,} labels could not be learned", sys.stderr)
                say(f"traces: {out / 'traces.json'}\npicture: {out / 'replay.png'}")
        finally:
            reading.close()
