"""Snapshots: a model and its sums at one event, as bytes and as files.

A snapshot is an optimisation: the log gives the same state. A snapshot that is damaged, or that is about events that
the log does not have, is passed over for an older one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.core.files import packed, persist
from regretless.core.files.writing import replacing
from regretless.serve.sums import Sums

KEPT = 2  # files per model
NAME = re.compile(r"model-(\d+)-(\d+)\.snapshot")


class Snapshot(NamedTuple):
    """A model at the event `seq`: equal states have equal bytes."""

    seq: int
    learner: bytes
    sums: dict[str, Any]
    of: str = ""  # which model of which log; not needed for the state in the log itself

    def pack(self) -> bytes:
        """As bytes."""
        header = {"seq": self.seq, "of": self.of, "sums": self.sums}
        return packed.pack(header, {"learner": np.frombuffer(self.learner, np.uint8)})

    @classmethod
    def unpack(cls, data: bytes) -> Snapshot:
        """The inverse of `pack`; a ValueError if the bytes are damaged."""
        header, arrays = packed.unpack(data)
        if header.keys() != {"seq", "of", "sums"} or arrays.keys() != {"learner"} or type(header["seq"]) is not int:
            raise ValueError("these are not the bytes of a snapshot")
        return cls(header["seq"], arrays["learner"].tobytes(), header["sums"], header["of"])

    def open(self) -> tuple[Any, Sums]:
        """The learner and the sums."""
        return persist.from_bytes(self.learner), Sums.from_json(self.sums)


class Snapshots:
    """The snapshots in a folder; None keeps none."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def write(self, model: int, seq: int, data: bytes) -> None:
        """Write a snapshot, atomically and to the disk, and remove older ones."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / f"model-{model}-{seq:015d}.snapshot") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for old in self._files(model)[KEPT:]:
            old.unlink(missing_ok=True)

    def newest(self, model: int, of: str, until: int) -> Snapshot | None:
        """The newest usable snapshot of a model that is not about events after `until`."""
        for path in self._files(model):
            try:
                found = Snapshot.unpack(path.read_bytes())
                found.open()
            except (ValueError, OSError, KeyError, TypeError):
                continue
            if found.seq <= until and found.of == of:
                return found
        return None

    def all(self, model: int, of: str) -> list[Snapshot]:
        """All snapshots of a model that can be read, oldest first."""
        found = []
        for path in reversed(self._files(model)):
            try:
                found.append(Snapshot.unpack(path.read_bytes()))
            except (ValueError, OSError):
                continue
        return [each for each in found if each.of == of]

    def _files(self, model: int) -> list[Path]:
        """Newest first."""
        if self.folder is None or not self.folder.is_dir():
            return []
        named = ((NAME.fullmatch(path.name), path) for path in self.folder.iterdir())
        return [path for found, path in sorted(named, key=lambda pair: pair[1].name, reverse=True) if _is(found, model)]


def _is(found: re.Match[str] | None, model: int) -> bool:
    return found is not None and int(found[1]) == model
