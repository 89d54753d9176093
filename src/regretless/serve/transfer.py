"""Logs as Parquet files, and logs without the events that are over."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regretless.core.files.writing import replacing
from regretless.serve.log import Event, EventLog, ModelRow
from regretless.serve.restore import restored
from regretless.serve.snapshots import Snapshots
from regretless.serve.tables import COLUMNS

MODELS = b"regretless.models"  # in the metadata of the Parquet file


def _schema(models: list[ModelRow]) -> Any:
    import pyarrow as pa

    kinds = (pa.int64(), pa.int32(), pa.int8(), pa.string(), pa.int64(), pa.float64(), pa.binary(), pa.binary())
    fields = zip(COLUMNS, (*kinds, pa.int64(), pa.float64()), strict=True)
    told = [row._asdict() | {"start": base64.b64encode(row.start).decode()} for row in models]
    return pa.schema([pa.field(*field) for field in fields], metadata={MODELS: json.dumps(told).encode()})


def export(log: EventLog, path: Path) -> int:
    """Write the log to a Parquet file; returns the number of events."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(log.models())
    n = 0
    with replacing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for chunk in log.read(at_once=50_000):
            writer.write_table(pa.table([[*column] for column in zip(*chunk, strict=True)], schema=schema))
            n += len(chunk)
    return n


def bring_in(log: EventLog, path: Path) -> int:
    """Write the events of a Parquet file to an empty log; returns their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if log.models() or log.last_seq():
        raise ValueError("the log is not empty: import into a new one.")
    try:
        file = pq.ParquetFile(path)
        told = json.loads((file.schema_arrow.metadata or {})[MODELS])
        models = [ModelRow(**(each | {"start": base64.b64decode(each["start"])})) for each in told]
        if tuple(file.schema_arrow.names) != COLUMNS:
            raise KeyError(COLUMNS)
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is not a log that `regretless log export` wrote.") from None
    for row in models:
        log.add_model(row)
    n = 0
    for some in _whole_commits(file):
        log.append(some)
        n += len(some)
    return n


def _whole_commits(file: Any) -> Iterator[list[Event]]:
    rest: list[Event] = []
    for batch in file.iter_batches(10_000):
        rest += [Event(*values) for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
        whole = next((i for i in range(len(rest) - 1, 0, -1) if rest[i].batch != rest[i - 1].batch), 0)
        if whole:
            yield rest[:whole]
            rest = rest[whole:]
    if rest:
        yield rest


def compact(log: EventLog, snapshots: Snapshots) -> int:
    """Let every model start from its present state, and remove forecasts that have their labels, and these.

    Forecasts that wait for a label stay. Returns the number of events that were removed.
    """
    seq, removed = log.last_seq(), 0
    for row in log.models():
        host = restored(log, row, snapshots, seq, 1000)
        removed += log.replace_start(row.number, seq, host.snapshot(seq).pack())
    log.shrink()
    return removed
