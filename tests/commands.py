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


def table(n: int) -> str:
    """A CSV of two numbers, and a label that tells which is larger."""
    rng = np.random.default_rng(0)
    return "a,b,y\n" + "".join(f"{a:.6f},{b:.6f},{'no' if a > b else 'yes'}\n" for a, b in rng.normal(size=(n, 2)))
