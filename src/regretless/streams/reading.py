"""Read files of any size block by block."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from regretless.core.errors import BadRow
from regretless.streams.ledger import Ledger, OnBad
from regretless.streams.sources import called, format_of, is_path, open_lines
from regretless.streams.sparse_lines import SparseFormat, sparse_blocks
from regretless.streams.tables import Plan, Request, Table, table_blocks
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
    declare: Mapping[str, str] | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    skip: int = 0,
    bits: int = 18,
) -> Reading:
    """Read a file, standard input or an open file in blocks of rows. At most one block is in memory.

    Tables (CSV, TSV, Parquet, JSON lines, Arrow) give blocks whose X is a pyarrow.Table with columns of float64, text
    and timestamps. The kind of a CSV or JSON column is inferred from the first 4096 lines and then fixed: numbers,
    booleans (1 and 0) or dates (timestamps, without their time zones) if at least 90% of its values are, else
    categories. Empty fields and NA, N/A, NaN, null, none, nil, - and ?, in upper or lower case, are missing values (in
    the target, none, nil and - are labels). svmlight and VW text give CSR matrices; their labels are part of the line.

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
    columns : for a table, a dictionary from names to kinds of the columns to use: "number", "comma" (a number with a
        decimal comma), "truth", "time", "trend" (a date as the days since 1970) or "category"; nothing is then
        inferred. `reading.columns` is such a dictionary, to
        read another file in the same way. For svmlight text, the number of features; by default that of the first 4096
        lines.
    declare : the same for some columns of a table; the kinds of others are inferred, unless `columns` is given. The
        kind "drop" leaves a column out; "id" keeps it in `block.ids`, not among the features.
    decimal : the decimal mark of numbers in CSV, "." or ",". By default each column has its own, except that a comma is
        never decimal in a file with commas between fields.
    encoding : the encoding of a text file, such as "latin-1", if it is not UTF-8.
    skip : the number of good rows to skip at the beginning, in order to resume. They are read and checked again, and
        bad rows are counted again, but they are not returned.
    bits : VW features are hashed into 2^bits columns.

    Returns
    -------
    A `Reading`: iterate over it for blocks `(X, y, weight, first, lines, places, ids)`.

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
    for name, value, least in (("rows_at_once", rows_at_once, 1), ("skip", skip, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name}={value!r} must be an integer >= {least}.")
    form = format_of(source, format)
    _check_table_options(form, weight, columns, declare)
    _check_text_options(form, decimal, encoding)
    known = columns if isinstance(columns, Mapping) else {}
    request = Request(target, weight, {**known, **(declare or {})}, not isinstance(columns, Mapping))
    text = Text(decimal, encoding, bits, columns if isinstance(columns, int) else None)
    return Reading(source, form, request, text, rows_at_once, skip, (on_bad, on_bad_line))


def _check_table_options(format: str, weight: str | None, columns: Any, declare: Any) -> None:
    """Refuse options that do not fit the format."""
    is_sparse = format.startswith(("svmlight", "vw"))
    if weight is not None and is_sparse:
        raise ValueError(f"weight={weight!r}: {format} text has no weight column; remove weight=.")
    if columns is not None and (format == "vw" or isinstance(columns, Mapping) == is_sparse):
        fitting = {"vw": "remove it and use bits"}.get(
            format, "pass the number of features" if is_sparse else "pass a dictionary of names and kinds"
        )
        raise ValueError(f"columns={columns!r} does not fit {format}: {fitting}.")
    if declare and is_sparse:
        raise ValueError(f"declare={declare!r}: {format} text has no named columns; remove declare=.")


def _check_text_options(format: str, decimal: str | None, encoding: str | None) -> None:
    if decimal is not None and (decimal not in (".", ",") or format not in ("csv", "tsv")):
        raise ValueError(f"decimal={decimal!r}: choose '.' or ',', for CSV only.")
    if encoding is not None:
        if format in ("parquet", "arrow"):
            raise ValueError(f"encoding={encoding!r}: {format} files are not text; remove encoding=.")
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError(f"encoding={encoding!r} is unknown: choose for example 'latin-1' or 'utf-16'.") from None


class Text(NamedTuple):
    """How text is read."""

    decimal: str | None
    encoding: str | None
    bits: int  # of VW
    columns: int | None  # of svmlight


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
        format: str,
        request: Request,
        text: Text,
        rows_at_once: int,
        skip: int,
        bad: tuple[str, Callable[[BadLine], None] | None],
    ) -> None:
        self.source = source
        self.format = format
        self.columns: Mapping[str, str] | int | None = None
        self._sparse = format.startswith(("svmlight", "vw"))
        self._request, self._text = request, text
        self._rows, self._skip = rows_at_once, skip
        self._on_bad, self._tell = bad
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

        yield from table_blocks(table, self._request, self._rows, self._ledger, settle)

    def _open_table(self) -> Table:
        from regretless.streams import arrow_table, csv_table, json_table

        if self.format == "parquet":
            return arrow_table.open_parquet(self.source, self._rows, self.witness)
        if self.format == "arrow":
            return arrow_table.open_arrow(self.source, self.witness)
        lines = open_lines(self.source, self.witness, self._text.encoding)
        if self.format == "jsonl":
            dropped = {name for name, kind in self._request.declared.items() if kind == "drop"}
            return json_table.JsonTable(lines, dropped)
        return csv_table.CsvTable(lines, "\t" if self.format == "tsv" else None, self._text.decimal)

    def _sparse_blocks(self) -> Iterator[Block]:
        from regretless.streams import svmlight, vw

        labelled = self._request.target is not None
        how: SparseFormat
        if self.format == "vw":
            how = words = vw.VowpalWabbit(self._text.bits)
            self.columns = words.columns
        else:
            base = int(self.format[-1]) if self.format[-1].isdigit() else None
            how = numbered = svmlight.Svmlight(self._text.columns, base, labelled)
        lines = open_lines(self.source, self.witness, self._text.encoding)
        for block in sparse_blocks(how, lines, labelled, self._rows, self._ledger):
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
            ids = None if block.ids is None else block.ids.slice(cut)
            block = Block(X, y, weight, block.first + cut, block.lines, block.places[cut:], ids)
        yield block
