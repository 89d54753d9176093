"""JSON lines: one object per line, with numbers, text, booleans or null. Quoted values are text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

import numpy as np

from regretless.streams import kinds
from regretless.streams.sources import MOST_CELLS, MOST_COLUMNS, SAMPLE, Lines, plain
from regretless.streams.tables import Chunk, Table
from regretless.streams.types import BadLine


class JsonTable(Table):
    """The columns are the keys of the rows; a key that a row lacks is missing there."""

    def __init__(self, lines: Iterator[bytes], dropped: Collection[str] = ()) -> None:
        self.lines = Lines(lines)
        self.dropped = dropped
        self.met: dict[str, None] = {}  # keys in the sample, in order
        self.rows_met = 0  # rows in the sample

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Line by line."""
        while lines := self.lines.some(max(1, min(rows, MOST_CELLS // max(1, len(self.wanted or ()))))):
            objects: list[dict[str, Any]] = []
            places: list[int] = []
            broken: list[BadLine] = []
            before = self.lines.read - len(lines)
            for i, line in enumerate(lines):
                if not line.strip():
                    continue
                row = _object(line, self.dropped)
                if isinstance(row, dict) and self.wanted is None and not self._fits_sample(row):
                    self.lines.give_back(lines[i:])
                    self.lines.end_sample()
                    break
                if isinstance(row, dict):
                    row = self._without_others(row)
                if isinstance(row, str):
                    broken.append(BadLine(before + i + 1, plain(line), row))
                else:
                    objects.append(row)
                    places.append(before + i + 1)
            names = dict.fromkeys(chain.from_iterable(objects))
            columns = {name: [row.get(name) for row in objects] for name in names}
            texts = [plain(lines[place - before - 1]) for place in places]
            at = np.array(places, dtype=np.int64)
            yield Chunk(columns, at, self.lines.read, texts.__getitem__, broken, self.lines.sampled)

    def _fits_sample(self, row: dict[str, Any]) -> bool:
        """Add the keys of a row to the sample, unless the table, with missing values filled in, becomes too large."""
        new = [name for name in row if name not in self.met]
        columns = len(self.met) + len(new)
        if self.rows_met and (columns > MOST_COLUMNS or (self.rows_met + 1) * columns > MOST_CELLS):
            return False
        self.met.update(dict.fromkeys(new))
        self.rows_met += 1
        return True

    def _without_others(self, row: dict[str, Any]) -> dict[str, Any] | str:
        """The row with the planned columns only, or an error message about the others."""
        if self.wanted is None or all(name in self.wanted for name in row):
            return row
        others = [name for name in row if name not in self.wanted and row[name] is not None]
        if self.strict and others:
            return f"column {others[0]!r} is not in the first {SAMPLE} lines. Declare it in declare=."
        return {name: value for name, value in row.items() if name in self.wanted}

    def guess(self, parts: list[Any]) -> str:
        """The kind of most values."""
        known = [value for value in chain(*parts) if value is not None and value == value]  # not NaN
        for kind, of_kind in (("number", _is_number), ("truth", lambda value: isinstance(value, bool))):
            if sum(map(of_kind, known)) >= kinds.MOST * len(known):
                return kind
        return kinds.guess(_text(known), ("time",))

    def guess_label(self, parts: list[Any]) -> str:
        """The kind of all labels."""
        known = [value for value in chain(*parts) if value is not None and value == value]  # not NaN
        if known and all(isinstance(value, bool) for value in known):
            return "truth"
        return kinds.guess_label(_text(known)) if all(map(_is_number, known)) else "label"

    def convert(self, part: Any, kind: str) -> tuple[Any, kinds.Bad]:
        """Convert numbers and booleans through their text; quoted text is never a number."""
        import pyarrow as pa

        if kind in ("category", "label", "id"):
            return _text(part), np.zeros(len(part), dtype=bool)
        values, bad = kinds.convert(_text(part), kind)
        if kind in ("number", "whole"):
            words = [value if isinstance(value, str) else "" for value in part]
            bad |= np.array([word.strip().lower() not in kinds.MISSING for word in words], dtype=bool)
        return values if isinstance(values, pa.Array) else values.combine_chunks(), bad

    def shown(self, part: Any, i: int) -> str:
        """The value as JSON."""
        return part[i] if isinstance(part[i], str) else json.dumps(part[i])


def _object(line: bytes, dropped: Collection[str]) -> dict[str, Any] | str:
    """The row, with None in the dropped columns, or an error message."""
    try:
        row = json.loads(line.decode("utf-8"), object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:  # a number of 5000 digits raises ValueError too
        return f"it is not valid JSON ({error})."
    if not isinstance(row, dict):
        return "it is not a JSON object."
    row = {name: None if name in dropped else value for name, value in row.items()} if dropped else row
    if len(row) > MOST_COLUMNS:
        return f"it has {len(row)} columns; at most {MOST_COLUMNS} (MOST_COLUMNS) are supported."
    for name, value in row.items():
        if isinstance(value, list | dict):
            kind = "a list" if isinstance(value, list) else "an object"
            return (
                f"column {name!r} is {kind}: values must be numbers or text. Write its values in columns of their own, "
                f"or leave it out with declare={{{name!r}: 'drop'}}."
            )
    if b"\\u" in line:
        try:
            "".join(value for value in (*row, *row.values()) if isinstance(value, str)).encode("utf-8")
        except UnicodeEncodeError as error:
            return f"it has an invalid character ({error.reason})."
    return row


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        met: set[str] = set()
        twice = next(name for name, _ in pairs if name in met or met.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"duplicate column {twice!r}")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(values: Any) -> Any:
    import pyarrow as pa

    return pa.array(
        [
            None if value is None or value != value else value if isinstance(value, str) else json.dumps(value)
            for value in values
        ],
        pa.string(),
    )
