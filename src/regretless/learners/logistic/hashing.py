"""Columns by hash: an open-addressing index from columns to slots, ids of names and texts, and ids of pairs of columns.

All ids are integers from 0 to 2^62 - 1, mixed with products of less than 63 bits: nothing overflows, so compiled code
and plain Python agree.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.core.files.mapped import in_memory
from regretless.core.kernels.jit import kernel
from regretless.core.kernels.prefetch import prefetch
from regretless.core.types import Array

Ids = NDArray[np.int64]
Buckets = NDArray[np.int32]

HALF = (1 << 31) - 1  # of an id
LARGEST_ID = (1 << 62) - 1
PAIRS = 1 << 61  # the first id of a pair; ids of columns are below
EMPTY = -1  # a bucket without a slot; a column without a slot
FIRST, SECOND, THIRD = 0x5BD1E995, 0x2C9277B5, 0x1B873593  # odd factors of 31 bits
SHIFT = 23  # products are cut in their middle, where all bits of both factors matter


@kernel
def scramble(column: int) -> int:
    """A permutation of the ids whose low bits depend on all bits: three rounds of a Feistel network."""
    high, low = (column >> 31) & HALF, column & HALF
    high ^= ((low * FIRST) >> SHIFT) & HALF
    low ^= ((high * SECOND) >> SHIFT) & HALF
    high ^= ((low * THIRD) >> SHIFT) & HALF
    return (high << 31) | low


@kernel
def pair_id(first: int, second: int, mask: int) -> int:
    """The id of a pair of columns, one of mask + 1, whichever of the two comes first."""
    low, high = min(first, second), max(first, second)
    return PAIRS + (scramble((scramble(low) + high) & LARGEST_ID) & mask)


@kernel
def bucket_of(buckets: Buckets, columns: Ids, column: int) -> int:
    """The bucket that holds the slot of a column, or the empty one where it belongs."""
    return bucket_from(scramble(column) & (buckets.size - 1), buckets, columns, column)


@kernel
def bucket_from(at: int, buckets: Buckets, columns: Ids, column: int) -> int:
    """`bucket_of`, where the search begins at bucket `at`."""
    while buckets[at] != EMPTY and columns[buckets[at]] != column:
        at = (at + 1) & (buckets.size - 1)
    return at


@kernel
def fill(buckets: Buckets, columns: Ids) -> None:
    """Enter the slots of `columns` into empty buckets."""
    for slot in range(columns.size):
        buckets[bucket_of(buckets, columns, columns[slot])] = slot


@kernel
def prepare(buckets: Buckets, columns: Ids, given: Ids, slots: Ids, first: int, last: int) -> None:
    """Fetch what the lookups of some entries need, and write where they begin: then they take 0.6 of the time."""
    for i in range(first, last):
        slots[i] = scramble(given[i]) & (buckets.size - 1)
        prefetch(buckets, slots[i])
    for i in range(first, last):
        prefetch(columns, max(buckets[slots[i]], 0))


@kernel
def slots_of(buckets: Buckets, columns: Ids, indptr: Ids, given: Ids) -> Ids:
    """The slots of the entries `given`; -1 where a column has none."""
    slots = np.empty(given.size, np.int64)
    for t in range(indptr.size - 1):
        prepare(buckets, columns, given, slots, indptr[t], indptr[t + 1])
        for i in range(indptr[t], indptr[t + 1]):
            slots[i] = buckets[bucket_from(slots[i], buckets, columns, given[i])]
    return slots


@kernel
def place(
    buckets: Buckets, columns: Ids, n: int, indptr: Ids, given: Ids, weight: Array, slots: Ids, first: int
) -> tuple[int, int]:
    """Write the slots of the entries `given`, from row `first` on; n columns have one. Returns n and the rows done.

    Rows of weight > 0 add their new columns. It stops early where there is no room for one, and may be called again.
    """
    for t in range(first, indptr.size - 1):
        prepare(buckets, columns, given, slots, indptr[t], indptr[t + 1])
        for i in range(indptr[t], indptr[t + 1]):
            at = bucket_from(slots[i], buckets, columns, given[i])
            if buckets[at] == EMPTY and weight[t] > 0.0:
                if n == columns.size or 2 * n >= buckets.size:
                    return n, t
                columns[n] = given[i]
                buckets[at] = n
                n += 1
            slots[i] = buckets[at]
    return n, indptr.size - 1


class Index:
    """The slots of columns, in the order of appearance. All of it follows from `columns`, which files hold."""

    def __init__(self, columns: Ids) -> None:
        self.n = columns.size
        self.columns = columns.copy()  # with room for more
        self._fill()

    def _fill(self) -> None:
        buckets = np.full(1 << (4 * max(self.n, 64)).bit_length(), EMPTY, dtype=np.int32)
        fill(buckets, self.columns[: self.n])
        self.buckets = buckets

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: in_memory(value) for name, value in state.items()})

    def __contains__(self, column: int) -> bool:
        return bool(self.buckets[bucket_of(self.buckets, self.columns, column)] != EMPTY)

    def find(self, indptr: Ids, given: Ids) -> Ids:
        """The slots of some rows' columns; -1 where a column has none."""
        return slots_of(self.buckets, self.columns, indptr, given)

    def add(self, indptr: Ids, given: Ids, weight: Array) -> Ids:
        """The slots of some rows' columns, after adding those of the rows of weight > 0."""
        slots, t = np.empty(given.size, dtype=np.int64), 0
        while True:
            self.n, t = place(self.buckets, self.columns, self.n, indptr, given, weight, slots, t)
            if t == indptr.size - 1:
                return slots
            if self.n == self.columns.size:
                more = np.empty(max(256, self.n), dtype=np.int64)
                self.columns = np.concatenate([self.columns, more])
            if 2 * self.n >= self.buckets.size:
                self._fill()

    def forget(self, n: int) -> None:
        """Keep the first n columns only."""
        self.n = n
        self._fill()


@lru_cache(maxsize=4096, typed=True)  # a name never seen is asked for again when its row is learned
def id_of(*parts: Any) -> int:
    """The id of a name, or of a name and a text: 61 bits of a digest. Equal values of different types differ."""
    digest = blake2b(digest_size=8)
    for part in parts:
        text = f"{type(part).__name__}:{part}".encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    return int.from_bytes(digest.digest(), "little") & (PAIRS - 1)
