"""JSON lines: an object a line, whose values are numbers, text, truth values or null. Text in quotes is text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from noregret.streams import kinds
from noregret.streams.sources import at_once, plain
from noregret.streams.tables import Chunk, Table
from noregret.streams.types import BadLine


class JsonTable(Table):
    """Columns are the names that rows use; a name that a row lacks is missing there."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.lines = lines

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Line by line."""
        read = 0
        while lines := list(islice(self.lines, at_once(rows, read))):
            objects: list[dict[str, Any]] = []
            places: list[int] = []
            broken: list[BadLine] = []
            for line in lines:
                read += 1
                if not line.strip():
                    continue
                row = _object(line)
                if isinstance(row, str):
                    broken.append(BadLine(read, plain(line), row))
                else:
                    objects.append(row)
                    places.append(read)
            names = dict.fromkeys(chain.from_iterable(objects))
            columns = {name: [row.get(name) for row in objects] for name in names}
            texts = [plain(lines[place - read - 1]) for place in places]
            yield Chunk(columns, np.array(places, dtype=np.int64), read, texts.__getitem__, broken)

    def guess(self, parts: list[Any]) -> str:
        """What most values are."""
        known = [value for value in chain(*parts) if not _missing(value)]
        for kind, of_kind in (("number", _is_number), ("truth", lambda value: isinstance(value, bool))):
            if sum(map(of_kind, known)) >= kinds.MOST * len(known):
                return kind
        return kinds.guess(_text(known), numbers=False)

    def guess_label(self, parts: list[Any]) -> str:
        """What all labels are."""
        known = [value for value in chain(*parts) if not _missing(value)]
        if known and all(isinstance(value, bool) for value in known):
            return "truth"
        return kinds.guess_label(_text(known)) if all(map(_is_number, known)) else "category"

    def convert(self, part: Any, kind: str) -> tuple[Any, kinds.Bad]:
        """Numbers and truth values by their text; of text in quotes, no number is made."""
        import pyarrow as pa

        if kind == "category":
            return _text(part), np.zeros(len(part), dtype=bool)
        values, bad = kinds.convert(_text(part), kind)
        if kind in ("number", "whole"):
            quoted = np.array([isinstance(value, str) and value.strip() not in kinds.MISSING for value in part], bool)
            bad |= quoted
        return values if isinstance(values, pa.Array) else values.combine_chunks(), bad

    def shown(self, part: Any, i: int) -> str:
        """The value as JSON."""
        return part[i] if isinstance(part[i], str) else json.dumps(part[i])


def _object(line: bytes) -> dict[str, Any] | str:
    """The row, or what is wrong with it."""
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"it is no JSON ({error})."
    if not isinstance(row, dict):
        return "it is no object of names and values."
    for name, value in row.items():
        if isinstance(value, list | dict):
            return f"column {name!r} is a {'list' if isinstance(value, list) else 'object'}: give numbers or text."
    return row


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(values: Any) -> Any:
    import pyarrow as pa

    return pa.array(
        [None if _missing(value) else value if isinstance(value, str) else json.dumps(value) for value in values],
        pa.string(),
    )
