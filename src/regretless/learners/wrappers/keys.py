"""Keys of rows: text or integers, one kind for all, each with a number in the order of its first row."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.core.errors import BadRow
from regretless.core.inputs import UNLEARNED, is_missing

Key = int | str

LONGEST = 128  # characters of a key: all keys are stored with the length of the longest
TEXT, WHOLE = "text", "integers"
OF_KIND: dict[type, str] = {str: TEXT, int: WHOLE}
CHARACTER = np.dtype(np.uint32)


def as_keys(keys: Any, n_rows: int | None = None) -> tuple[list[Any], str]:
    """The keys as Python objects, and their kind. Refuses missing keys, other types, and mixtures of both kinds."""
    if isinstance(keys, str | bytes) or not hasattr(keys, "__len__"):
        raise ValueError(f"keys={keys!r}: pass a list or a column of keys, one per row.")
    found = _listed(keys)
    if n_rows is not None and len(found) != n_rows:
        raise ValueError(f"there are {len(found)} keys and {n_rows} rows: pass one key per row. {UNLEARNED}")
    kinds = {*map(type, found)}
    if not kinds <= OF_KIND.keys():
        found = [key.item() if isinstance(key, np.integer | np.str_) else key for key in found]
        kinds = {*map(type, found)}
    if len(kinds) > 1 or not kinds <= OF_KIND.keys():
        raise _unfit(found)
    kind = OF_KIND[kinds.pop()] if kinds else WHOLE
    if kind == TEXT:
        _require_short(found)
    elif found and not -(2**63) <= min(found) <= max(found) < 2**63:
        i = next(i for i, key in enumerate(found) if not -(2**63) <= key < 2**63)
        raise BadRow(f"row {i}: key {found[i]} does not fit in 64 bits: pass the keys as text. {UNLEARNED}")
    return found, kind


def _listed(keys: Any) -> list[Any]:
    if isinstance(keys, list | tuple):
        return list(keys)
    if hasattr(keys, "to_pylist"):  # PyArrow
        return list(keys.to_pylist())
    array = np.asarray(keys)
    if array.ndim != 1:
        raise ValueError(f"keys have the shape {array.shape}: pass one key per row. {UNLEARNED}")
    return array.tolist()


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
    return BadRow(
        f"row {row}: key {key!r} is {OF_KIND[type(key)]}, and the other keys are {kind}. 1 and '1' would be two keys: "
        f"convert the column to one kind. {UNLEARNED}"
    )


def _require_short(found: list[str]) -> None:
    if max(map(len, found)) > LONGEST:
        i = next(i for i, key in enumerate(found) if len(key) > LONGEST)
        raise BadRow(
            f"row {i}: key {found[i][:20]!r}... has {len(found[i])} characters, and the limit is {LONGEST}: pass a "
            f"digest of it, such as its SHA-256 in hexadecimal. {UNLEARNED}"
        )
    if any("\0" in key for key in found):
        i = next(i for i, key in enumerate(found) if "\0" in key)
        raise BadRow(f"row {i}: key {found[i]!r} contains the character NUL: remove it. {UNLEARNED}")


class KeyTable:
    """Keys with the numbers 0, 1, 2, ... in the order in which they were added."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind  # empty before the first key
        self.number: dict[Any, int] = {}

    def numbers(self, keys: list[Any]) -> NDArray[np.int64]:
        """The number of each key, -1 if it is new."""
        return np.fromiter(map(self.number.get, keys, repeat(-1)), np.int64, len(keys))

    def require_kind(self, keys: list[Any], kind: str) -> None:
        """Refuse keys of the other kind."""
        if keys and self.kind and kind != self.kind:
            raise other_kind(keys[0], 0, self.kind)

    def add(self, new: list[Any], kind: str) -> None:
        """Add keys that are new and different."""
        self.kind = kind
        self.number.update(zip(new, range(len(self.number), len(self.number) + len(new)), strict=True))


def to_array(keys: list[Any], kind: str, width: int) -> NDArray[Any]:
    """Keys as numbers: integers (n,), or the characters of text (n, width)."""
    if kind != TEXT:
        return np.array(keys, dtype=np.int64)
    return np.array(keys, dtype=f"<U{width}").view(CHARACTER).reshape(len(keys), width)


def from_array(array: NDArray[Any]) -> list[Any]:
    """The keys that `to_array` stored."""
    if array.ndim == 1:
        return array.tolist()
    n, width = array.shape
    return np.ascontiguousarray(array).view(f"<U{width}").reshape(n).tolist()
