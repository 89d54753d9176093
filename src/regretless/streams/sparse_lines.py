"""Lines of sparse features to blocks: what svmlight and VW text share."""

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
    """Lines that were understood."""

    X: Any  # CSR
    y: Array  # NaN where a label is missing
    weight: Array | None
    why: dict[int, str]  # rows that were not: zeros in X


LARGEST_LABEL = 2**53  # of whole labels: beyond it, numbers differ that are written apart


class SparseFormat(ABC):
    """How a line is read."""

    comment: bytes | None = None  # what begins a comment

    @abstractmethod
    def parse(self, lines: list[bytes]) -> Parsed:
        """Rows of as many columns as there happen to be."""

    @abstractmethod
    def settle(self, X: Any) -> None:
        """Learn from the first rows what all others are held to."""

    @abstractmethod
    def fit(self, X: Any, why: dict[int, str]) -> Any:
        """The same rows with the settled number of columns; reasons are added for those that do not fit."""


class _Lines(NamedTuple):
    rows: list[bytes]
    places: list[int]
    consumed: int
    sampled: bool  # whether the sample ends with them or before


def sparse_blocks(
    how: SparseFormat, lines: Iterator[bytes], labelled: bool, rows: int, ledger: Ledger
) -> Iterator[Block]:
    """The blocks of a sparse file."""
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
            why.setdefault(i, f"its label is {parsed.y[i]}, and the first labels are whole numbers.")
        for i in sorted(why):
            ledger.add(BadLine(some.places[i], plain(some.rows[i]), why[i]))
        good = np.setdiff1d(np.arange(len(some.rows)), list(why))
        if len(good):
            y = parsed.y[good].astype(np.int64 if whole else np.float64) if labelled else None
            weight = None if parsed.weight is None else parsed.weight[good]
            yield Block(X[good] if why else X, y, weight, first, some.consumed)
            first += len(good)


def rows_not_finite(X: Any) -> list[int]:
    """The rows of a CSR matrix with a value that is not a finite number."""
    entries = np.flatnonzero(~np.isfinite(X.data))
    found: list[int] = np.unique(np.searchsorted(X.indptr, entries, side="right") - 1).tolist()
    return found


def _are_whole(y: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found: np.ndarray[Any, np.dtype[np.bool_]] = (y == np.rint(y)) & (np.abs(y) <= LARGEST_LABEL)
    return found


def _chunks(given: Iterator[bytes], rows: int, comment: bytes | None) -> Iterator[_Lines]:
    """Lines with something on them, and their numbers."""
    lines = Lines(given)
    while some := lines.some(rows):
        before = lines.read - len(some)
        kept = [
            (line, before + i)
            for i, line in enumerate(some, start=1)
            if (line if comment is None else line.split(comment, 1)[0]).strip()
        ]
        yield _Lines([line for line, _ in kept], [place for _, place in kept], lines.read, lines.sampled)
