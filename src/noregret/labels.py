"""Labels of any kind to class codes and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from noregret._jit import kernel
from noregret._types import Array
from noregret.errors import BadRow
from noregret.validate import label_distributions, writable


class Labels:
    """The classes of a stream, in the order of the probability columns."""

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes.copy()  # the caller may change his
        self.code = {label: k for k, label in enumerate(classes.tolist())}
        # The row with a 1 at k is a window into a single 1 among zeros: a table of all rows would take K x K numbers.
        self._lone_one = np.zeros(max(0, 2 * classes.size - 1))
        self._lone_one[classes.size - 1 : classes.size] = 1.0
        self.target_of = {label: self.target(k) for label, k in self.code.items()}
        numeric = classes.dtype.kind in "biuf"
        self._are_codes = classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(classes.size))
        self._in_order = numeric and bool(np.all(classes[:-1] < classes[1:]))

    def __reduce__(self) -> tuple[type[Labels], tuple[np.ndarray]]:
        return type(self), (self.classes,)  # the windows would be written out one by one

    @classmethod
    def of(cls, y: Any, classes: Any) -> Labels:
        """The declared classes, or else those of the first labels, sorted where they can be."""
        if classes is not None:
            declared = as_labels(classes)
            found = cls(declared)
            if len(found.code) != declared.size:
                raise ValueError(f"classes={declared.tolist()} names a class twice.")
        elif (soft := as_distributions(y)) is not None:
            found = cls(np.arange(soft.shape[1]))
        else:
            labels = as_labels(y)
            try:
                check_classification_targets(labels)
                found = cls(np.unique(labels))
            except TypeError:  # labels of several kinds have no order but that of appearance
                found = cls(as_labels(list(dict.fromkeys(labels.tolist()))))
        if found.classes.size < 2:
            raise ValueError(
                f"y holds only one class, {found.classes.tolist()}. A classifier needs at least 2 classes: declare "
                "them in the first call, classes=[...]."
            )
        return found

    def target(self, k: int) -> Array:
        """Class k as a block of one row of label probabilities. Not to be written to."""
        last = self.classes.size - 1
        window: Array = self._lone_one[last - k : last - k + self.classes.size]
        return window[None]

    def distributions(self, y: Any) -> Array:
        """One row of label probabilities a row: one-hot for hard labels, soft labels as they are."""
        soft = as_distributions(y)
        if soft is not None:
            label_distributions(soft, self.classes.size)
            return soft
        labels = as_labels(y)
        if self._are_codes and labels.dtype == np.int64 and labels.flags.carray:
            found = np.zeros((labels.size, self.classes.size))
            i = mark(labels, found)
            if i < 0:
                return found
            raise self.unknown(labels[i], i)
        codes, foreign = self.codes(labels)
        if np.count_nonzero(foreign):  # not `any`: after its 512-bit vectors a processor is slow for half a millisecond
            i = int(np.argmax(foreign))
            raise self.unknown(labels[i], i)
        found = np.zeros((labels.size, self.classes.size))
        mark(codes, found)
        return found

    def codes(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The place of each label among the classes, and which labels have none."""
        if self._in_order and labels.dtype.kind in "biuf":
            codes = np.minimum(np.searchsorted(self.classes, labels), self.classes.size - 1)
            return codes, self.classes[codes] != labels
        codes = np.array([self.code.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        return codes, codes < 0

    def unknown(self, label: Any, row: int) -> BadRow:
        """The complaint about a label that is none of the classes."""
        label = label.item() if isinstance(label, np.generic) else label
        return BadRow(
            f"row {row}: label {label!r} is not one of the classes {self.classes.tolist()}. Correct "
            "the label, or start "
            "anew and declare every class in the first call, classes=[...]. Nothing was learned from this call."
        )


@kernel
def mark(codes: np.ndarray, distributions: Array) -> int:
    """Add one-hot rows to zeros; returns the first row whose code is that of no class, or -1."""
    for t in range(codes.size):
        k = codes[t]
        if k < 0 or k >= distributions.shape[1]:
            return t
        distributions[t, k] = 1.0
    return -1


def as_distributions(y: Any) -> Array | None:
    """y as an (n, K) array of label probabilities, or None if it holds hard labels."""
    shape = getattr(y, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] < 2:
        return None
    return writable(np.asarray(y, dtype=np.float64))


def as_labels(y: Any) -> np.ndarray:
    """y as a one-dimensional array of labels; a list of mixed kinds stays as it is."""
    labels = np.asarray(y)
    if labels.dtype.kind in "US" and not isinstance(y, np.ndarray) and not _all_text(y):
        labels = np.empty(len(y), dtype=object)
        labels[:] = list(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1:
        raise ValueError(
            f"y has shape {labels.shape}: give one label a row, or an (n, K) array of label probabilities."
        )
    return labels


def _all_text(y: Any) -> bool:
    return all(isinstance(label, str | bytes) for label in y)
