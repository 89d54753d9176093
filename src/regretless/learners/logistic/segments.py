"""Part: the rows of one call, checked and encoded, cut where a column or a label appears for the first time.

Whatever is new is added at its row, not before, so the result does not depend on how rows are cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from regretless.core.types import Array
from regretless.learners.logistic.schema import Schema
from regretless.learners.logistic.slots import Slots, Targets


class Segment(NamedTuple):
    """Rows in which nothing new appears, or one row with a new label."""

    rows: slice
    schema: Schema | None  # the schema from these rows on, where it has grown
    new_label: bool


@dataclass(frozen=True)
class Part:
    """The rows of one call."""

    block: Any  # a Block, or a SparseBlock
    targets: Targets
    bad: np.ndarray  # which rows are forecast and not learned
    weight: Array  # 0 for bad rows
    arrivals: dict[int, Any]  # the rows in which a label appears for the first time

    def segments(self, first: int, stop: int) -> Iterator[Segment]:
        """Some rows in order, cut before every row that adds columns; the row of a new label is a segment by itself."""
        growth = dict(self.block.growth)
        at, schema = first, None
        for row in sorted(row for row in {*growth, *self.arrivals} if first <= row < stop):
            yield Segment(slice(at, row), schema, False)
            at, schema = row, growth.get(row)
            if row in self.arrivals:
                yield Segment(slice(row, row + 1), schema, True)
                at, schema = row + 1, None
        yield Segment(slice(at, stop), schema, False)

    @property
    def last_schema(self) -> Schema | None:
        """The schema after these rows, if it grows."""
        return self.block.growth[-1][1] if self.block.growth else None


def read(rows: Any, y: Any, weight: Array, encoder: Any, slots: Slots, begun: bool) -> Part:
    """Check and encode rows, labels and weights. Bad rows are an error, or get weight 0 where they are skipped."""
    targets = slots.read(y, weight)
    block = encoder.encode(rows, (weight > 0.0) & ~targets.wrong, begun)
    if not encoder.skips_bad_rows:
        slots.refuse(targets, targets.wrong & ~block.bad)
    bad = block.bad | targets.wrong
    if bad.any():
        weight = np.where(bad, 0.0, weight)
    return Part(block, targets, bad, weight, slots.arrivals(targets, weight))


class PartPlay:
    """The rows of one call and how many of them are learned: what `core.blocks.Block` is to other learners."""

    def __init__(
        self,
        part: Part,
        out: Array,
        learn: Callable[[Segment, Part, Array], Iterator[int]],
        slot_of_class: Callable[[], np.ndarray],
    ) -> None:
        self.part, self.out = part, out  # out: log probabilities of every row, one column per slot; or no rows
        self.learn, self.slot_of_class = learn, slot_of_class
        self.n, self.weight = len(part.block), part.weight
        self.at = 0

    def learn_to(self, stop: int) -> None:
        """Learn the next rows, up to `stop` of this call."""
        for segment in self.part.segments(self.at, stop):
            for rows in self.learn(segment, self.part, self.out):
                self.at = rows

    def results(self) -> tuple[Array, Array]:
        """Log probabilities and targets of all rows, columns in the order of `classes_`."""
        slots = self.slot_of_class()
        targets = self.part.targets.rows(slice(0, len(self.out)), self.out.shape[1])
        return self.out[:, slots], targets[:, slots]
