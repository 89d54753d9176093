"""ModelHost: one model in memory: its learner, its sums, and the forecasts that wait for labels.

A host is used by one thread at a time: the writer of the service, or a replay.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from struct import Struct
from typing import Any

import msgspec
import numpy as np

from regretless.core.errors import BadRow, NoBound, NoCertificate
from regretless.core.files.persist import from_bytes
from regretless.core.rows.labels import Labels
from regretless.core.types import Array
from regretless.serve.log import Event, Labelled, ModelRow, now
from regretless.serve.models import ModelSpec, class_names
from regretless.serve.rows import Columns
from regretless.serve.snapshots import Snapshot
from regretless.serve.sums import Scored, Sums
from regretless.serve.tables import FORECAST

decode = msgspec.json.decode
encode = msgspec.json.encode

# Blocks pay from these sizes on. They are part of what a batch means: replays call the learner in the same way.
FEWEST_FORECASTS, FEWEST_LABELS = 4, 32
RECENT = 50  # forecasts that are shown
CANNOT_LEARN = (ValueError, TypeError, ArithmeticError, LookupError)


class Entry(msgspec.Struct, gc=False):
    """A forecast that was served, and its label once it has come."""

    id: str
    seq: int
    at: float
    x: bytes
    forecast: bytes
    version: int
    y: bytes | None = None
    weight: float | None = None
    label_seq: int | None = None


class Due(msgspec.Struct, gc=False):
    """A label to learn, with its forecast."""

    seq: int
    at: float
    y: Any
    weight: float
    entry: Entry


class ModelHost:
    """A model in memory."""

    def __init__(self, row: ModelRow, snapshot: Snapshot, ids_in_memory: int = 50_000) -> None:
        self.number, self.name, self.recipe, self.created = row.number, row.name, row.recipe, row.created
        self.features: int | list[str] = decode(row.features)
        self.learner, self.sums = snapshot.open()
        self.identity = row.identity
        self.seq = snapshot.seq  # the last label that was learned
        self.counted = snapshot.seq  # the event up to which forecasts were counted when they were read from the log
        self.classes: list[Any] = self.learner.classes_.tolist()
        self.class_names = class_names(self.classes)
        self.columns = Columns.of(self.features, self.learner.reads_tables)
        self._codes = Labels(self.learner.classes_).code
        self._numbers_of = Struct(f"<{len(self.classes)}d").unpack
        self.recent: deque[Entry] = deque(maxlen=RECENT)
        self._ids: OrderedDict[str, Entry] = OrderedDict()
        self._most_ids = ids_in_memory

    @staticmethod
    def start_of(spec: ModelSpec) -> Snapshot:
        """The model before its first event."""
        sums = Sums(len(spec.classes))
        sums.start_loss = float(spec.learner.total_loss_)
        return Snapshot(0, spec.learner.to_bytes(), sums.as_json())

    @classmethod
    def row_of(cls, spec: ModelSpec, number: int, seq: int) -> ModelRow:
        """A new model, which starts after the event `seq`, for the log."""
        start = cls.start_of(spec)._replace(seq=seq)
        features, classes = encode(spec.features).decode(), encode(spec.classes).decode()
        return ModelRow(number, spec.name, spec.recipe, features, classes, now(), seq, start.pack())

    @classmethod
    def compile(cls, spec: ModelSpec) -> None:
        """Compile or load what the first requests for a model need."""
        row = cls.row_of(spec, 0, 0)
        cls(row, Snapshot.unpack(row.start)).warm_up()

    @property
    def version(self) -> int:
        """The number of labels learned."""
        return self.sums.labels

    # ------------------------------------------------------------------ forecasts

    def forecast(self, rows: Sequence[Any]) -> list[bytes | BadRow]:
        """The probabilities of each row, as in the log, or why it has none. Nothing changes."""
        if len(rows) >= FEWEST_FORECASTS:
            try:
                found = as_bytes(self.learner.predict_proba(self.columns.block([*rows])))
            except CANNOT_LEARN:
                return self._forecast_apart(rows)
            size = len(found) // len(rows)
            return [found[at : at + size] for at in range(0, len(found), size)]
        return [self._forecast_one(row) for row in rows]

    def _forecast_apart(self, rows: Sequence[Any]) -> list[bytes | BadRow]:
        """Find the rows that have no forecast, and forecast the others as a replay does, which has no bad rows."""
        found = [self._forecast_one(row) for row in rows]
        good = [row for row, each in zip(rows, found, strict=True) if not isinstance(each, BadRow)]
        if len(good) == len(rows):
            return found
        again = iter(self.forecast(good))
        return [each if isinstance(each, BadRow) else next(again) for each in found]

    def _forecast_one(self, row: Any) -> bytes | BadRow:
        try:
            return as_bytes(self.learner.predict_proba_one(row))
        except CANNOT_LEARN as error:
            return error if isinstance(error, BadRow) else BadRow(str(error))

    def served(self, event: Event) -> Entry:
        """Remember a forecast that is in the log."""
        entry = entry_of(event)
        self._remember(entry)
        self.recent.append(entry)
        return entry

    def named(self, forecast: bytes) -> dict[str, float]:
        """The probabilities by class, as in JSON."""
        return dict(zip(self.class_names, self._numbers_of(forecast), strict=True))

    # ------------------------------------------------------------------ labels

    def class_of(self, y: Any) -> Any:
        """The class that is equal to y; refuses anything else."""
        k = self._codes.get(y) if type(y) in (str, int, float, bool) else None
        if k is None:
            told, classes = encode(y).decode()[:50], encode(self.classes[:20]).decode()
            raise BadRow(f"y={told} is not one of the classes {classes}. Nothing was learned from it.")
        return self.classes[k]

    def learn(self, batch: Sequence[Due]) -> list[bool]:
        """Learn the labels of one commit, in order. Returns which of them were learned."""
        rows = [self.columns.row(read(due.entry.x, due.entry.seq)) for due in batch]
        done = self._learn_block(rows, batch) if len(batch) >= FEWEST_LABELS else None
        if done is None:
            done = [self._learn_one(row, due) for row, due in zip(rows, batch, strict=True)]
        scored = []
        for due, learned in zip(batch, done, strict=True):
            entry = due.entry
            entry.y, entry.weight, entry.label_seq = encode(due.y), due.weight, due.seq
            if learned:
                waited = max(0.0, due.at - entry.at)
                scored.append(Scored(entry.forecast, self._codes[due.y], due.weight, waited, entry.version))
        if scored:
            self.sums.add(scored)
        self.sums.refused += len(batch) - len(scored)
        if self.sums.due:
            certificate, bound = self.promises()
            self.sums.note(batch[-1].at, self.learner_loss, certificate, bound)
        self.seq = batch[-1].seq
        return done

    def _learn_block(self, rows: list[Any], batch: Sequence[Due]) -> list[bool] | None:
        """None if some row cannot be learned: then none of them has been."""
        weights = [due.weight for due in batch]
        weight = None if all(each == 1.0 for each in weights) else weights
        try:
            self.learner.partial_fit(self.columns.block(rows), [due.y for due in batch], sample_weight=weight)
        except CANNOT_LEARN:
            return None
        return [True] * len(rows)

    def _learn_one(self, row: Any, due: Due) -> bool:
        try:
            if due.weight == 1.0:
                self.learner.learn_one(row, due.y)
            else:
                self.learner.partial_fit(self.columns.block([row]), [due.y], sample_weight=[due.weight])
        except CANNOT_LEARN:
            return False
        return True

    # ------------------------------------------------------------------ ids

    def find(self, id: str) -> Entry | None:
        """A forecast in memory."""
        return self._ids.get(id)

    def forget(self, id: str) -> Entry | None:
        """Remove a forecast from memory, and return it."""
        return self._ids.pop(id, None)

    def take_up(self, found: Sequence[Event]) -> None:
        """Remember forecasts and labels that were read from the log: forecasts come before their labels."""
        for event in found:
            if event.kind == FORECAST:
                if event.id not in self._ids:
                    self._remember(entry_of(event))
            elif (entry := self._ids.get(event.id)) is not None:
                entry.y, entry.weight, entry.label_seq = event.body, event.weight, event.seq

    def _remember(self, entry: Entry) -> None:
        ids = self._ids
        ids[entry.id] = entry
        if len(ids) > self._most_ids:
            ids.popitem(last=False)

    def show(self, forecasts: Sequence[Event]) -> None:
        """Take these for the last forecasts; they are in memory."""
        self.recent.extend(self._ids[event.id] for event in forecasts)

    # ------------------------------------------------------------------ replay

    def replay(self, labels: Sequence[Labelled]) -> None:
        """Learn the labels of one commit from the log."""
        self.learn([due_of(label) for label in labels])

    # ------------------------------------------------------------------ regret

    @property
    def learner_loss(self) -> float:
        """The learner's own loss since the model started."""
        return float(self.learner.total_loss_) - self.sums.start_loss

    @property
    def _without_regret(self) -> str | None:
        """Why there is no regret."""
        if self.sums.start_loss > 0.0:
            return "the model had learned rows before, and its certificate covers those too"
        competition = self.learner.competes_with
        if competition is None or competition.loss not in ("logistic", "softmax"):
            return "the learner does not compete in log loss"
        return None

    def promises(self) -> tuple[float | None, float | None]:
        """The learner's certificate and bound, None where there is none."""
        if self._without_regret:
            return None, None
        certificate: float | None = None
        bound: float | None = None
        try:
            certificate = float(self.learner.regret_certificate())
        except NoCertificate:
            pass
        try:
            bound = float(self.learner.regret_bound())
        except NoBound:
            pass
        return certificate, bound

    def regret(self) -> dict[str, Any]:
        """The regret of the served forecasts: at most certificate + (served loss - learner's loss)."""
        certificate, bound = self.promises()
        sums, delay = self.sums, self.sums.served_loss - self.learner_loss
        competition = None if self._without_regret else self.learner.competes_with
        return {
            "labels": sums.labels,
            "served_loss": sums.served_loss,
            "learner_loss": self.learner_loss,
            "delay_cost": delay,
            "delay_seconds": sums.summary()["delay_seconds"],
            "delay_labels": sums.summary()["delay_labels"],
            "certificate": certificate,
            "bound": bound,
            "live_regret_at_most": None if certificate is None else certificate + delay,
            "against": None if competition is None else f"{competition.loss} loss, {competition.domain}",
            "why_not": self._without_regret,
        }

    # ------------------------------------------------------------------ for people

    def members(self, row: Any) -> list[dict[str, Any]]:
        """The members of a mixture with their weights now, the largest first; what each forecasts, where it can."""
        learner = self.learner
        weights = getattr(learner, "weights_", None)
        parts = getattr(learner, "estimators_", None)
        names = getattr(learner, "members_", None) or ([repr(each) for each in parts] if parts else None)
        if weights is None or names is None or len(names) != np.size(weights):
            return []
        found: list[dict[str, Any]] = [
            {"member": str(name), "weight": float(weight)}
            for name, weight in zip(names, np.ravel(weights), strict=True)
        ]
        if parts:
            for each, part in zip(found, parts, strict=True):
                if hasattr(part, "predict_proba_one"):
                    p = part.predict_proba_one(row)
                    each["probabilities"] = dict(zip(self.class_names, p.tolist(), strict=True))
        return sorted(found, key=lambda each: -each["weight"])

    # ------------------------------------------------------------------ snapshots

    def warm_up(self) -> None:
        """Compile or load what the first requests need, on a copy of the model."""
        other = from_bytes(self.learner.to_bytes())
        x: Any = dict.fromkeys(self.columns.names, 0.0) if self.columns.names else [0.0] * self.columns.n
        row = self.columns.row(x)
        for rows in (1, FEWEST_LABELS):
            try:
                if rows == 1:
                    other.predict_proba_one(row)
                    other.learn_one(row, self.classes[0])
                else:
                    other.predict_proba(self.columns.block([row] * rows))
                    other.partial_fit(self.columns.block([row] * rows), [self.classes[0]] * rows)
            except CANNOT_LEARN:  # a row of zeros is not a row of this model
                return

    def snapshot(self, seq: int) -> Snapshot:
        """The model after the event `seq`, which is the last one that it knows or one of another model."""
        return Snapshot(seq, self.learner.to_bytes(), self.sums.as_json(), self.identity)


def as_bytes(probabilities: Array) -> bytes:
    """Probabilities as they are in the log."""
    return probabilities.astype("<f8", copy=False).tobytes()


def entry_of(event: Event) -> Entry:
    """A forecast from the log."""
    assert event.forecast is not None and event.version is not None
    return Entry(event.id, event.seq, event.at, event.body, event.forecast, event.version)


def due_of(label: Labelled) -> Due:
    """A label from the log."""
    entry = Entry(label.id, label.forecast_seq, label.forecast_at, label.x, label.forecast, label.version)
    return Due(label.seq, label.at, read(label.y, label.seq), label.weight, entry)


def read(body: bytes, seq: int) -> Any:
    """The row or label of an event."""
    try:
        return decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(f"the log is damaged: the event {seq} cannot be read ({error}).") from None
