"""Bad lines: raise at the first one, or count all and keep the first thousand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from regretless.core.errors import BadRow
from regretless.streams.types import BadLine

OnBad = Literal["error", "skip", "quarantine"]
KEPT = 1000
TEXT_KEPT = 1000  # characters per line


class Ledger:
    """Handles bad lines."""

    def __init__(self, on_bad: str, tell: Callable[[BadLine], None] | None, source: str, unit: str) -> None:
        if on_bad not in ("error", "skip", "quarantine"):
            raise ValueError(f'on_bad={on_bad!r}: choose "error", "skip" or "quarantine".')
        self.on_bad = on_bad
        self.tell = tell
        self.source = source
        self.unit = unit
        self.count = 0
        self.kept: list[BadLine] = []

    def add(self, bad: BadLine) -> None:
        """Raise an error, or record the line."""
        if self.on_bad == "error":
            raise BadRow(
                f'{self.source}, {self.unit} {bad.line}: {bad.why} Correct it, or skip such rows with on_bad="skip".'
            )
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(bad._replace(text=bad.text[:TEXT_KEPT]))
        if self.tell is not None:
            self.tell(bad)
