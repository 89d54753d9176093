"""The command in this process, and a small table for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

testing = pytest.importorskip("typer.testing")

from regretless.cli import app  # noqa: E402


def command(*arguments: object, given: str | None = None) -> Any:
    """Run `regretless` with these arguments, and `given` as standard input."""
    return testing.CliRunner().invoke(app, [str(each) for each in arguments], input=given)


def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are made and not drawn, which takes most of the time of a short run: their files just begin as PNG."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **options: file.write(b"\x89PNG"))


def table(n: int) -> str:
    """A CSV of two numbers, and a label that tells which is larger."""
    rng = np.random.default_rng(0)
    return "a,b,y\n" + "".join(f"{a:.6f},{b:.6f},{'no' if a > b else 'yes'}\n" for a, b in rng.normal(size=(n, 2)))
