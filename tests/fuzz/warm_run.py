"""Imported by the process that others are forked from: a run, so that they find everything imported and compiled."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
from pathlib import Path

from regretless.cli import app, main

EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def play(arguments: list[str], folder: str, at: int, how: int, told: str) -> None:
    """The command in this process, which stops itself at the file operation of number `at` in the folder."""
    met = 0

    def hear(event: str, values: tuple) -> None:
        nonlocal met
        if event in EVENTS and values and os.path.abspath(str(values[0])).startswith(folder):
            met += 1
            if met == at:
                os.kill(os.getpid(), how)

    with open(told, "w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the fork server ignores it
    sys.addaudithook(hear)
    sys.argv = ["regretless", *arguments]
    main()


with tempfile.TemporaryDirectory() as room, contextlib.redirect_stdout(io.StringIO()):
    rows = Path(room) / "rows.csv"
    rows.write_text("a,b,y\n" + "1,2,no\n2,1,yes\n0,1,no\n" * 20)
    command = ["run", str(rows), "--target", "y", "--model", "AIOLI(radius=2)", "--out", os.path.join(room, "out")]
    app(command, standalone_mode=False)
