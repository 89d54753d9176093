"""Read files of any size block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from regretless.core.errors import BadRow
from regretless.streams.ledger import Ledger, OnBad
from regretless.streams.sources import called, format_of, is_path, open_lines
from regretless.streams.sparse_lines import SparseFormat, sparse_blocks
from regretless.streams.tables import Plan, Table, table_blocks
from regretless.streams.types import BadLine, Block
from regretless.streams.witness import Changed, Witness


def read(
    source: Any,
    target: str | None,
    *,
    format: str | None = None,
    rows_at_once: int = 4096,
    on_bad: OnBad = "error",
    on_bad_line: Callable[[BadLine], None] | None = None,
    weight: str | None = None,
    columns: Mapping[str, str] | int | None = None,
    skip: int = 0,
    bits: int = 18,
) -> Reading:
    """Read a file, standard input or an open file in blocks of rows. At most one block is in memory.

    Tables (CSV, TSV, Parquet, JSON lines, Arrow) give blocks whose X is a pyarrow.Table with columns of float64, text
    and timestamps. The kind of a CSV or JSON column is inferred from the first 4096 lines and then fixed: numbers,
    booleans (1 and 0) or dates (timestamps, without their time zones) if at least 90% of its values are, else
    categories. Empty fields, NA, N/A, NaN, null and ? are missing values. svmlight and VW text give CSR matrices; their
    labels are part of the line.

    Parameters
    ----------
    source : a path, "-" for standard input, or an open file.
    target : the name of the label column; None to read no labels (a label column is then a feature, unless `columns`
        leaves it out). For svmlight and VW text, any name, or None.
    format : "csv", "tsv", "jsonl", "parquet", "arrow" (file or stream, also Feather), "svmlight" (alias "libsvm";
        "svmlight0" and "svmlight1" fix the first index) or "vw". By default it is taken from the file name, where text
        formats may also end in .gz, .bz2 or .xz; CSV if there is no name.
    rows_at_once : the largest number of rows per block.
    on_bad : how to handle a row that cannot be learned from: a value that does not fit its column, infinity, a wrong
        number of fields, a missing label. "error" raises `BadRow` (the rest of its block is lost too); "skip" and
        "quarantine" skip the row and record it in `bad_count` and `bad`. Use "quarantine" if you store such rows.
    on_bad_line : called with every bad line, in order, for example to store it.
    weight : the name of the column of sample weights. (VW text has its own importances.)
    columns : for a table, a dictionary from names to kinds of the columns to use: "number", "truth", "time", "trend" (a
        date as the days since 1970) or "category"; nothing is then inferred. `reading.columns` is such a dictionary, to
        read another file in the same way. For svmlight text, the number of features; by default that of the first 4096
        lines.
    skip : the number of good rows to skip at the beginning, in order to resume. They are read and checked again, and
        bad rows are counted again, but they are not returned.
    bits : VW features are hashed into 2^bits columns.

    Returns
    -------
    A `Reading`: iterate over it for blocks `(X, y, weight, first, lines)`.

    Examples
    --------
    >>> from io import StringIO
    >>> from regretless.streams import read
    >>> lines = StringIO("size,colour,kind\\n1.5,red,a\\n?,blue,b\\noops,red,a\\n" + "2,red,b\\n" * 20)
    >>> reading = read(lines, "kind", on_bad="skip")
    >>> for block in reading:
    ...     print(block.X.num_rows, block.y[:3], reading.columns)
    22 ['a' 'b' 'b'] {'size': 'number', 'colour': 'category'}
    >>> reading.bad[0].line, reading.bad[0].text
    (4, 'oops,red,a')
    """
    return Reading(source, target, format, rows_at_once, on_bad, on_bad_line, weight, columns, skip, bits)


class Reading:
    """A file being read: iterate over it for its blocks. A named file can be iterated over again.

    Attributes
    ----------
    format : as given or inferred; "svmlight0" or "svmlight1" once that is known.
    columns : kinds of the columns by name, without the target, or the number of columns; None before the first block.
    bad : the first 1000 bad lines, `BadLine(line, text, why)`.
    bad_count : the number of bad lines so far.
    """

    def __init__(
        self,
        source: Any,
        target: str | None,
        format: str | None,
        rows_at_once: int,
        on_bad: str,
        on_bad_line: Callable[[BadLine], None] | None,
        weight: str | None,
        columns: Mapping[str, str] | int | None,
        skip: int,
        bits: int,
    ) -> None:
        for name, value, least in (("rows_at_once", rows_at_once, 1), ("skip", skip, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name}={value!r} must be an integer >= {least}.")
        self.source = source
        self.format = format_of(source, format)
        self.columns: Mapping[str, str] | int | None = None
        self._sparse = self.format.startswith(("svmlight", "vw"))
        if weight is not None and self._sparse:
            raise ValueError(f"weight={weight!r}: {self.format} text has no weight column; remove weight=.")
        if columns is not None and (self.format == "vw" or isinstance(columns, Mapping) == self._sparse):
            fitting = {"vw": "remove it and use bits"}.get(
                self.format, "pass the number of features" if self._sparse else "pass a dictionary of names and kinds"
            )
            raise ValueError(f"columns={columns!r} does not fit {self.format}: {fitting}.")
        self._target, self._weight, self._declared = target, weight, columns
        self._rows, self._skip, self._bits = rows_at_once, skip, bits
        self._on_bad, self._tell = on_bad, on_bad_line
        self._ledger = self._new_ledger()
        self._begun = False
        self.witness: Witness | None = None  # receives all data, if set before the first block

    def _new_ledger(self) -> Ledger:
        unit = "row" if self.format in ("parquet", "arrow") else "line"
        return Ledger(self._on_bad, self._tell, called(self.source), unit)

    @property
    def bad(self) -> list[BadLine]:
        """The first bad lines."""
        return self._ledger.kept

    @property
    def bad_count(self) -> int:
        """The number of bad lines so far."""
        return self._ledger.count

    def __iter__(self) -> Iterator[Block]:
        if self._begun and not is_path(self.source):
            raise ValueError(f"{called(self.source)} can be read only once.")
        self._begun = True
        self._ledger = self._new_ledger()
        return _after(self._skip, self._blocks())

    def _blocks(self) -> Iterator[Block]:
        """Turn every problem with the file into a ValueError that names it."""
        try:
            yield from self._sparse_blocks() if self._sparse else self._table_blocks()
        except BadRow:
            raise
        except Changed as error:
            raise Changed(f"{called(self.source)} has changed: {error}") from error
        except ValueError as error:
            raise ValueError(f"{called(self.source)}: {error}") from error

    def _table_blocks(self) -> Iterator[Block]:
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ImportError(f"reading tables requires pyarrow ({error}): pip install 'regretless[cli]'.") from error
        try:
            yield from self._pyarrow_blocks()
        except (pa.ArrowException, OSError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # from the disk, not from the format
                raise
            raise ValueError(f"it cannot be read as {self.format} ({error}).") from error

    def _pyarrow_blocks(self) -> Iterator[Block]:
        table = self._open_table()

        def settle(plan: Plan) -> None:
            self.columns = plan.features

        declared = self._declared if isinstance(self._declared, Mapping) else None
        yield from table_blocks(table, self._target, self._weight, declared, self._rows, self._ledger, settle)

    def _open_table(self) -> Table:
        from regretless.streams import arrow_table, csv_table, json_table

        if self.format == "parquet":
            return arrow_table.open_parquet(self.source, self._rows, self.witness)
        if self.format == "arrow":
            return arrow_table.open_arrow(self.source, self.witness)
        lines = open_lines(self.source, self.witness)
        if self.format == "jsonl":
            return json_table.JsonTable(lines)
        return csv_table.CsvTable(lines, "\t" if self.format == "tsv" else None)

    def _sparse_blocks(self) -> Iterator[Block]:
        from regretless.streams import svmlight, vw

        labelled = self._target is not None
        how: SparseFormat
        if self.format == "vw":
            how = words = vw.VowpalWabbit(self._bits)
            self.columns = words.columns
        else:
            base = int(self.format[-1]) if self.format[-1].isdigit() else None
            told = self._declared if isinstance(self._declared, int) else None
            how = numbered = svmlight.Svmlight(told, base, labelled)
        for block in sparse_blocks(how, open_lines(self.source, self.witness), labelled, self._rows, self._ledger):
            if self.format != "vw":
                self.columns, self.format = numbered.columns, f"svmlight{numbered.base}"
            yield block


def _after(skip: int, blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks without the first rows."""
    for block in blocks:
        n = block.X.shape[0]
        cut = max(0, skip - block.first)
        if cut >= n:
            continue
        if cut:
            X = block.X[cut:] if not hasattr(block.X, "slice") else block.X.slice(cut)
            y = None if block.y is None else block.y[cut:]
            weight = None if block.weight is None else block.weight[cut:]
            block = Block(X, y, weight, block.first + cut, block.lines)
        yield block
