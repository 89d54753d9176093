"""Rows in compressed form (only the stored entries), for first-order learners, whose work is per entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.kernels.jit import kernel, summing_kernel
from regretless.core.rows.validate import rows as check_dense_rows
from regretless.core.rows.validate import writable
from regretless.core.types import Array


class Entries(NamedTuple):
    """The three arrays of the compressed form: row t has the entries `indptr[t]` to `indptr[t + 1]`."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]  # unsigned, so that compiled code need not check the sign
    data: Array


@dataclass(frozen=True, slots=True)
class SparseRows:
    """A block of rows in compressed form. A slice of it is a view."""

    entries: Entries
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.entries.indptr.size - 1, self.n_columns

    def __getitem__(self, rows: slice) -> SparseRows:
        start, stop, _ = rows.indices(self.shape[0])
        return SparseRows(self.entries._replace(indptr=self.entries.indptr[start : stop + 1]), self.n_columns)

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """The rows of a SciPy CSR matrix, with columns in order and without duplicates.

        Sums then have the same order as for dense rows, and forecasts are the same to the bit. Compiled code trusts the
        indices and SciPy does not check them, so a damaged matrix is refused here.
        """
        entries = _entries(X)
        t = first_damaged(*entries, X.shape[1])
        if t < X.shape[0]:
            row = X.indices[X.indptr[t] : X.indptr[t + 1]]
            beyond = row[(row < 0) | (row >= X.shape[1])]
            what = f"column {beyond[0]} among {X.shape[1]} columns" if beyond.size else "entries are missing"
            raise BadRow(f"row {t}: {what}. The matrix is damaged: rebuild it. Nothing was learned from this call.")
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
            entries = _entries(X)
        return cls(entries, X.shape[1])

    def to_scipy(self) -> sparse.csr_matrix:
        """The same rows as a SciPy matrix."""
        indptr, indices, data = self.entries
        some = slice(indptr[0], indptr[-1])
        return sparse.csr_matrix((data[some], indices[some].view(np.int32), indptr - indptr[0]), shape=self.shape)

    def check(self, weight: Array, bound: float, reach: float, names: Any) -> None:
        """Refuse what `validate.rows` refuses, with the same messages."""
        within = min(bound, reach / max(1.0, float(weight.max())) ** 0.5)
        indptr, indices, data = self.entries
        t = first_beyond(indptr, data, within)
        while t < self.shape[0]:  # too large for the heaviest weight, but perhaps not for its own
            row = np.zeros((1, self.n_columns))
            some = slice(indptr[t], indptr[t + 1])
            row[0, indices[some]] = data[some]
            check_dense_rows(row, weight[t : t + 1] if weight.size > 1 else weight, bound, reach, names, first=t)
            t += 1 + first_beyond(indptr[t + 1 :], data, within)


def _entries(X: Any) -> Entries:
    """The arrays of a SciPy CSR matrix, in the types of the kernels."""
    indices = X.indices
    if indices.dtype != np.int32:  # a wide index must not wrap around
        indices = np.clip(indices, -1, X.shape[1]).astype(np.int32)
    indptr = writable(X.indptr.astype(np.int64, copy=False))
    return Entries(indptr, writable(indices).view(np.uint32), writable(X.data))


def parts(X: Array | SparseRows) -> Iterator[tuple[slice, Entries]]:
    """The compressed form of a block; dense blocks a few rows at a time, with shared indices."""
    if isinstance(X, SparseRows):
        yield slice(None), X.entries
        return
    n, d = X.shape
    indptr, indices = _grid(d)
    at_a_time = indptr.size - 1
    for i in range(0, n, at_a_time):
        rows = slice(i, min(i + at_a_time, n))
        yield rows, Entries(indptr[: rows.stop - i + 1], indices, X[rows].reshape(-1))


def single(X: Array) -> Entries:
    """The compressed form of a block of one dense row: the same as `parts`, in a third of the time."""
    return Entries(*grid_of_one(X.shape[1]), X.reshape(-1))


@lru_cache(maxsize=8)
def grid_of_one(d: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """`indptr` and `indices` of one full row of d entries."""
    indptr, indices = _grid(d)
    return indptr[:2], indices


@lru_cache(maxsize=8)
def _grid(d: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """`indptr` and `indices` of full rows with d entries, about a quarter of a million entries in total."""
    n = max(1, 2**18 // max(d, 1))
    return d * np.arange(n + 1), np.tile(np.arange(d, dtype=np.uint32), n)


@kernel
def first_damaged(indptr: NDArray[np.int64], indices: NDArray[np.uint32], data: Array, n_columns: int) -> int:
    """The first row that points to entries or columns that do not exist, or the number of rows."""
    stored = min(indices.size, data.size)
    for t in range(indptr.size - 1):
        if indptr[t] < 0 or indptr[t + 1] < indptr[t] or indptr[t + 1] > stored:
            return t
        beyond = np.uint32(0)
        for i in range(np.uint64(indptr[t]), np.uint64(indptr[t + 1])):  # the largest column, in vector instructions
            beyond = max(beyond, indices[i])
        if beyond >= n_columns:
            return t
    return indptr.size - 1


@summing_kernel
def first_beyond(indptr: NDArray[np.int64], data: Array, bound: float) -> int:
    """The first row whose norm exceeds the bound (or is NaN), or the number of rows."""
    for t in range(indptr.size - 1):
        square = 0.0
        for i in range(np.uint64(indptr[t]), np.uint64(indptr[t + 1])):
            square += data[i] * data[i]
        if not square <= bound * bound:
            return t
    return indptr.size - 1


@kernel
def largest_entry(data: Array) -> float:
    """The largest |entry|."""
    largest = 0.0
    for i in range(data.size):
        if abs(data[i]) > largest:
            largest = abs(data[i])
    return largest
