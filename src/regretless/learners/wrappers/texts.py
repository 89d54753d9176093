"""Texts as arrays of characters, and an index that numbers them in compiled code.

A Python dictionary would take a lookup per row, each with a search for an object in memory. Here all texts of a block
become one array of characters, by one join or without a copy. Texts are found by a hash of their characters, and told
apart by the characters themselves.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regretless.core.jit import kernel
from regretless.core.mapped import in_memory
from regretless.core.prefetch import prefetch
from regretless.learners.logistic.hashing import EMPTY, FIRST, HALF, Buckets, Ids

Characters = NDArray[np.uint32]

CHARACTER = np.dtype("<u4")
LARGEST = 0x10FFFF  # of a character
TOGETHER = 64  # texts whose places in memory are fetched at once
NONE = -1


class Texts:
    """Texts one after another: text i has the characters `chars[starts[i]:ends[i]]`.

    `nul` is the first text that contains the character NUL, or -1: an index holds no such text.
    """

    __slots__ = ("chars", "ends", "nul", "starts")

    def __init__(self, chars: Characters, starts: Ids, ends: Ids, nul: int = NONE) -> None:
        self.chars, self.starts, self.ends, self.nul = chars, starts, ends, nul

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, i: int) -> str:
        chars = self.chars[self.starts[i] : self.ends[i]]
        return chars.astype(CHARACTER).tobytes().decode("utf-32-le", "surrogatepass")

    @classmethod
    def of(cls, texts: list[str]) -> Self:
        """Of Python's text. Raises TypeError for anything else."""
        chars, starts, ends = _characters("\0".join(texts)), *np.empty((2, len(texts)), dtype=np.int64)
        if not texts or split(chars, starts, ends):
            return cls(chars, starts, ends)
        bounds = np.cumsum([0, *map(len, texts)])
        nul = next(i for i, text in enumerate(texts) if "\0" in text)
        return cls(_characters("".join(texts)), bounds[:-1], bounds[1:], nul)

    @classmethod
    def of_lines(cls, lines: NDArray[np.uint32]) -> Self | None:
        """Of lines of characters with zeros after the end; None if there are other numbers than characters."""
        chars, (n, width) = read_only(lines.reshape(-1)), lines.shape
        starts = width * np.arange(n)
        ends = np.empty(n, dtype=np.int64)
        nul, valid = trim(chars, starts, width, ends)
        return cls(chars, starts, ends, nul) if valid else None

    @classmethod
    def of_arrow(cls, column: Any) -> Self:
        """Of a PyArrow array of text without missing values."""
        array = column.cast("large_string")
        array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
        _, offsets, data = array.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        letters = np.frombuffer(data or b"", dtype=np.uint8)[bounds[0] : bounds[-1]]
        bounds = bounds - bounds[0]
        text = letters.tobytes().decode("utf-8")
        if len(text) < len(letters):  # some characters have several bytes, and all but the first are 10xxxxxx
            bounds = np.append(0, np.cumsum((letters & 0xC0) != 0x80))[bounds]
        chars = _characters(text)
        nuls = np.flatnonzero(chars == 0)[:1]
        nul = int(np.searchsorted(bounds, nuls[0], side="right")) - 1 if len(nuls) else NONE
        return cls(chars, bounds[:-1], bounds[1:], nul)


def _characters(text: str) -> Characters:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=CHARACTER)


def read_only(array: Characters) -> Characters:
    """The same array, read-only, as that of `_characters` is: kernels are compiled for one of both."""
    array.flags.writeable = False
    return array


@kernel
def split(chars: Characters, starts: Ids, ends: Ids) -> bool:
    """Write where texts that NULs separate start and end; False if there are more NULs than that."""
    n = 0
    starts[0] = 0
    for i in range(chars.size):
        if chars[i] == 0:
            if n == ends.size - 1:
                return False
            ends[n] = i
            n += 1
            starts[n] = i + 1
    ends[n] = chars.size
    return True


@kernel
def trim(chars: Characters, starts: Ids, width: int, ends: Ids) -> tuple[int, bool]:
    """Write where texts of up to `width` characters end, that have zeros after the end.

    Returns the first text with a NUL inside, or -1, and whether all are characters.
    """
    nul = -1
    for i in range(starts.size):
        end = starts[i] + width
        while end > starts[i] and chars[end - 1] == 0:
            end -= 1
        for j in range(starts[i], end):
            if chars[j] > LARGEST:
                return nul, False
            if chars[j] == 0 and nul < 0:
                nul = i
        ends[i] = end
    return nul, True


@kernel
def hash_of(chars: Characters, first: int, last: int) -> int:
    """A number below 2^31 that depends on all characters; products have less than 63 bits."""
    found: Any = 0
    for i in range(first, last):
        product = (found ^ np.int64(chars[i])) * FIRST
        found = (product ^ (product >> 31)) & HALF
    return found


@kernel
def is_held(lines: Characters, number: int, chars: Characters, first: int, last: int) -> bool:
    """Whether a line holds exactly these characters."""
    size = last - first
    if size > lines.shape[1] or (size < lines.shape[1] and lines[number, size] != 0):
        return False
    for j in range(size):
        if chars[first + j] != lines[number, j] or chars[first + j] == 0:
            return False
    return True


@kernel
def fill(buckets: Buckets, lines: Characters, n: int) -> None:
    """Enter n different texts into empty buckets."""
    for number in range(n):
        size = lines.shape[1]
        while size > 0 and lines[number, size - 1] == 0:
            size -= 1
        at = hash_of(lines[number], 0, size) & (buckets.size - 1)
        while buckets[at] != EMPTY:
            at = (at + 1) & (buckets.size - 1)
        buckets[at] = number


@kernel
def number_texts(
    buckets: Buckets,
    lines: Characters,
    n: int,
    chars: Characters,
    starts: Ids,
    ends: Ids,
    numbers: Ids,
    first: int,
    adds: bool,
) -> tuple[int, int]:
    """Write the numbers of texts, from text `first` on; n texts have one. Returns n and the texts done.

    New texts are added, or get -1. It stops early where there is no room for one, and may be called again.
    """
    for begin in range(first, ends.size, TOGETHER):
        stop = min(begin + TOGETHER, ends.size)
        for i in range(begin, stop):
            numbers[i] = hash_of(chars, starts[i], ends[i]) & (buckets.size - 1)
            prefetch(buckets, numbers[i])
        for i in range(begin, stop):
            prefetch(lines, max(buckets[numbers[i]], 0))
        for i in range(begin, stop):
            at = numbers[i]
            while buckets[at] != EMPTY and not is_held(lines, buckets[at], chars, starts[i], ends[i]):
                at = (at + 1) & (buckets.size - 1)
            if buckets[at] == EMPTY and adds:
                size = ends[i] - starts[i]
                if n == lines.shape[0] or size > lines.shape[1] or 2 * n >= buckets.size:
                    return n, i
                for j in range(lines.shape[1]):
                    lines[n, j] = chars[starts[i] + j] if j < size else 0
                buckets[at] = n
                n += 1
            numbers[i] = buckets[at]
    return n, ends.size


class TextIndex:
    """The numbers of different texts, in the order in which they were added."""

    def __init__(self) -> None:
        self.n = 0
        self.lines = np.zeros((0, 1), dtype=CHARACTER)  # with room for more
        self._fill()

    def _fill(self) -> None:
        buckets = np.full(1 << (4 * max(self.n, 64)).bit_length(), EMPTY, dtype=np.int32)
        fill(buckets, self.lines, self.n)
        self.buckets = buckets

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: in_memory(value) for name, value in state.items()})

    def find(self, texts: Texts) -> Ids:
        """The number of each text, -1 if it is new."""
        return self._numbers(texts, adds=False)

    def add(self, texts: Texts) -> Ids:
        """The number of each text; new ones are added in the order of appearance."""
        return self._numbers(texts, adds=True)

    def _numbers(self, texts: Texts, adds: bool) -> Ids:
        numbers, done = np.empty(len(texts), dtype=np.int64), 0
        while True:
            self.n, done = number_texts(
                self.buckets, self.lines, self.n, texts.chars, texts.starts, texts.ends, numbers, done, adds
            )
            if done == len(texts):
                return numbers
            self._make_room(int(texts.ends[done] - texts.starts[done]))

    def _make_room(self, size: int) -> None:
        """Make room for one more text of this size."""
        room, width = self.lines.shape
        if self.n == room or size > width:
            lines = np.zeros((max(256, 2 * self.n), max(width, size)), dtype=CHARACTER)
            lines[: self.n, :width] = self.lines[: self.n]
            self.lines = lines
        if 2 * self.n >= self.buckets.size:
            self._fill()

    def forget(self, n: int) -> None:
        """Keep the first n texts only."""
        self.n = n
        self._fill()
