"""run: one pass of a learner over a file, with checkpoints."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from regretless.core.errors import BadRow
from regretless.core.files.persist import load
from regretless.core.rows.calendar import calendar_names
from regretless.evaluate.match import Match
from regretless.evaluate.players import number_of_rows
from regretless.evaluate.race.recipes import Recipe, recipe_of
from regretless.evaluate.recipe import learner_of
from regretless.evaluate.run.decision import Decision, decided
from regretless.evaluate.run.folder import Folder, without_formulas
from regretless.evaluate.run.hints import identifiers
from regretless.evaluate.run.rows_for import labels_for, part_of, refusal, rows_for
from regretless.evaluate.run.tables import as_table, columns_of
from regretless.streams import BadLine, Block, Reading, read
from regretless.streams.witness import Seen, Witness

DEFAULT = "OnlineLogisticRegression"


@dataclass(frozen=True)
class Settings:
    """The settings of a run. A resumed run must have the same."""

    source: str
    target: str
    model: str = DEFAULT
    race: str | None = None  # the folder of a race whose leaderboard has this model
    format: str | None = None
    on_bad: str = "error"
    weight: str | None = None
    classes: tuple[str, ...] | None = None
    bits: int = 18
    columns: int | None = None  # of svmlight text; None: those of its first rows
    declare: dict[str, str] = field(default_factory=dict)  # kinds of columns by name, as in `read`
    decimal: str | None = None
    encoding: str | None = None
    rows_at_once: int = 4096
    checkpoint_every: int = 100_000


class Interrupted(Exception):
    """The run was stopped by a signal, and wrote a checkpoint."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    rows: int
    lines: int
    mean_loss: float
    certificate: float


class Run:
    """One pass of a learner over a file, which can be interrupted and resumed."""

    def __init__(self, settings: Settings, folder: Folder, resume: bool = False) -> None:
        self.settings = settings
        self.folder = folder
        self.bad_of_learner = 0
        self._number = self._rows = self._lines = self._told = self._old_told = 0
        self._columns: Any = None
        self.identifiers: list[str] = []  # columns that look like identifiers
        self._witness = Witness()
        found = self.folder.checkpoint() if resume else None
        if resume and found is None:
            raise ValueError(
                f"there is nothing to resume in {folder.path}: no run was interrupted there. Omit --resume."
            )
        self._recipe = self._find_recipe(resume)
        if found is None:
            self.match = Match(self._new_learner())
        else:
            self._go_on(found)
        self.reading = self.read(self._rows, self._hear_of_bad_line, self._witness)
        if found is None:
            self.folder.begin(self._progress(), None if self._recipe is None else self._recipe.text)

    @property
    def learner(self) -> Any:
        """The learner."""
        return self.match.learner

    def read(
        self, skip: int = 0, tell: Callable[[BadLine], None] | None = None, witness: Witness | None = None
    ) -> Reading:
        """Read the file from row `skip` on; `tell` is called for bad lines, and `witness` digests all that is read."""
        settings = self.settings
        reading = read(
            settings.source,
            settings.target,
            format=settings.format,
            rows_at_once=settings.rows_at_once,
            on_bad=settings.on_bad,  # type: ignore[arg-type]
            on_bad_line=tell,
            weight=settings.weight,
            declare=settings.declare,
            decimal=settings.decimal,
            encoding=settings.encoding,
            skip=skip,
            columns=settings.columns,
            bits=settings.bits,
        )
        reading.witness = witness
        return reading

    def read_again(self) -> Reading:
        """Read the whole file again; an error if it has changed."""
        return self.read(witness=Witness(self._witness.seen()))

    def _find_recipe(self, resume: bool) -> Recipe | None:
        """The line of a leaderboard; a resumed run has a copy of its own."""
        settings = self.settings
        if settings.race is None:
            return None
        if resume:
            return Recipe(self.folder.recipe())
        return recipe_of(Path(settings.race), settings.source, settings.model)

    def rows(self, X: Any) -> Any:
        """The rows of a block as the learner takes them."""
        return rows_for(self.learner, X) if self._recipe is None else self._recipe.rows(X)

    def names_of_columns(self) -> list[str] | None:
        """The names of the numbers in the rows of a learner that takes arrays; None if they are not known."""
        if self._recipe is not None:
            return self._recipe.preparation.names
        if self.learner.reads_tables or not isinstance(self._columns, dict):
            return None
        names: list[str] = []
        for name, kind in self._columns.items():
            names += calendar_names(name) if kind == "time" else [name]
        return names

    def targets(self, y: Any) -> Any:
        """The labels of a block as the learner takes them."""
        return labels_for(self.learner, y) if self._recipe is None else self._recipe.targets(y)

    def _new_learner(self) -> Any:
        if self._recipe is not None:
            return self._recipe.learner()
        text = self.settings.model
        if Path(text).suffix == ".npz" and not Path(text).is_file():
            raise ValueError(f"no such model file: {text!r}.")
        return load(text) if Path(text).is_file() else learner_of(text)

    def _go_on(self, found: dict[str, Any]) -> None:
        try:
            theirs = dict(found["settings"])
            theirs["classes"] = theirs["classes"] and tuple(theirs["classes"])
            self._compare(theirs)
            self._number, self._rows, self._lines = found["number"], found["rows"], found["lines"]
            self._old_told, self.bad_of_learner = found["told"], found["bad_of_learner"]
            self._columns, size, seen = found["columns"], found["size"], Seen(*found["seen"])
            self.identifiers = list(found["identifiers"])
            score = found["match"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"the checkpoint in {self.folder.unfinished} is damaged, or of another version ({error!r}): start "
                "again without --resume."
            ) from error
        if size != size_of(self.settings.source):
            raise ValueError(
                f"{self.settings.source} has changed since the run was interrupted: start again without --resume."
            )
        self._witness = Witness(seen)
        self.match = Match(load(self.folder.model_at(self._number)) if self._number else self._new_learner())
        if self._number:
            self.match.take_up(score)

    def _compare(self, theirs: dict[str, Any]) -> None:
        for name, mine in asdict(self.settings).items():
            if mine != theirs.get(name):
                raise ValueError(
                    f"the interrupted run had {name}={theirs.get(name)!r}, this one has {mine!r}: pass the same value, "
                    "or start again without --resume."
                )

    # ------------------------------------------------------------------ the pass

    def play(self, tell: Callable[[Progress], None] = lambda progress: None) -> None:
        """Forecast and learn every row. On SIGINT or SIGTERM, writes a checkpoint and raises `Interrupted`."""
        since = self._rows
        with _asked_to_stop() as stop:
            for block in self.reading:
                self._columns = self.reading.columns
                if self._rows == 0:
                    self.identifiers = identifiers(block.X)
                match = self.match
                self._learn(match, block._replace(X=self.rows(block.X), y=self.targets(block.y)))
                self._rows, self._lines = block.first + number_of_rows(block.X), block.lines
                certificate = match.checkpoints[-1].certificate if match.checkpoints else float("nan")
                tell(Progress(self._rows, self._lines, match.mean_loss, certificate))
                if stop or self._rows - since >= self.settings.checkpoint_every:
                    since = self._rows
                    self._write_checkpoint()
                if stop:
                    raise Interrupted
        if self.match.rows == 0:
            raise BadRow(f"{self.settings.source} has no row to learn from ({self.bad_count} bad rows).")
        self._write_checkpoint()

    def _learn(self, match: Match, block: Block) -> None:
        """Learn rows. If one is bad, learn the two halves, which isolates it."""
        n = number_of_rows(block.X)
        match.player.declared = self._declared(block.y)
        try:
            forecasts, targets = match.feed(block.X, block.y, block.weight)
        except BadRow as error:
            if n > 1:
                for some in (slice(0, n // 2), slice(n // 2, n)):
                    self._learn(match, part_of(block, some))
            elif self.settings.on_bad == "error":
                raise refusal(block, self.settings.source, error) from None
            else:
                self.bad_of_learner += 1
                self._set_aside({"line": int(block.places[0]), "why": str(error)})
            return
        self.folder.add_forecasts(as_table(match, block, forecasts, targets))

    def _declared(self, y: Any) -> Any:
        """The declared classes, converted to the type of the labels."""
        classes = self.settings.classes
        return None if classes is None else [y.dtype.type(label) for label in classes]

    def _hear_of_bad_line(self, bad: BadLine) -> None:
        self._told += 1
        if self._told > self._old_told:  # the others were reported before the interruption
            self._set_aside(bad._asdict())

    def _set_aside(self, bad: dict[str, Any]) -> None:
        if self.settings.on_bad == "quarantine":
            self.folder.add_bad(bad, self._number)

    @property
    def bad_count(self) -> int:
        """The number of rows skipped."""
        return max(self._told, self._old_told) + self.bad_of_learner

    def _write_checkpoint(self) -> None:
        self._number += 1
        self.folder.write_checkpoint(self.learner, self._number, self._progress())

    def _progress(self) -> dict[str, Any]:
        """Everything needed to resume, except the model."""
        return {
            "settings": asdict(self.settings),
            "size": size_of(self.settings.source),
            "seen": self._witness.seen(),
            "rows": self._rows,
            "lines": self._lines,
            "told": max(self._told, self._old_told),
            "bad_of_learner": self.bad_of_learner,
            "columns": self._columns,
            "identifiers": self.identifiers,
            "match": self.match.as_json(),
        }

    # ------------------------------------------------------------------ the end

    @property
    def columns(self) -> Any:
        """The kinds of the columns, or their number."""
        return self._columns

    def forecasts(self) -> Iterator[Any]:
        """All forecasts, in tables."""
        ids = [name for name, kind in self.settings.declare.items() if kind == "id"]
        return self.folder.forecasts(self._number, columns_of(self.match, ids))

    def finish(self, csv: bool, escape_formulas: bool = False, decision: Decision | None = None) -> None:
        """Write forecasts, quarantined rows and the model, one file each."""
        tables: Iterator[Any] = self.forecasts()
        if decision is not None:
            tables = (decided(table, self.learner.classes_.tolist(), decision) for table in tables)
        if csv and escape_formulas:
            tables = map(without_formulas, tables)
        self.folder.finish(self._number, tables, csv, self.settings.on_bad == "quarantine")


def size_of(source: str) -> int | None:
    """The size of a file, for a quick check that it has not changed; a digest checks the part that was read."""
    return None if source == "-" else Path(source).stat().st_size


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and on SIGTERM."""

    def hear(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _hearing(hear):
        yield


@contextmanager
def _hearing(hear: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """A list that is empty until the first signal to stop; the second raises KeyboardInterrupt."""
    asked: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    with _hearing(hear):
        yield asked
