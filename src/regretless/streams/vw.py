"""Vowpal Wabbit text: `label importance 'tag |namespace:scale feature feature:value |namespace ...`.

The column of a feature is the 32-bit MurmurHash3 (seed 0, as in scikit-learn) of "namespace^feature" modulo 2^bits.
Values that collide are added. No constant is added. (VW itself hashes differently, so its columns are not the same.)
"""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
from scipy import sparse

from regretless.streams.sparse_lines import Parsed, SparseFormat, rows_not_finite


class VowpalWabbit(SparseFormat):
    """Features hashed into 2^bits columns."""

    def __init__(self, bits: int) -> None:
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 31:
            raise ValueError(f"bits={bits!r} must be an integer from 1 to 31.")
        self.columns = 1 << bits

    def parse(self, lines: list[bytes]) -> Parsed:
        """Line by line."""
        indices, data = array("q"), array("d")  # a line may have a million features
        indptr, labels, weights = [0], [], []
        why: dict[int, str] = {}
        for i, line in enumerate(lines):
            label, weight = math.nan, 1.0
            try:
                head, bar, body = line.decode().partition("|")
                if not bar:
                    raise ValueError("it has no '|' before the features.")
                label, weight = _head(head)
                found = _features(body, self.columns - 1)
                indices.extend([column for column, _ in found])
                data.extend([value for _, value in found])
            except ValueError as error:
                why[i] = str(error)
            indptr.append(len(indices))
            labels.append(label)
            weights.append(weight)
        shape = len(lines), self.columns
        X = sparse.csr_matrix((np.array(data, dtype=float), np.array(indices, dtype=np.int64), indptr), shape=shape)
        X.sum_duplicates()
        for i in rows_not_finite(X):
            why.setdefault(i, "its values are too large: with scales and collisions, one is not finite.")
        return Parsed(X, np.array(labels), np.array(weights), why)

    def settle(self, X: Any) -> None:
        """Nothing."""

    def fit(self, X: Any, why: dict[int, str]) -> Any:
        """The rows unchanged."""
        return X


def _head(text: str) -> tuple[float, float]:
    """Label (NaN if missing) and importance, from the text before the first bar, without the tag."""
    words = text.split()
    if words and (words[-1].startswith("'") or not text[-1].isspace()):
        words.pop()  # a tag begins with a quote or touches the bar
    if len(words) > 2:
        raise ValueError(f"{text.strip()!r} before the first '|' is not of the form: label importance tag.")
    label = _number(words[0], "label") if words else math.nan
    weight = _number(words[1], "importance") if len(words) > 1 else 1.0
    if weight < 0:
        raise ValueError(f"its importance is {weight}: importances must be numbers >= 0.")
    return label, weight


def _features(text: str, mask: int) -> list[tuple[int, float]]:
    from sklearn.utils import murmurhash3_32

    found = []
    for part in text.split("|"):
        words = part.split()
        space, scale = "", 1.0
        if words and not part[0].isspace():
            space, colon, factor = words.pop(0).partition(":")
            scale = _number(factor, f"scale of namespace {space!r}") if colon else 1.0
        for word in words:
            name, colon, value = word.rpartition(":")
            if not colon:
                name, value = word, "1"
            x = scale * _number(value, f"value of feature {name!r}")
            found.append((murmurhash3_32(f"{space}^{name}", seed=0, positive=True) & mask, x))
    return found


def _number(text: str, what: str) -> float:
    try:
        value = float(text.replace("_", "no number"))  # Python accepts 1_000
    except ValueError:
        raise ValueError(f"the {what} is {text!r}, which is not a number.") from None
    if not math.isfinite(value):
        raise ValueError(f"the {what} is {text}, which is not finite.")
    return value
