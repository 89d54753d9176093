"""A digest of the data read so far, to detect that a source has changed."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """How much was read (lines, or rows of Parquet and Arrow), and its digest."""

    number: int
    digest: str


class Changed(ValueError):
    """A source is not the same as when it was first read."""


class Witness:
    """Receives all data in order and compares it with an earlier digest."""

    def __init__(self, before: Seen | None = None) -> None:
        self.before = before
        self._count = 0
        self._sha = hashlib.sha256()

    def see(self, data: Any, count: int = 1) -> None:
        """Add the next line or rows. Raises `Changed` as soon as a difference from the earlier digest is known."""
        self._sha.update(data)
        self._count += count
        if self.before is not None and self._count == self.before.number:
            self._compare()

    def end(self) -> None:
        """Mark the end of the source. Raises `Changed` if it is shorter than before."""
        if self.before is not None and self._count < self.before.number:
            self._compare()

    def seen(self) -> Seen:
        """The amount read so far, and its digest."""
        return Seen(self._count, self._sha.hexdigest())

    def _compare(self) -> None:
        if self.seen() != self.before:
            raise Changed("its contents differ from those of the first reading.")
