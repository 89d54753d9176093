"""Keys of rows: text or integers, one kind for all, each with a number in the order of its first row."""

from __future__ import annotations

from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.core.errors import BadRow
from regretless.core.inputs import UNLEARNED, is_missing
from regretless.learners.logistic.hashing import Index

Key = int | str
Keys = list[str] | NDArray[np.int64]  # text, or integers

LONGEST = 128  # characters of a key: all keys are stored with the length of the longest
TEXT, WHOLE = "text", "integers"
OF_KIND: dict[type, str] = {str: TEXT, int: WHOLE}
CHARACTER = np.dtype(np.uint32)
TOGETHER = 64  # keys whose places in memory are fetched at once


def as_keys(keys: Any, n_rows: int | None = None) -> tuple[Keys, str]:
    """The keys, and their kind. Refuses missing keys, other types, and mixtures of both kinds."""
    if isinstance(keys, str | bytes) or not hasattr(keys, "__len__"):
        raise ValueError(f"keys={keys!r}: pass a list or a column of keys, one per row.")
    given = _read(keys)
    if n_rows is not None and len(given) != n_rows:
        raise ValueError(f"there are {len(given)} keys and {n_rows} rows: pass one key per row. {UNLEARNED}")
    if isinstance(given, np.ndarray):
        return given.astype(np.int64), WHOLE
    kinds = {*map(type, given)}
    if not kinds <= OF_KIND.keys():
        given = [key.item() if isinstance(key, np.integer | np.str_) else key for key in given]
        kinds = {*map(type, given)}
    if len(kinds) > 1 or not kinds <= OF_KIND.keys():
        raise _unfit(given)
    if kinds == {str}:
        return given, TEXT
    if given and not -(2**63) <= min(given) <= max(given) < 2**63:
        i = next(i for i, key in enumerate(given) if not -(2**63) <= key < 2**63)
        raise BadRow(f"row {i}: key {given[i]} does not fit in 64 bits: pass the keys as text. {UNLEARNED}")
    return np.array(given, dtype=np.int64), WHOLE


def _read(keys: Any) -> list[Any] | NDArray[Any]:
    """The keys as Python objects, or as an array of integers."""
    if isinstance(keys, list | tuple):
        return list(keys)
    if hasattr(keys, "to_pylist"):  # PyArrow
        return list(keys.to_pylist())
    array = np.asarray(keys)
    if array.ndim != 1:
        raise ValueError(f"keys have the shape {array.shape}: pass one key per row. {UNLEARNED}")
    return array if array.dtype.kind == "i" else array.tolist()


def _unfit(found: list[Any]) -> BadRow:
    """The error for the first key that is missing, of another type, or not of the kind of the first."""
    first = next((OF_KIND[type(key)] for key in found if type(key) in OF_KIND), None)
    for i, key in enumerate(found):
        if is_missing(key):
            return BadRow(f"row {i}: the key is missing ({key!r}). Drop the row, or give it a key. {UNLEARNED}")
        if type(key) not in OF_KIND:
            return BadRow(
                f"row {i}: key {key!r} is a {type(key).__name__}. Keys are text or integers: convert the column first. "
                f"{UNLEARNED}"
            )
        if OF_KIND[type(key)] != first:
            return other_kind(key, i, str(first))
    raise AssertionError("every key is text or an integer, of one kind")


def other_kind(key: Any, row: int, kind: str) -> BadRow:
    """The error for a key that is not of the kind of the others."""
    key = key.item() if isinstance(key, np.generic) else key
    return BadRow(
        f"row {row}: key {key!r} is {OF_KIND[type(key)]}, and the other keys are {kind}. 1 and '1' would be two keys: "
        f"convert the column to one kind. {UNLEARNED}"
    )


def require_storable(new: Keys, keys: Keys) -> None:
    """Refuse text that cannot be a key, among the different keys of these rows that are new."""
    for key in [] if isinstance(new, np.ndarray) else new:
        if len(key) > LONGEST:
            raise BadRow(
                f"row {_row_of(key, keys)}: key {key[:20]!r}... has {len(key)} characters, and the limit is {LONGEST}: "
                f"pass a digest of it, such as its SHA-256 in hexadecimal. {UNLEARNED}"
            )
        if "\0" in key:
            raise BadRow(f"row {_row_of(key, keys)}: key {key!r} contains the character NUL: remove it. {UNLEARNED}")


def _row_of(key: str, keys: Keys) -> int:
    return next(i for i, each in enumerate(keys) if each == key)


class _Numbers(dict[str, int]):
    """The numbers of texts; a new one gets the next number when it is looked up."""

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self)
        return number


class KeyTable:
    """Keys with the numbers 0, 1, 2, ... in the order in which they were added.

    Text is looked up in a dictionary, and integers in an index of arrays, which takes a tenth of the memory and time.
    """

    def __init__(self, keys: Keys, kind: str) -> None:
        self.kind = kind  # empty before the first key
        self._numbers = _Numbers()
        self._index = Index(np.empty(0, dtype=np.int64))
        self.add(keys)

    def __len__(self) -> int:
        return len(self._numbers) + self._index.n

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """The number of each key, -1 if it is new."""
        if isinstance(keys, np.ndarray):
            return self._index.find(_in_chunks(len(keys)), keys)
        return np.fromiter(map(self._numbers.get, keys, repeat(-1)), np.int64, len(keys))

    def require_kind(self, keys: Keys, kind: str) -> None:
        """Refuse keys of the other kind."""
        if len(keys) and self.kind and kind != self.kind:
            raise other_kind(keys[0], 0, self.kind)

    def add(self, keys: Keys) -> NDArray[np.int64]:
        """The number of each key, in one pass; new ones are added in the order of appearance."""
        if isinstance(keys, np.ndarray):
            chunks = _in_chunks(len(keys))
            return self._index.add(chunks, keys, np.ones(len(chunks)))
        return np.fromiter(map(self._numbers.__getitem__, keys), np.int64, len(keys))

    def since(self, n: int) -> Keys:
        """The keys after the first n."""
        if self._index.n:
            return self._index.columns[n : self._index.n]
        return [*islice(reversed(self._numbers), len(self) - n)][::-1]

    def forget(self, n: int) -> None:
        """Keep the first n keys only."""
        for key in [] if self._index.n else self.since(n):
            del self._numbers[str(key)]
        if self._index.n > n:
            self._index.forget(n)

    def listed(self) -> list[Key]:
        """All keys in order."""
        return list(self._numbers) or self._index.columns[: self._index.n].tolist()


def _in_chunks(n: int) -> NDArray[np.int64]:
    """Bounds of chunks of keys that are looked up together."""
    return np.append(np.arange(0, n, TOGETHER), n)


def to_array(keys: Keys, width: int) -> NDArray[Any]:
    """Keys as numbers: integers (n,), or the characters of text (n, width)."""
    if isinstance(keys, np.ndarray):
        return keys
    return np.array(keys, dtype=f"<U{width}").view(CHARACTER).reshape(len(keys), width)


def from_array(array: NDArray[Any]) -> Keys:
    """The keys that `to_array` stored."""
    if array.ndim == 1:
        return array
    n, width = array.shape
    return np.ascontiguousarray(array).view(f"<U{width}").reshape(n).tolist()
