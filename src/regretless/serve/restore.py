"""A model from its newest snapshot and the events after it."""

from __future__ import annotations

from itertools import groupby

from regretless.serve.host import ModelHost
from regretless.serve.log import EventLog, ModelRow
from regretless.serve.snapshots import Snapshot, Snapshots
from regretless.serve.tables import FORECAST


def start_of(row: ModelRow) -> Snapshot:
    """The state with which a model starts."""
    try:
        found = Snapshot.unpack(row.start)
        found.open()
    except (ValueError, KeyError, TypeError) as error:
        told = f"the log is damaged: the first state of the model {row.name!r} cannot be read ({error})."
        raise ValueError(told) from None
    return found


def restored(log: EventLog, row: ModelRow, snapshots: Snapshots, seq: int, ids_in_memory: int) -> ModelHost:
    """The model after the event `seq`, the last one of the log."""
    start = start_of(row)
    newest = snapshots.newest(row.number, row.identity, seq)
    if newest is not None and newest.seq > start.seq:
        start = newest
    host = ModelHost(row, start, ids_in_memory)
    catch_up(log, host, start.seq)
    return host


def catch_up(log: EventLog, host: ModelHost, after: int) -> None:
    """Let a model learn the labels after an event, in the batches in which they were committed.

    It may be called again after an error: what was learned is not learned twice.
    """
    last = log.last_seq()
    for _, labels in groupby(log.labelled(host.number, max(after, host.seq), last), key=lambda label: label.batch):
        host.replay([*labels])
    host.sums.forecasts += log.count(host.number, FORECAST, max(after, host.counted), last)
    host.counted = last
