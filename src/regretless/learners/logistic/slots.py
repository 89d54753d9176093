"""Slots: labels in. Which slot of the state each class has, labels never seen before, soft labels.

The arrays of the state have one slot per class, in the order in which the classes appear, and at least two. `classes_`
is sorted, so a slot and the index of its class in `classes_` differ; `state_.slots` holds the index for each slot, and
-1 for a slot without a class. Where classes are declared in the first call, or labels are soft, the set of classes is
closed: slots and classes are in the same order and any other label is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regretless.core.errors import BadRow
from regretless.core.files.state_checks import require
from regretless.core.rows.inputs import is_missing
from regretless.core.rows.labels import WITHOUT_ORDER, Labels, as_classes, as_distributions, as_labels
from regretless.core.scikit_learn import check_classification_targets
from regretless.core.types import Array


@dataclass(frozen=True)
class Targets:
    """The labels of a block: a slot for each row, or soft labels with one column per slot."""

    labels: np.ndarray
    slots: np.ndarray  # -1 where the label has none
    wrong: np.ndarray  # which labels cannot be learned: missing, or not declared
    soft: Array | None = None

    def rows(self, some: slice, n_slots: int) -> Array:
        """Label probabilities of some rows, one column per slot."""
        if self.soft is not None:
            return np.ascontiguousarray(self.soft[some])
        slots = self.slots[some]
        found = np.zeros((len(slots), n_slots))
        known = np.flatnonzero((slots >= 0) & (slots < n_slots))
        found[known, slots[known]] = 1.0
        return found


@dataclass(frozen=True)
class Slots:
    """The classes so far, the slot of each, and whether others may come. `places` is `state_.slots`.

    What one-row calls need is computed once: a new label makes new `labels`, and so another object of this class.
    """

    labels: Labels
    places: Array
    is_open: bool

    @property
    def taken(self) -> int:
        """The number of slots that have a class."""
        return int(self.labels.classes.size)

    @cached_property
    def by_class(self) -> np.ndarray:
        """The slot of each class, in the order of `classes_`."""
        return self.places[: self.taken].argsort()

    @cached_property
    def are_in_order(self) -> bool:
        """Whether slots and classes are in the same order, and every slot has a class."""
        return np.array_equal(self.places, np.arange(self.taken))

    @cached_property
    def _target_of(self) -> dict[Any, Array]:
        K = self.places.size
        return {label: np.eye(1, K, int(self.by_class[k])) for label, k in self.labels.code.items()}

    def one_hot(self, label: Any) -> Array | None:
        """The label of one row as a block of label probabilities; None for a label never seen or for soft labels."""
        try:
            return self._target_of.get(label)
        except TypeError:
            return None

    def to_classes(self, said: Array) -> Array:
        """Forecasts with one column per slot, in the order of `classes_`."""
        return said if self.are_in_order else said.take(self.by_class, axis=1)

    def read(self, y: Any, weight: Array) -> Targets:
        """The labels of a block, where each may be that of a new class if the set of classes is open."""
        if as_distributions(y) is not None:
            if self.is_open:
                raise BadRow(
                    "y holds label probabilities, and the classes were not declared: pass classes=[...] in the first "
                    "call."
                )
            soft = self.labels.distributions(y)
            nothing = np.zeros(len(soft), dtype=np.intp)
            return Targets(nothing, nothing, np.zeros(len(soft), dtype=bool), soft)
        labels = as_labels(y)
        codes, foreign = self.labels.codes(labels) if self.taken else (None, np.ones(labels.size, dtype=bool))
        slots = np.full(labels.size, -1, dtype=np.intp)
        if codes is not None:
            slots[~foreign] = self.by_class[codes[~foreign]]
        wrong = np.zeros(labels.size, dtype=bool)
        for i in np.flatnonzero(foreign & (weight > 0.0)).tolist():
            wrong[i] = not self.is_open or is_missing(labels[i])
        if self.is_open and labels.dtype.kind == "f" and foreign.any():
            check_classification_targets(labels[foreign & ~np.isnan(labels)])
        return Targets(labels, slots, wrong)

    def refuse(self, targets: Targets, rows: np.ndarray) -> None:
        """Raise an error for the first of the rows whose label cannot be learned, if there is one."""
        if not rows.any():
            return
        i = int(np.argmax(rows))
        if not self.is_open:
            raise self.labels.unknown(targets.labels[i], i)
        raise BadRow(
            f"row {i}: the label is missing, {targets.labels[i]!r}. Leave the row out, or choose "
            'on_bad_row="skip". Nothing was learned from this call.'
        )

    def arrivals(self, targets: Targets, weight: Array) -> dict[int, Any]:
        """The rows in which a label appears for the first time, with the label.

        The new labels get the next slots, and these are written into `targets`. Bad rows must have weight 0.
        """
        new: dict[Any, int] = {}
        rows: dict[int, Any] = {}
        at = np.flatnonzero((targets.slots < 0) & (weight > 0.0))
        for i, label in zip(at.tolist(), targets.labels[at].tolist(), strict=True):
            if label not in new:
                new[label] = self.taken + len(new)
                rows[i] = label
            targets.slots[i] = new[label]
        return rows

    def with_label(self, label: Any) -> Labels:
        """Give the next slot to a label, in `places`; returns the labels with it, sorted where they can be."""
        labels = as_classes([*self.labels.classes.tolist(), label])
        try:
            order = np.argsort(labels, kind="stable")
        except WITHOUT_ORDER:
            order = np.arange(labels.size)
        place = np.empty(labels.size, dtype=np.intp)
        place[order] = np.arange(labels.size)
        self.places[: labels.size] = place[np.append(self.places[: labels.size - 1].astype(np.intp), -1)]
        return Labels(labels[order])

    def check(self) -> None:
        """Refuse places that do not belong to these classes: a file may hold anything."""
        taken = self.places[: self.taken]
        require(
            np.array_equal(np.sort(taken), np.arange(taken.size)) and np.all(self.places[taken.size :] == -1.0),
            f"slots are not the places of {taken.size} classes",
        )
        require(self.is_open or self.taken == self.places.size, "classes were declared, and one is not in the state")


def first_labels(y: Any, declared: Any) -> tuple[Labels, bool]:
    """The classes before the first row, and whether others may come: not if they are declared or labels are soft."""
    if declared is None and as_distributions(y) is None:
        return Labels(np.empty(0)), True
    return Labels.of(y, declared), False


def require_few(n_classes: int, max_classes: int) -> None:
    """Refuse more classes than `max_classes`."""
    if n_classes > max_classes:
        raise ValueError(
            f"y has {n_classes} classes, more than max_classes={max_classes}. If the labels are right, raise "
            "max_classes; if y holds numbers to forecast, use a regressor. Nothing was learned from this call."
        )


def weights_of_labels(y: Any, by_label: dict[Any, float]) -> Array:
    """The weight of each row by its label; 1 for labels that are not listed."""
    if as_distributions(y) is not None:
        raise ValueError("class_weight needs labels, and y has label probabilities: give sample_weight instead.")
    return np.array([by_label.get(label, 1.0) if _hashable(label) else 1.0 for label in as_labels(y).tolist()])


def _hashable(label: Any) -> bool:
    """Whether a label can be a class; others are refused later."""
    return getattr(label, "__hash__", None) is not None
