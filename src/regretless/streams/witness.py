"""A digest of what was read, to notice that a source is no longer what it was."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """How much was read (lines, or rows of Parquet and Arrow), and its digest."""

    number: int
    digest: str


class Changed(ValueError):
    """A source differs from what it was when it was read before."""


class Witness:
    """Sees all that is read, in order, and holds it to what was seen before."""

    def __init__(self, before: Seen | None = None) -> None:
        self.before = before
        self._count = 0
        self._sha = hashlib.sha256()

    def see(self, data: Any, count: int = 1) -> None:
        """The next line, or the next rows. Refuses what differs from before as soon as that is known."""
        self._sha.update(data)
        self._count += count
        if self.before is not None and self._count == self.before.number:
            self._compare()

    def end(self) -> None:
        """There is no more. Refuses a source that is shorter than before."""
        if self.before is not None and self._count < self.before.number:
            self._compare()

    def seen(self) -> Seen:
        """All so far."""
        return Seen(self._count, self._sha.hexdigest())

    def _compare(self) -> None:
        if self.seen() != self.before:
            raise Changed("it is not what it was when it was read before.")
