"""OnlineLogisticRegression's slots: labels in, labels never seen before, soft labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regretless import BadRow
from regretless.core.rows.labels import Labels
from regretless.learners.logistic.slots import Slots, first_labels, require_few


def open_slots(*labels: Any) -> Slots:
    """Slots of labels that appeared in this order."""
    slots = Slots(Labels(np.empty(0)), np.full(max(2, len(labels)), -1.0), is_open=True)
    for label in labels:
        slots = replace(slots, labels=slots.with_label(label))
    return slots


def test_declared_classes_are_closed() -> None:
    for y, declared in ((["a"], ["b", "a"]), (np.array([[0.5, 0.5]]), None)):
        labels, is_open = first_labels(y, declared)
        assert not is_open
        assert labels.classes.size == 2
    labels, is_open = first_labels(["a"], None)
    assert is_open
    assert labels.classes.size == 0
    with pytest.raises(ValueError, match="max_classes=3"):
        require_few(4, 3)
    require_few(3, 3)


def test_labels_get_slots_in_the_order_of_appearance() -> None:
    slots = open_slots("m", "z", "a")
    assert slots.labels.classes.tolist() == ["a", "m", "z"]
    assert slots.places.tolist() == [1.0, 2.0, 0.0]
    assert slots.by_class.tolist() == [2, 0, 1]
    assert slots.taken == 3
    mixed = open_slots("m", 3)  # labels that have no order stay as they came
    assert mixed.labels.classes.tolist() == ["m", 3]


def test_one_label() -> None:
    slots = open_slots("m", "z", "a")
    assert slots.one_hot("a").tolist() == [[0.0, 0.0, 1.0]]
    assert slots.one_hot("m").tolist() == [[1.0, 0.0, 0.0]]
    for label in ("new", None, [0.5, 0.5, 0.0]):
        assert slots.one_hot(label) is None


def test_a_block_of_labels() -> None:
    slots, weight = open_slots("m", "a"), np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    targets = slots.read(["a", "m", "new", "late", None, "new"], weight)
    assert targets.slots.tolist() == [1, 0, -1, -1, -1, -1]
    assert targets.wrong.tolist() == [False, False, False, False, True, False]
    weight[4] = 0.0  # as rows get it that are skipped
    assert slots.arrivals(targets, weight) == {2: "new"}
    assert targets.slots.tolist() == [1, 0, 2, -1, -1, 2]
    np.testing.assert_array_equal(targets.rows(slice(0, 4), 3), [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(targets.rows(slice(2, 3), 2), [[0, 0]])  # before its slot is there
    with pytest.raises(BadRow, match="row 4: the label is missing, None"):
        slots.refuse(targets, targets.wrong)
    slots.refuse(targets, np.zeros(6, dtype=bool))


def test_before_any_label() -> None:
    slots = open_slots()
    targets = slots.read([3, 1, 3], np.ones(3))
    assert targets.slots.tolist() == [-1] * 3
    assert slots.arrivals(targets, np.ones(3)) == {0: 3, 1: 1}
    with pytest.raises(ValueError, match="continuous"):
        slots.read([0.5, 1.5], np.ones(2))


def test_a_closed_set_refuses_other_labels() -> None:
    slots = Slots(Labels(np.array(["a", "b"])), np.arange(2.0), is_open=False)
    targets = slots.read(["a", "c"], np.ones(2))
    assert targets.wrong.tolist() == [False, True]
    with pytest.raises(BadRow, match="row 1: label 'c' is not one of the classes"):
        slots.refuse(targets, targets.wrong)
    assert not slots.read(["c"], np.zeros(1)).wrong.any()


def test_soft_labels_need_a_closed_set() -> None:
    y = np.array([[0.25, 0.75], [1.0, 0.0]])
    closed = Slots(Labels(np.arange(2)), np.arange(2.0), is_open=False)
    targets = closed.read(y, np.ones(2))
    np.testing.assert_array_equal(targets.rows(slice(0, 2), 2), y)
    assert closed.arrivals(targets, np.ones(2)) == {}
    with pytest.raises(BadRow, match=r"classes were not declared: pass classes=\[...\] in the first call"):
        open_slots(0, 1).read(y, np.ones(2))


def test_places_that_cannot_be() -> None:
    open_slots("m", "z", "a").check()
    open_slots("m").check()
    slots = open_slots("m", "z", "a")
    for places in ([0.0, 0.0, 1.0], [0.0, 1.0, 7.0], [0.0, 1.0, -1.0], [0.0, 1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="slots are not the places of 3 classes"):
            replace(slots, places=np.array(places)).check()
    with pytest.raises(ValueError, match="one is not in the state"):
        Slots(Labels(np.arange(2)), np.array([0.0, 1.0, -1.0]), is_open=False).check()
