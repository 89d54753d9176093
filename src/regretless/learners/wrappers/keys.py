"""Keys of rows: text or integers, one kind for all, each with a number in the order of its first row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.core.errors import BadRow
from regretless.core.rows.inputs import UNLEARNED, is_missing
from regretless.learners.logistic.hashing import Index
from regretless.learners.wrappers.texts import CHARACTER, TextIndex, Texts

Key = int | str
Keys = Texts | NDArray[np.int64]  # text, or integers

LONGEST = 128  # characters of a key: all keys are stored with the length of the longest
TEXT, WHOLE = "text", "integers"
OF_KIND: dict[type, str] = {str: TEXT, int: WHOLE}
ARROW_TEXT = ("string", "large_string", "string_view")
TOGETHER = 64  # keys whose places in memory are fetched at once
ONE = np.ones(1)
INTEGER = np.dtype(np.int64)


def as_keys(keys: Any, n_rows: int | None = None) -> Keys:
    """The keys of some rows. Refuses missing keys, other types, and mixtures of both kinds."""
    if type(keys) is np.ndarray and keys.dtype is INTEGER and keys.shape == (n_rows,):
        return keys  # the usual case, without checks that take longer than learning a row
    if isinstance(keys, str | bytes) or not hasattr(keys, "__len__"):
        raise ValueError(f"keys={keys!r}: pass a list or a column of keys, one per row.")
    given = _read(keys)
    if n_rows is not None and len(given) != n_rows:
        raise ValueError(f"there are {len(given)} keys and {n_rows} rows: pass one key per row. {UNLEARNED}")
    return given if isinstance(given, Texts | np.ndarray) else _of_objects(given)


def _read(keys: Any) -> Keys | list[Any]:
    """The keys, or what the column has in their place, as Python objects."""
    if isinstance(keys, list):
        return keys
    if isinstance(keys, tuple):
        return list(keys)
    column: Any = getattr(keys, "array", None)
    if "Arrow" in type(column).__name__:  # pandas
        keys = column.__arrow_array__()
    if hasattr(keys, "to_pylist"):  # PyArrow
        is_text = str(keys.type) in ARROW_TEXT and not keys.null_count
        return Texts.of_arrow(keys) if is_text else list(keys.to_pylist())
    array = np.asanyarray(keys)
    if array.ndim != 1:
        raise ValueError(f"keys have the shape {array.shape}: pass one key per row. {UNLEARNED}")
    if isinstance(array, np.ma.MaskedArray):
        return list(array.tolist())  # with None for masked keys
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "U":
        return Texts.of_lines(_lines_of(array))
    return list(array.tolist())


def _of_objects(given: list[Any]) -> Keys:
    """Keys that are Python objects."""
    try:
        return Texts.of(given) if given else np.empty(0, dtype=np.int64)
    except TypeError:  # not all are text
        pass
    if not {*map(type, given)} <= {int}:
        given = [key.item() if isinstance(key, np.integer) else key for key in given]
        if not {*map(type, given)} <= {int}:
            raise _unfit(given)
    if not -(2**63) <= min(given) <= max(given) < 2**63:
        i = next(i for i, key in enumerate(given) if not -(2**63) <= key < 2**63)
        raise BadRow(f"row {i}: key {given[i]} does not fit in 64 bits: pass the keys as text. {UNLEARNED}")
    return np.array(given, dtype=np.int64)


def kind_of(keys: Keys) -> str:
    """Text, or integers."""
    return TEXT if isinstance(keys, Texts) else WHOLE


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


def require_storable(keys: Keys) -> None:
    """Refuse text that cannot be stored."""
    if isinstance(keys, np.ndarray) or not len(keys):
        return
    sizes = keys.ends - keys.starts
    longest = int(np.argmax(sizes))
    if sizes[longest] > LONGEST:
        raise BadRow(
            f"row {longest}: key {keys[longest][:20]!r}... has {sizes[longest]} characters, and the limit is "
            f"{LONGEST}: pass a digest of it, such as its SHA-256 in hexadecimal. {UNLEARNED}"
        )
    if keys.nul >= 0:
        raise BadRow(f"row {keys.nul}: key {keys[keys.nul]!r} contains the character NUL: remove it. {UNLEARNED}")


class KeyTable:
    """Keys with the numbers 0, 1, 2, ... in the order in which they were added."""

    def __init__(self, stored: NDArray[Any], kind: str) -> None:
        self.kind = kind  # empty before the first key
        self._texts = TextIndex()
        self._index = Index(np.empty(0, dtype=np.int64))
        self.add(from_array(stored))

    def __len__(self) -> int:
        return self._texts.n + self._index.n

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """The number of each key, -1 if it is new."""
        if isinstance(keys, Texts):
            return self._texts.find(keys)
        return self._index.find(_in_chunks(len(keys)), keys)

    def require_kind(self, keys: Keys) -> None:
        """Refuse keys of the other kind."""
        if len(keys) and self.kind and kind_of(keys) != self.kind:
            raise other_kind(keys[0], 0, self.kind)

    def add(self, keys: Keys) -> NDArray[np.int64]:
        """The number of each key, in one pass; new ones are added in the order of appearance."""
        if isinstance(keys, Texts):
            return self._texts.add(keys)
        chunks = _in_chunks(len(keys))
        return self._index.add(chunks, keys, ONE if len(chunks) == 2 else np.ones(len(chunks) - 1))

    def since(self, n: int) -> NDArray[Any]:
        """The keys after the first n as `from_array` reads them."""
        return self._texts.lines[n : self._texts.n] if self._texts.n else self._index.columns[n : self._index.n]

    def forget(self, n: int) -> None:
        """Keep the first n keys only."""
        if self._texts.n > n:
            self._texts.forget(n)
        if self._index.n > n:
            self._index.forget(n)


def _in_chunks(n: int) -> NDArray[np.int64]:
    """Bounds of chunks of keys that are looked up together."""
    if n <= TOGETHER:
        return np.array([0, n])
    chunks = np.arange(0, n + TOGETHER, TOGETHER)
    chunks[-1] = n
    return chunks


def from_array(stored: NDArray[Any]) -> Keys:
    """Keys that are stored as integers (n,), or as the characters of text (n, width) with zeros after the end."""
    if stored.ndim == 1:
        return stored
    texts = Texts.of_lines(np.ascontiguousarray(stored))
    if texts.nul >= 0:
        raise ValueError(f"keys are not characters: that of line {texts.nul} contains NUL.")
    return texts


def _lines_of(array: NDArray[np.str_]) -> NDArray[np.uint32]:
    """An array of text as lines of characters, without a copy if possible."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return array.view(CHARACTER).reshape(len(array), array.itemsize // CHARACTER.itemsize)


def listed(stored: NDArray[Any]) -> list[Key]:
    """Stored keys as Python objects."""
    if stored.ndim == 2:
        stored = np.ascontiguousarray(stored).view(f"<U{stored.shape[1]}").reshape(len(stored))
    found: list[Key] = stored.tolist()
    return found
