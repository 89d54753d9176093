"""Parquet and Arrow files: typed columns, read batch by batch."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regretless.streams.kinds import Bad, as_days, finite
from regretless.streams.sources import MOST_CELLS, SAMPLE, is_path
from regretless.streams.tables import Chunk, Table
from regretless.streams.witness import Witness

LARGEST_COLUMN = 1 << 28  # bytes of a column in a row group that is well compressed
LARGEST_RATIO = 200  # uncompressed to compressed size


class ArrowTable(Table):
    """Record batches and their schema."""

    unit = "row"

    def __init__(self, schema: Any, batches: Iterator[Any], witness: Witness | None) -> None:
        self.schema = schema
        self.names: list[str] = list(schema.names)
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(f"duplicate column {twice[0]!r}: column names must be unique.")
        self.batches = batches
        self.witness = witness

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """The batches, divided if they are longer."""
        read = 0
        rows = max(1, min(rows, MOST_CELLS // max(1, len(self.names))))
        for batch in self.batches:
            if self.witness is not None:
                self._show(batch)
            for start in range(0, batch.num_rows, rows):
                some = batch.slice(start, rows)
                places = np.arange(read + 1, read + 1 + some.num_rows)
                read += some.num_rows
                columns = dict(zip(self.names, some.columns, strict=True))
                yield Chunk(columns, places, read, partial(_row, some), [], read >= SAMPLE)

        if self.witness is not None:
            self.witness.end()

    def _show(self, batch: Any) -> None:
        """Pass a batch to the witness. Dictionaries are stored outside the batch, so their values are passed."""
        import pyarrow as pa

        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
        ]
        plain = pa.record_batch(columns, names=self.names)
        assert self.witness is not None
        self.witness.see(plain.serialize(), batch.num_rows)

    def guess(self, parts: list[Any]) -> str:
        """From the type."""
        return _kind(parts[0].type) if parts else "number"

    def guess_label(self, parts: list[Any]) -> str:
        """From the type."""
        import pyarrow as pa

        if parts and pa.types.is_integer(parts[0].type):
            return "whole"
        return "label" if (kind := self.guess(parts)) in ("category", "time") else kind

    def convert(self, part: Any, kind: str) -> tuple[Any, Bad]:
        """Cast to the kind. A column whose type does not match its declared kind is an error."""
        import pyarrow as pa

        none = np.zeros(len(part), dtype=bool)
        if pa.types.is_dictionary(part.type):
            part = part.dictionary_decode()
        if kind == "id":
            return part, none
        if kind in ("category", "label"):
            return part.cast(pa.string()), none
        if (_kind(part.type) == "time") != (kind in ("time", "trend")) or _kind(part.type) == "category":
            raise ValueError(f"columns: a column of type {part.type} cannot be {kind!r}; use {_kind(part.type)!r}.")
        if kind in ("time", "trend"):
            return (as_days(_clock(part)) if kind == "trend" else _clock(part)), none
        if kind == "whole":
            return part.cast(pa.int64()), none
        if pa.types.is_duration(part.type):
            part = _seconds(part)
        return finite(part.cast(pa.float64(), safe=False))

    def shown(self, part: Any, i: int) -> str:
        """The value."""
        return str(part[i].as_py())


def _row(batch: Any, i: int) -> str:
    return str(batch.slice(i, 1).to_pylist()[0])


def open_parquet(source: Any, rows: int, witness: Witness | None = None) -> ArrowTable:
    """A Parquet file; at most one row group is in memory."""
    from pyarrow import parquet

    file = parquet.ParquetFile(str(source) if is_path(source) else _seekable(source))
    _check_declared(file.metadata)
    rows = max(1, min(rows, MOST_CELLS // max(1, file.metadata.num_columns)))
    return ArrowTable(file.schema_arrow, file.iter_batches(batch_size=rows), witness)


def _check_declared(metadata: Any) -> None:
    """Refuse a column whose declared uncompressed size is implausible."""
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for k in range(group.num_columns):
            column = group.column(k)
            inflated, stored = column.total_uncompressed_size, max(1, column.total_compressed_size)
            if inflated > LARGEST_COLUMN and inflated > LARGEST_RATIO * stored:
                raise ValueError(
                    f"column {column.path_in_schema!r} expands from {stored} to {inflated} bytes in row group {i}: "
                    f"more than {LARGEST_COLUMN} (LARGEST_COLUMN) and {LARGEST_RATIO} to 1 (LARGEST_RATIO). Write "
                    "it in smaller row groups."
                )


def open_arrow(source: Any, witness: Witness | None = None) -> ArrowTable:
    """An Arrow IPC file, memory-mapped, or an IPC stream."""
    import pyarrow as pa

    if not is_path(source):
        stream = pa.ipc.open_stream(sys.stdin.buffer if isinstance(source, str) else source)
        return ArrowTable(stream.schema, _valid(stream), witness)
    with Path(source).open("rb") as file:
        magic = file.read(6)
    mapped = pa.memory_map(str(source))
    if magic == b"ARROW1":
        reader = pa.ipc.open_file(mapped)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        return ArrowTable(reader.schema, _valid(batches), witness)
    stream = pa.ipc.open_stream(mapped)
    return ArrowTable(stream.schema, _valid(stream), witness)


def _valid(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches, each validated: offsets in a damaged file could point beyond its end."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _seekable(source: Any) -> Any:
    if isinstance(source, str):
        raise ValueError("Parquet cannot be read from standard input: pass a file, or an Arrow stream.")
    return source


def _kind(kind: Any) -> str:
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_dictionary(kind):
        return _kind(kind.value_type)
    if is_a.is_boolean(kind):
        return "truth"
    numbers = (is_a.is_integer, is_a.is_floating, is_a.is_decimal, is_a.is_null, is_a.is_duration)
    if any(is_number(kind) for is_number in numbers):
        return "number"
    if is_a.is_temporal(kind) and not is_a.is_interval(kind):
        return "time"
    if is_a.is_string(kind) or is_a.is_large_string(kind):
        return "category"
    raise ValueError(f"columns of type {kind} are not supported: leave it out with declare={{NAME: 'drop'}}.")


def _clock(part: Any) -> Any:
    """Dates, times and times of day as timestamps of what their own clocks show."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_time32(part.type):
        part = part.cast(pa.time64("us"))
    if pa.types.is_time64(part.type):
        part = part.cast(pa.time64("us"), safe=False).cast(pa.int64())
    elif pa.types.is_timestamp(part.type) and part.type.tz is not None:
        part = pc.local_timestamp(part)
    return part.cast(pa.timestamp("us"), safe=False)


def _seconds(part: Any) -> Any:
    """Durations in seconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    a_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[part.type.unit]
    return pc.divide(part.cast(pa.int64()).cast(pa.float64(), safe=False), a_second)
