"""CSV: records that may span lines, each with its first line number; values stay text until their kind is known.

A block without quotes is parsed by pyarrow. A block with quotes, or one that pyarrow rejects, is parsed record by
record, so that errors have exact line numbers.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from regretless.streams import kinds
from regretless.streams.sources import MOST_COLUMNS, Lines, plain
from regretless.streams.tables import Chunk, Table
from regretless.streams.types import BadLine

LONGEST = 1 << 17  # bytes of a multi-line record: an unclosed quote must not consume the whole file
QUICK_COLUMNS = 10_000  # above this, pyarrow's memory per column exceeds that of the values


class CsvTable(Table):
    """A text table whose first line has the column names."""

    def __init__(self, lines: Iterator[bytes], delimiter: str | None = None, decimal: str | None = None) -> None:
        self.lines = Lines(lines)
        self.delimiter = delimiter or ","
        for line in iter(self.lines.next, None):
            if line.strip():
                if delimiter is None:
                    self.delimiter = next((mark for mark in ",;\t" if mark.encode() in line), ",")
                _, fields, wrong = self._record(line)
                break
        else:
            raise ValueError("the file is empty: its first line must have the column names.")
        self.decimal = decimal
        if wrong:
            raise ValueError(f"line 1 must have the column names: {wrong}")
        if len(fields) > MOST_COLUMNS:
            raise ValueError(f"line 1 has {len(fields)} columns; at most {MOST_COLUMNS} (MOST_COLUMNS) are supported.")
        self.names: list[str] = [field.strip() for field in fields]
        counts = Counter(self.names)
        twice = [name for name in self.names if counts[name] > 1 or not name]
        if twice:
            raise ValueError(f"line 1 must have unique column names: {twice[0]!r} is empty or a duplicate.")

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Parse with pyarrow if possible, else record by record."""
        while lines := self.lines.some(rows):
            before = self.lines.read - len(lines)
            yield self._quick(lines, before) or self._careful(lines, before)

    def _quick(self, lines: list[bytes], before: int) -> Chunk | None:
        import pyarrow as pa
        from pyarrow import csv as pacsv

        if len(self.names) > QUICK_COLUMNS:
            return None
        raw = b"".join(lines)
        if b'"' in raw or raw.count(b"\r") != raw.count(b"\r\n"):  # pyarrow treats both as line endings
            return None
        text = {name: pa.string() for name in self.names}
        try:
            table = pacsv.read_csv(
                pa.BufferReader(raw),
                read_options=pacsv.ReadOptions(use_threads=False, block_size=len(raw) + 1, column_names=self.names),
                parse_options=pacsv.ParseOptions(delimiter=self.delimiter, quote_char=False),
                convert_options=pacsv.ConvertOptions(column_types=text, strings_can_be_null=False),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(lines):
            return None
        columns = {name: table[name].combine_chunks() for name in self.names}
        places = np.arange(before + 1, before + 1 + len(lines))
        return Chunk(columns, places, self.lines.read, lambda i: plain(lines[i]), [], self.lines.sampled)

    def _careful(self, lines: list[bytes], before: int) -> Chunk:
        import pyarrow as pa

        self.lines.give_back(lines)
        records: list[list[str]] = []
        places: list[int] = []
        texts: list[str] = []
        broken: list[BadLine] = []
        while self.lines.read < before + len(lines) and (line := self.lines.next()) is not None:
            if not line.strip(b"\r\n"):
                continue
            place = self.lines.read
            text, fields, wrong = self._record(line)
            if not wrong and len(fields) != len(self.names):
                wrong = f"it has {len(fields)} fields, the header has {len(self.names)}."
                self.lines.give_back(text[1:])
            if wrong:
                broken.append(BadLine(place, plain(line), wrong))
            else:
                records.append(fields)
                places.append(place)
                texts.append(plain(b"".join(text)))
        by_column = zip(*records, strict=True) if records else [()] * len(self.names)
        columns = {name: pa.array(part, pa.string()) for name, part in zip(self.names, by_column, strict=True)}
        consumed, sampled = self.lines.read, self.lines.sampled
        return Chunk(columns, np.array(places, dtype=np.int64), consumed, texts.__getitem__, broken, sampled)

    def _record(self, line: bytes) -> tuple[list[bytes], list[str], str]:
        """The lines of the record that begins here, its fields, and an error message or ""."""
        lines, quotes, size = [line], line.count(b'"'), len(line)
        while quotes % 2 and size < LONGEST and (more := self.lines.next()) is not None:
            lines.append(more)
            quotes += more.count(b'"')
            size += len(more)
        wrong = "a quote is never closed." if quotes % 2 else ""
        fields: list[str] = []
        try:
            text = [part.decode() for part in lines]
            fields = next(csv.reader(text, delimiter=self.delimiter, strict=True), []) if not wrong else []
        except UnicodeDecodeError as error:
            wrong = f"it is not UTF-8 text ({error.reason}): pass its encoding, such as encoding='latin-1'."
        except csv.Error as error:
            wrong = f"it is not valid CSV ({error})."
        if wrong:  # skip only the first line of a bad record: the quote that joined the others may be a mistake
            self.lines.give_back(lines[1:])
        return lines, fields, wrong

    def guess(self, parts: list[Any]) -> str:
        """From text."""
        return kinds.guess(_together(parts), (*self._numbers, "truth", "time"))

    @property
    def _numbers(self) -> tuple[str, ...]:
        """The kinds of numbers. Between commas, "1,234" may as well be a thousand."""
        if self.decimal is not None:
            return ("comma",) if self.decimal == "," else ("number",)
        return ("number",) if self.delimiter == "," else ("number", "comma")

    def guess_label(self, parts: list[Any]) -> str:
        """From text."""
        return kinds.guess_label(_together(parts), ("whole", *self._numbers))

    def convert(self, part: Any, kind: str) -> tuple[Any, kinds.Bad]:
        """From text."""
        if kind == "id":
            return part, np.zeros(len(part), dtype=bool)
        return kinds.convert(part, kind)

    def shown(self, part: Any, i: int) -> str:
        """The text itself."""
        return str(part[i].as_py())


def _together(parts: list[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())
