"""Labels of any type to class codes and back.

A class is a number, a boolean, text, or any other hashable object. Missing values are not classes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from regretless.core.errors import BadRow
from regretless.core.kernels.jit import kernel
from regretless.core.rows.inputs import UNLEARNED, as_floats, is_missing
from regretless.core.rows.validate import label_distributions, writable
from regretless.core.scikit_learn import check_classification_targets, column_or_1d
from regretless.core.types import Array

WITHOUT_ORDER = (TypeError, ValueError, OverflowError)  # labels of mixed types keep their order of appearance
WHOLE = 2**53  # floats represent all smaller integers


class Labels:
    """The classes of a stream, in the order of the probability columns."""

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes.copy()  # the caller may change the array
        self.code = {label: k for k, label in enumerate(classes.tolist())}
        # The one-hot row of class k is a view of a single 1 among zeros: a table of all rows would take K x K numbers.
        self._lone_one = np.zeros(max(0, 2 * classes.size - 1))
        self._lone_one[classes.size - 1 : classes.size] = 1.0
        self.target_of = {label: self.target(k) for label, k in self.code.items()}
        numeric = classes.dtype.kind in "biuf"
        self._are_codes = classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(classes.size))
        self._in_order = numeric and bool(np.all(classes[:-1] < classes[1:]))
        self._as_floats = numeric and bool(np.all(np.abs(classes.astype(np.float64)) < WHOLE))  # comparable as floats

    def __reduce__(self) -> tuple[type[Labels], tuple[np.ndarray]]:
        return type(self), (self.classes,)  # the views would be pickled one by one

    @classmethod
    def of(cls, y: Any, classes: Any) -> Labels:
        """The declared classes, or else those of the first labels, sorted if possible."""
        if classes is not None:
            declared = as_labels(classes)
            refuse_missing(declared, "classes: place")
            found = cls(declared)
            if len(found.code) != declared.size:
                raise ValueError(f"classes={declared.tolist()} names a class twice.")
        elif (soft := as_distributions(y)) is not None:
            found = cls(np.arange(soft.shape[1]))
        else:
            labels = as_labels(y)
            refuse_missing(labels, "row")
            if not _are_whole(labels):
                with suppress(TypeError):  # labels of mixed types
                    check_classification_targets(labels)
            try:
                found = cls(np.unique(labels))
            except WITHOUT_ORDER:
                found = cls(as_objects(list(dict.fromkeys(labels.tolist()))))
        if not found.classes.size:
            raise ValueError("there are no labels, and no classes are declared: pass classes=[...].")
        if found.classes.size < 2:
            raise ValueError(
                f"y has only one class, {found.classes.tolist()}. A classifier needs at least 2 classes: declare "
                "them in the first call with classes=[...]."
            )
        return found

    def target(self, k: int) -> Array:
        """Class k as a block of one row of label probabilities. Read-only."""
        last = self.classes.size - 1
        window: Array = self._lone_one[last - k : last - k + self.classes.size]
        return window[None]

    def distributions(self, y: Any) -> Array:
        """Label probabilities, one row per label: one-hot for hard labels, soft labels unchanged."""
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
        if np.count_nonzero(foreign):  # not `any`: its 512-bit vectors slow a processor down for half a millisecond
            i = int(np.argmax(foreign))
            raise self.unknown(labels[i], i)
        found = np.zeros((labels.size, self.classes.size))
        mark(codes, found)
        return found

    def codes(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The index of each label among the classes, and a mask of unknown labels."""
        if self._in_order and (labels.dtype == self.classes.dtype or (self._as_floats and labels.dtype.kind in "biuf")):
            codes = np.minimum(np.searchsorted(self.classes, labels), self.classes.size - 1)
            return codes, self.classes[codes] != labels
        try:
            codes = np.array([self.code.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        except TypeError:  # an unhashable label
            refuse_missing(labels, "row")
            raise
        return codes, codes < 0

    def unknown(self, label: Any, row: int) -> BadRow:
        """The error for a label that is not one of the classes."""
        if is_missing(label):
            return missing(label, f"row {row}")
        label = label.item() if isinstance(label, np.generic) else label
        return BadRow(
            f"row {row}: label {label!r} is not one of the classes {self.classes.tolist()}. Correct "
            f"the label, or refit with every class declared in the first call, classes=[...]. {UNLEARNED}"
        )


@kernel
def mark(codes: np.ndarray, distributions: Array) -> int:
    """Write one-hot rows into zeros; returns the first row with an unknown code, or -1."""
    for t in range(codes.size):
        k = codes[t]
        if k < 0 or k >= distributions.shape[1]:
            return t
        distributions[t, k] = 1.0
    return -1


def as_distributions(y: Any) -> Array | None:
    """y as an (n, K) array of label probabilities, or None if it has hard labels."""
    shape = getattr(y, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] < 2:
        return None
    return writable(as_floats(y, lambda at: f"row {at[0]}, label column {at[1]}"))


def as_labels(y: Any) -> np.ndarray:
    """y as a one-dimensional array of labels: masked values become None, and different labels stay different."""
    labels = _of_sequence(list(y)) if isinstance(y, list | tuple) else np.asarray(y)
    if isinstance(y, np.ma.MaskedArray) and (mask := np.ma.getmaskarray(y)).any():
        labels = labels.astype(object)
        labels[mask] = None
    if labels.dtype.kind in "mM":
        raise ValueError(f"y has dates ({labels.dtype}): convert them to text, for example y.astype(str).")
    if labels.dtype.kind == "T":
        labels = labels.astype(object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1:
        raise ValueError(
            f"y has shape {labels.shape}: pass one label per row, or an (n, K) array of label probabilities."
        )
    return labels


def _of_sequence(labels: list[Any]) -> np.ndarray:
    """As read by NumPy, unless different labels would become equal."""
    try:
        found = np.asarray(labels)
    except ValueError:  # sequences of different lengths
        return as_objects(labels)
    if found.dtype.kind == "U":  # NumPy converts anything to text, and drops NULs at the end
        faithful = all(isinstance(label, str) and not label.endswith("\0") for label in labels)
    elif found.dtype.kind == "S":
        faithful = all(isinstance(label, bytes) and not label.endswith(b"\0") for label in labels)
    else:
        masked = found.dtype.kind in "fc" and any(label is np.ma.masked for label in labels)
        faithful = found.dtype.kind not in "fc" or not (masked or _beyond_floats(labels, found))
    return found if faithful else as_objects(labels)


def as_classes(labels: list[Any]) -> np.ndarray:
    """Labels that have been read before, in one array; nothing is checked."""
    found = _of_sequence(labels)
    return found if found.ndim == 1 and found.dtype.kind not in "mM" else as_objects(labels)


def _beyond_floats(labels: list[Any], found: np.ndarray) -> bool:
    """Whether an integer is too large to be exact as a float."""
    large = found.ndim == 1 and bool(np.any(np.abs(found) >= WHOLE))
    return large and any(isinstance(label, int | np.integer) and abs(int(label)) >= WHOLE for label in labels)


def _are_whole(labels: np.ndarray) -> bool:
    """Whether these are integers too large for NumPy's types, which scikit-learn does not support."""
    return labels.dtype.kind == "O" and all(isinstance(label, int) for label in labels.tolist())


def as_objects(labels: list[Any]) -> np.ndarray:
    """The labels as an object array."""
    found = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):  # one by one: a tuple is one label
        found[i] = label
    return found


def refuse_missing(labels: np.ndarray, what: str) -> None:
    """Refuse invalid labels, with their row."""
    if labels.dtype.kind in "fc":
        for i in np.flatnonzero(np.isnan(labels))[:1]:
            raise missing(labels[i], f"{what} {i}")
    if labels.dtype.kind != "O":
        return
    for i, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise missing(label, f"{what} {i}")
        try:
            hash(label)
        except TypeError as error:
            raise BadRow(f"{what} {i}: {label!r} cannot be a class: use numbers or text. {UNLEARNED}") from error


def missing(label: Any, where: str) -> BadRow:
    """The error for a missing label."""
    return BadRow(f"{where}: label {label!r} is missing. Input contains NaN: drop the row. {UNLEARNED}")
