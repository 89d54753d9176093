"""Texts as arrays of characters, and an index that numbers them in compiled code.

A Python dictionary would take a lookup per row, each with a search for an object in memory. Here all texts of a block
become one array of characters, by one join or without a copy. Texts are found by a hash of their characters, and told
apart by the characters themselves.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regretless.core.files.mapped import in_memory
from regretless.core.kernels.jit import kernel, merged_kernel
from regretless.core.kernels.prefetch import prefetch
from regretless.learners.logistic.hashing import EMPTY, HALF, Buckets, Ids, scramble

Characters = NDArray[np.uint32]
Parts = tuple[Characters, Ids, Ids]  # of `Texts`: characters, starts and ends

CHARACTER = np.dtype("<u4")
LARGEST = 0x10FFFF  # of a character
TOGETHER = 64  # texts whose places in memory are fetched at once
NONE = -1
FACTORS = np.random.default_rng(0).integers(0, HALF, 128) | 1  # of the hash, one per character


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
        return self.chars[self.starts[i] : self.ends[i]].tobytes().decode("utf-32-le", "surrogatepass")

    @classmethod
    def of(cls, texts: list[str]) -> Self:
        """Of Python's text. Raises TypeError for anything else."""
        chars, starts, ends = _characters("\0".join(texts)), *np.empty((2, len(texts)), dtype=np.int64)
        if not texts or split(chars, starts, ends):
            return cls(chars, starts, ends)
        return cls._within(_characters("".join(texts)), np.cumsum([0, *map(len, texts)]))

    @classmethod
    def _within(cls, chars: Characters, bounds: Ids) -> Self:
        """Of the characters of all texts, and where each begins and ends."""
        nuls = np.flatnonzero(chars == 0)[:1]
        nul = int(np.searchsorted(bounds, nuls[0], side="right")) - 1 if nuls.size else NONE
        return cls(chars, bounds[:-1], bounds[1:], nul)

    @classmethod
    def of_lines(cls, lines: NDArray[np.uint32]) -> Self:
        """Of lines of characters with zeros after the end. Raises ValueError if there are other numbers."""
        n, width = lines.shape
        chars, starts = lines.reshape(-1), width * np.arange(n)
        chars.flags.writeable = False  # as those of `_characters`: kernels are compiled for one of both
        if chars.size and chars.max() > LARGEST:
            raise ValueError(f"keys are not characters: {chars.max():#x} is none.")
        ends = starts + width
        return cls(chars, starts, ends, trim(chars, starts, ends))

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
        return cls._within(_characters(text), bounds)


def _characters(text: str) -> Characters:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=CHARACTER)


@kernel
def split(chars: Characters, starts: Ids, ends: Ids) -> bool:
    """Write where texts that NULs separate start and end; False if there are more NULs than that."""
    n, start = 0, 0
    for i in range(chars.size):
        if chars[i] == 0:
            if n == ends.size - 1:
                return False
            starts[n], ends[n] = start, i
            n, start = n + 1, i + 1
    starts[n], ends[n] = start, chars.size
    return True


@kernel
def trim(chars: Characters, starts: Ids, ends: Ids) -> int:
    """Move the ends of texts before their last zeros. Returns the first text with a zero inside, or -1."""
    nul = -1
    for i in range(ends.size):
        end = ends[i]
        while end > starts[i] and chars[end - 1] == 0:
            end -= 1
        ends[i] = end
        for c in chars[starts[i] : end]:
            if c == 0 and nul < 0:
                nul = i
    return nul


@merged_kernel
def hash_of(text: Characters) -> int:
    """A number below 2^62 from the first characters, as many as there are factors."""
    total: Any = 0
    for i in range(min(text.size, FACTORS.size)):
        total += np.int64(text[i]) * FACTORS[i]  # no product waits for another; their sum is below 2^59
    return scramble(total)


@kernel
def is_held(lines: Characters, number: int, chars: Characters, first: int, last: int) -> bool:
    """Whether a line holds exactly these characters."""
    size = last - first
    if size > lines.shape[1] or (size < lines.shape[1] and lines[number, size] != 0):
        return False
    if size > 0 and chars[last - 1] == 0:  # NUL, which ends a line
        return False
    for j in range(size):
        if chars[first + j] != lines[number, j]:
            return False
    return True


@kernel
def fill(buckets: Buckets, lines: Characters) -> None:
    """Enter different texts into empty buckets. (Zeros after the end do not change a hash.)"""
    for number in range(lines.shape[0]):
        at = hash_of(lines[number]) & (buckets.size - 1)
        while buckets[at] != EMPTY:
            at = (at + 1) & (buckets.size - 1)
        buckets[at] = number


@kernel
def number_texts(
    buckets: Buckets, lines: Characters, n: int, texts: Parts, numbers: Ids, first: int, adds: bool
) -> tuple[int, int]:
    """Write the numbers of texts, from text `first` on; n texts have one. Returns n and the texts done.

    New texts are added, or get -1. It stops early where there is no room for one, and may be called again.
    """
    mask, (chars, starts, ends) = buckets.size - 1, texts
    for begin in range(first, ends.size, TOGETHER):
        stop = min(begin + TOGETHER, ends.size)
        for i in range(begin, stop):
            numbers[i] = hash_of(chars[starts[i] : ends[i]]) & mask
            prefetch(buckets, numbers[i])
        for i in range(begin, stop):
            prefetch(lines, max(buckets[numbers[i]], 0))
        for i in range(begin, stop):
            at = numbers[i]
            while buckets[at] != EMPTY and not is_held(lines, buckets[at], chars, starts[i], ends[i]):
                at = (at + 1) & mask
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
        fill(buckets, self.lines[: self.n])
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
        given = texts.chars, texts.starts, texts.ends
        while True:
            n, done = number_texts(self.buckets, self.lines, self.n, given, numbers, done, adds)
            if adds:  # not otherwise: several threads may look texts up
                self.n = n
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
