"""Replay a log: check that it gives every served forecast and the live state, or ask what others would have done.

In a what-if replay each learner forecasts every row when it was forecast, and learns every label when it came, in the
same commits. So delays cost it what they cost the model that was served.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.core.numbers.scores import N_SCORED, N_WRONG, TOTAL_BRIER, TOTAL_LOSS
from regretless.core.rows.labels import Labels
from regretless.evaluate.match import marks_of
from regretless.evaluate.trace import Checkpoint, Trace, Traces
from regretless.serve.host import Due, ModelHost, decode, read
from regretless.serve.log import Event, EventLog, ModelRow
from regretless.serve.models import ModelSpec
from regretless.serve.restore import start_of
from regretless.serve.settings import Limits
from regretless.serve.snapshots import Snapshot, Snapshots
from regretless.serve.sums import Scored, Sums
from regretless.serve.tables import FORECAST

SERVED = "as served"
UNLIMITED = Limits(columns=10**9, classes=10**9, categories=10**9, text=10**9)


class Verified(NamedTuple):
    """What a verification found."""

    forecasts: int
    labels: int
    different: list[int]  # forecasts that the log does not reproduce
    snapshots: int  # that were compared
    different_snapshots: list[int]
    state: Snapshot

    @property
    def is_exact(self) -> bool:
        """Whether everything was reproduced to the bit."""
        return not self.different and not self.different_snapshots


def model_of(log: EventLog, name: str | None) -> ModelRow:
    """A model of the log by name; the first one without."""
    found = log.models()
    if not found:
        raise ValueError("the log has no model.")
    for row in found:
        if name is None or row.name == name:
            return row
    raise ValueError(f"the log has no model {name!r}: it has {', '.join(row.name for row in found)}.")


def commits(log: EventLog, row: ModelRow, until: int | None) -> Iterator[tuple[list[Event], list[Event]]]:
    """The events of a model, commit by commit: forecasts and labels."""
    for chunk in log.read(row.number, row.start_seq, until):
        for _, batch in groupby(chunk, key=lambda event: event.batch):
            together = [*batch]
            forecasts = [event for event in together if event.kind == FORECAST]
            yield forecasts, together[len(forecasts) :]


def verify(
    log: EventLog, name: str | None = None, snapshots: Snapshots | None = None, until: int | None = None
) -> Verified:
    """Forecast and learn everything again, and compare with what was served and with the snapshots, bit by bit."""
    row = model_of(log, name)
    host = ModelHost(row, start_of(row))
    to_compare = snapshots.all(row.number, row.identity) if snapshots else []
    to_compare = [each for each in to_compare if each.seq >= host.seq]
    n_forecasts, n_labels = 0, 0
    different: list[int] = []
    wrong: list[int] = []

    def compare(before: float) -> None:
        while to_compare and to_compare[0].seq < before:
            expected = to_compare.pop(0)
            if host.snapshot(expected.seq) != expected:
                wrong.append(expected.seq)

    compared = len(to_compare)
    for forecasts, labels in commits(log, row, until):
        compare((forecasts or labels)[0].seq)
        said = host.forecast([host.columns.row(read(event.body, event.seq)) for event in forecasts])
        for event, p in zip(forecasts, said, strict=True):
            if p != event.forecast or event.version != host.version:
                different.append(event.seq)
            host.served(event)
            host.sums.forecasts += 1
        if labels:
            host.learn([_due(log, host, event) for event in labels])
        n_forecasts, n_labels = n_forecasts + len(forecasts), n_labels + len(labels)
    last = log.last_seq() if until is None else until
    compare(last + 1)
    return Verified(n_forecasts, n_labels, different, compared - len(to_compare), wrong, host.snapshot(last))


def _due(log: EventLog, host: ModelHost, event: Event) -> Due:
    if host.find(event.id) is None:
        host.take_up([each for each in log.find(host.number, [event.id]) if each.kind == FORECAST])
    entry = host.find(event.id)
    assert entry is not None and event.weight is not None  # a label comes after its forecast
    return Due(event.seq, event.at, read(event.body, event.seq), event.weight, entry)


class Line:
    """The totals of one learner in a what-if replay, at marks."""

    def __init__(self, name: str, sums: Sums) -> None:
        self.name, self.sums = name, sums
        self.checkpoints: list[Checkpoint] = []
        self.seconds = 0.0
        self._marks = marks_of("log")
        self._next = 0

    def note(self, certificate: float | None = None, bound: float | None = None, at_end: bool = False) -> None:
        """Write a line of the trace if a mark is passed."""
        scores = self.sums.scores
        n = scores[N_SCORED]
        if n == 0 or (n < self._marks[self._next] and not at_end):
            return
        if at_end and self.checkpoints and self.checkpoints[-1].rows == n:
            return
        while self._marks[self._next] <= n:
            self._next += 1
        self.checkpoints.append(
            Checkpoint(
                rows=float(n),
                log_loss=float(scores[TOTAL_LOSS]),
                mistakes=float(scores[N_WRONG]),
                brier=float(scores[TOTAL_BRIER]),
                loss=self.sums.served_loss,
                certificate=math.nan if certificate is None else certificate,
                bound=math.nan if bound is None else bound,
                seconds=self.seconds,
            )
        )

    @property
    def due(self) -> bool:
        """Whether a mark is passed."""
        return bool(self.sums.scores[N_SCORED] >= self._marks[self._next])

    def trace(self, classes: list[Any]) -> Trace:
        """The result."""
        return Trace(
            name=self.name,
            competition=None,
            kind="probabilities",
            checkpoints=tuple(self.checkpoints),
            bins=self.sums.bins,
            forecasts=None,
            classes=classes,
            stream=None,
            seen=lambda X: X,
        )


class Other(Line):
    """Another learner on the same history."""

    def __init__(self, recipe: str, row: ModelRow) -> None:
        spec = ModelSpec.of(recipe, decode(row.features), decode(row.classes), limits=UNLIMITED, files=True)
        start = ModelHost.start_of(spec)
        own = row._replace(recipe=recipe, start_seq=0, start=start.pack())
        self.host = ModelHost(own, start, ids_in_memory=10**12)
        super().__init__(recipe, self.host.sums)

    def play(self, forecasts: Sequence[Event], rows: Sequence[Any], labels: Sequence[Event]) -> None:
        """One commit."""
        host, started = self.host, time.process_time()
        version = host.version
        said = host.forecast([host.columns.row(x) for x in rows])
        for event, p in zip(forecasts, said, strict=True):
            if not isinstance(p, Exception):
                host.served(event._replace(forecast=p, version=version))
        due = []
        for event in labels:
            entry = host.forget(event.id)
            if entry is None or event.weight is None:  # it could not forecast this row
                self.sums.refused += 1
            else:
                due.append(Due(event.seq, event.at, read(event.body, event.seq), event.weight, entry))
        if due:
            host.learn(due)
        self.seconds += time.process_time() - started
        if self.due:
            self.note(*host.promises())


def what_if(
    log: EventLog, learners: Sequence[str], name: str | None = None, until: int | None = None
) -> tuple[Traces, dict[str, Line]]:
    """The traces of other learners on the history of a model, and of the forecasts as they were served."""
    row = model_of(log, name)
    others = [Other(recipe, row) for recipe in dict.fromkeys(learners)]
    classes = decode(row.classes)
    code = Labels(np.array(classes, dtype=object)).code
    served = Line(SERVED, Sums(len(classes)))
    waiting: dict[str, Event] = {}
    for forecasts, labels in commits(log, row, until):
        rows = [read(event.body, event.seq) for event in forecasts]
        for other in others:
            other.play(forecasts, rows, labels)
        waiting |= {event.id: event for event in forecasts}
        scored = []
        for event in labels:
            forecast = waiting.pop(event.id, None)
            if forecast is not None and event.weight is not None:  # else its forecast was compacted
                assert forecast.forecast is not None and forecast.version is not None
                waited, k = max(0.0, event.at - forecast.at), code[read(event.body, event.seq)]
                scored.append(Scored(forecast.forecast, k, event.weight, waited, forecast.version))
        if scored:
            served.sums.add(scored)
        if served.due:
            served.note()
    for line in (served, *others):
        certificate, bound = line.host.promises() if isinstance(line, Other) else (None, None)
        line.note(certificate, bound, at_end=True)
        if not line.checkpoints:
            raise ValueError("the log has no labels" + ("." if until is None else f" until event {until}."))
    lines = {line.name: line for line in (served, *others)}
    return Traces({name: line.trace(classes) for name, line in lines.items()}), lines


def draw(traces: Traces, path: Path) -> None:
    """A picture of log loss and error of every learner over the labels."""
    from regretless.evaluate.plots import panels, style, tidy

    figure, axes = panels(1, 2)
    for i, (name, trace) in enumerate(traces.items()):
        axes[0, 0].plot(trace.rows, trace.log_loss / trace.rows, label=name, **style(i))
        axes[0, 1].plot(trace.rows, trace.mistakes / trace.rows, **style(i))
    for each, what in zip(axes[0], ("log loss of the labels so far", "errors of the labels so far"), strict=True):
        each.set_xscale("log")
        tidy(each, "labels", what)
    figure.legend(loc="outside lower center", frameon=False, ncols=2)
    figure.savefig(path, dpi=150)
