"""One pass of a file through a learner, with checkpoints."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from noregret.errors import BadRow
from noregret.persist import load
from noregret.running.folder import Folder
from noregret.running.recipe import learner_of
from noregret.running.rows import labels_for, number_of, part, rows_for
from noregret.running.score import Score, as_table, columns_of
from noregret.streams import BadLine, Reading, read

DEFAULT = 'OnlineLogisticRegression(missing="mean")'


@dataclass(frozen=True)
class Settings:
    """What a run is; one that goes on must be the same."""

    source: str
    target: str
    model: str = DEFAULT
    format: str | None = None
    on_bad: str = "error"
    weight: str | None = None
    classes: tuple[str, ...] | None = None
    bits: int = 18
    rows_at_once: int = 4096
    checkpoint_every: int = 100_000


class Interrupted(Exception):
    """The run was asked to stop, and has left a checkpoint."""


@dataclass(frozen=True)
class Progress:
    """What there is to say while a run goes on."""

    rows: int
    lines: int
    mean_loss: float
    certificate: float


class Run:
    """A file on its way through a learner."""

    def __init__(self, settings: Settings, folder: Path, resume: bool = False) -> None:
        self.settings = settings
        self.folder = Folder(folder)
        self.bad_of_learner = 0
        self._number = self._rows = self._lines = self._told = self._old_told = 0
        self._columns: Any = None
        self._format = settings.format
        found = self.folder.checkpoint() if resume else None
        if resume and found is None:
            raise ValueError(f"there is nothing to resume in {folder}: no run was interrupted there.")
        if found is None:
            self.learner = self._new_learner()
            self.score = Score(self.learner)
            self.folder.begin()
        else:
            self._go_on(found)
        self.reading = self.read(self._rows, self._hear_of_bad_line)

    def read(self, skip: int = 0, tell: Callable[[BadLine], None] | None = None) -> Reading:
        """The file, from a row on, as this run reads it; `tell` hears of bad lines."""
        settings = self.settings
        return read(
            settings.source,
            settings.target,
            format=self._format,
            rows_at_once=settings.rows_at_once,
            on_bad=settings.on_bad,  # type: ignore[arg-type]
            on_bad_line=tell,
            weight=settings.weight,
            columns=self._columns,
            skip=skip,
            bits=settings.bits,
        )

    def _new_learner(self) -> Any:
        text = self.settings.model
        return load(text) if Path(text).is_file() else learner_of(text)

    def _go_on(self, found: dict[str, Any]) -> None:
        mine, theirs = asdict(self.settings), found["settings"]
        theirs["classes"] = theirs["classes"] and tuple(theirs["classes"])
        differing = [name for name in mine if mine[name] != theirs[name]]
        if differing:
            name = differing[0]
            raise ValueError(
                f"the run that was interrupted had {name}={theirs[name]!r} and not {mine[name]!r}: give the same, or "
                "begin anew without --resume."
            )
        if found["fingerprint"] != fingerprint(self.settings.source):
            raise ValueError(f"{self.settings.source} has changed since the run was interrupted: begin anew.")
        self._number, self._rows, self._lines = found["number"], found["rows"], found["lines"]
        self._old_told, self.bad_of_learner = found["told"], found["bad_of_learner"]
        self._columns, self._format = found["columns"], found["format"]
        self.learner = load(self.folder.model_at(self._number))
        self.score = Score(self.learner)
        self.score.take_up(found["score"])

    # ------------------------------------------------------------------ the pass

    def play(self, tell: Callable[[Progress], None] = lambda progress: None) -> None:
        """Every row is forecast, then learned. A stop that is asked for leaves a checkpoint and is `Interrupted`."""
        since = self._rows
        with _asked_to_stop() as stop:
            for block in self.reading:
                self._columns, self._format = self.reading.columns, self.reading.format
                self._learn(
                    rows_for(self.learner, block.X), labels_for(self.learner, block.y), block.weight, block.first
                )
                self._rows, self._lines = block.first + number_of(block.X), block.lines
                certificate = self.score.checkpoints[-1].certificate if self.score.checkpoints else float("nan")
                tell(Progress(self._rows, self._lines, self.score.mean_loss, certificate))
                if stop or self._rows - since >= self.settings.checkpoint_every:
                    since = self._rows
                    self._write_checkpoint()
                if stop:
                    raise Interrupted
        if self.score.rows == 0:
            raise BadRow(f"{self.settings.source} has no row to learn from ({self.bad_count} bad ones).")
        self._write_checkpoint()

    def _learn(self, X: Any, y: Any, weight: Any, first: int) -> None:
        """Some rows; where one of them is bad and may be left out, the halves, so that it is found."""
        n = number_of(X)
        try:
            with self.score.watching():
                out, targets = self.learner._play(X, y, self._declared(y), weight, keep=True)
        except BadRow as error:
            if self.settings.on_bad == "error":
                raise BadRow(f"rows {first} to {first + n - 1} of {self.settings.source}: {error}") from None
            if n == 1:
                self.bad_of_learner += 1
                self.folder.add_bad({"row": first, "why": str(error)})
                return
            for some in (slice(0, n // 2), slice(n // 2, n)):
                self._learn(part(X, some), y[some], None if weight is None else weight[some], first + some.start)
            return
        forecasts = self.learner._said(out)
        self.score.add(forecasts, targets)
        self.folder.add_forecasts(as_table(self.score, first, forecasts, targets, y))

    def _declared(self, y: Any) -> Any:
        """The classes, in the kind of the labels, for the first rows."""
        if self.settings.classes is None or hasattr(self.learner, "state_"):
            return None
        return [y.dtype.type(label) for label in self.settings.classes]

    def _hear_of_bad_line(self, bad: BadLine) -> None:
        self._told += 1
        if self._told > self._old_told:  # those before it were heard of before the run was interrupted
            self.folder.add_bad(bad._asdict())

    @property
    def bad_count(self) -> int:
        """Rows left out."""
        return max(self._told, self._old_told) + self.bad_of_learner

    def _write_checkpoint(self) -> None:
        self._number += 1
        progress = {
            "settings": asdict(self.settings),
            "fingerprint": fingerprint(self.settings.source),
            "rows": self._rows,
            "lines": self._lines,
            "told": max(self._told, self._old_told),
            "bad_of_learner": self.bad_of_learner,
            "columns": self._columns,
            "format": self._format,
            "score": self.score.as_json(),
        }
        self.folder.write_checkpoint(self.learner, self._number, progress)

    # ------------------------------------------------------------------ the end

    @property
    def columns(self) -> Any:
        """The kinds of the columns, or how many there are."""
        return self._columns

    def finish(self, csv: bool) -> None:
        """Forecasts, rows set aside and the model, each in one file."""
        self.folder.finish(self._number, columns_of(self.score), csv, self.settings.on_bad == "quarantine")


def fingerprint(source: str) -> str:
    """Size and beginning of a file, to notice that it is another one."""
    path = Path(source)
    if source == "-" or not path.is_file():
        return ""
    with path.open("rb") as file:
        return f"{path.stat().st_size} {hashlib.sha256(file.read(1 << 16)).hexdigest()}"


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """A list that is empty until the program is asked to stop; asked twice, it stops at once."""
    asked: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
