"""Lines of sparse features to blocks: the part that svmlight and VW text share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from regretless.core.types import Array
from regretless.streams.ledger import Ledger
from regretless.streams.sources import Lines, plain
from regretless.streams.types import BadLine, Block


class Parsed(NamedTuple):
    """Parsed lines."""

    X: Any  # CSR
    y: Array  # NaN if the label is missing
    weight: Array | None
    why: dict[int, str]  # bad rows and the reasons; they are zero in X


LARGEST_LABEL = 2**53  # for integer labels: above it, different integers may be equal as floats


class SparseFormat(ABC):
    """A format of sparse lines."""

    comment: bytes | None = None  # the start of a comment

    @abstractmethod
    def parse(self, lines: list[bytes]) -> Parsed:
        """Parse lines into rows with as many columns as they happen to need."""

    @abstractmethod
    def settle(self, X: Any) -> None:
        """Fix the number of columns from the first rows."""

    @abstractmethod
    def fit(self, X: Any, why: dict[int, str]) -> Any:
        """The same rows with the fixed number of columns; adds reasons for rows that do not fit."""


class _Lines(NamedTuple):
    rows: list[bytes]
    places: list[int]
    consumed: int
    sampled: bool  # whether the sample ends with these rows or earlier


def sparse_blocks(
    how: SparseFormat, lines: Iterator[bytes], labelled: bool, rows: int, ledger: Ledger
) -> Iterator[Block]:
    """Iterate over the blocks of a sparse file."""
    chunks = _chunks(lines, rows, how.comment)
    sample: list[tuple[_Lines, Parsed]] = []
    while (not sample or not sample[-1][0].sampled) and (chunk := next(chunks, None)) is not None:
        sample.append((chunk, how.parse(chunk.rows)))
    for _, parsed in sample:
        how.settle(parsed.X)
    known = [parsed.y[np.isfinite(parsed.y)] for _, parsed in sample]
    whole = bool(known) and all(_are_whole(y).all() for y in known)
    first = 0
    for some, parsed in chain(sample, ((chunk, how.parse(chunk.rows)) for chunk in chunks)):
        why = dict(parsed.why)
        X = how.fit(parsed.X, why)
        for i in np.flatnonzero(~np.isfinite(parsed.y)).tolist() if labelled else ():
            why.setdefault(i, "it has no label." if np.isnan(parsed.y[i]) else "its label is not finite.")
        for i in np.flatnonzero(~_are_whole(parsed.y)).tolist() if labelled and whole else ():
            why.setdefault(i, f"its label is {parsed.y[i]}, but the first labels are integers.")
        for i in sorted(why):
            ledger.add(BadLine(some.places[i], plain(some.rows[i]), why[i]))
        good = np.setdiff1d(np.arange(len(some.rows)), list(why))
        if len(good):
            y = parsed.y[good].astype(np.int64 if whole else np.float64) if labelled else None
            weight = None if parsed.weight is None else parsed.weight[good]
            yield Block(X[good] if why else X, y, weight, first, some.consumed, np.array(some.places)[good], None)
            first += len(good)


def rows_not_finite(X: Any) -> list[int]:
    """The rows of a CSR matrix that have a value that is not finite."""
    entries = np.flatnonzero(~np.isfinite(X.data))
    found: list[int] = np.unique(np.searchsorted(X.indptr, entries, side="right") - 1).tolist()
    return found


def _are_whole(y: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found: np.ndarray[Any, np.dtype[np.bool_]] = (y == np.rint(y)) & (np.abs(y) <= LARGEST_LABEL)
    return found


def _chunks(given: Iterator[bytes], rows: int, comment: bytes | None) -> Iterator[_Lines]:
    """The lines that are not empty, and their numbers."""
    lines = Lines(given)
    while some := lines.some(rows):
        before = lines.read - len(some)
        kept = [
            (line, before + i)
            for i, line in enumerate(some, start=1)
            if (line if comment is None else line.split(comment, 1)[0]).strip()
        ]
        yield _Lines([line for line, _ in kept], [place for _, place in kept], lines.read, lines.sampled)
