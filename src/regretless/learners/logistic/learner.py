"""GrowingClassifier: how OnlineLogisticRegression learns checked rows, and how its state grows meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from regretless.core.blocks import BLOCK
from regretless.core.interrupts import listen, stretches, uninterrupted
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.tally import LOSS, ROWS
from regretless.core.types import Array
from regretless.learners.logistic import forest, offsets, state, threads
from regretless.learners.logistic.game import ENTRIES, Game
from regretless.learners.logistic.mixing import reserve, write_forecasts
from regretless.learners.logistic.schema import Schema
from regretless.learners.logistic.segments import Part, Segment
from regretless.learners.logistic.settings import Settings
from regretless.learners.logistic.slots import Slots
from regretless.learners.logistic.sparse_game import meet_class, play
from regretless.learners.logistic.sparse_rows import SparseEncoder
from regretless.learners.logistic.state import LogisticState


class Recent:
    """What one-row calls reuse from earlier ones. It is no part of the learner: copies and files start without it."""

    __slots__ = ("dense", "game", "row", "slots")

    def __init__(self) -> None:
        self.slots: Slots | None = None
        self.game: Game | None = None
        self.dense: tuple[Any, dict[Any, Any], Array] | None = None  # encoder, a dictionary, encoded
        self.row: tuple[Any, int, list[Any], Any] | None = None  # encoder, its extent, a dictionary's items, encoded

    def __reduce__(self) -> tuple[type[Recent], tuple[()]]:
        return type(self), ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recent)


class GrowingClassifier(OnlineClassifier):
    """A classifier whose state gets columns and classes at the rows in which they appear."""

    state_: Any  # a LogisticState, or a SparseState for wide rows; and so on
    bad_rows_: int
    _constants: Any
    _settings: Settings
    _encoder: Any
    _open: bool  # whether labels never seen may come
    _recent: Recent
    _learned = ("_settings", "_encoder", "_open", "_recent")
    reads_tables = True
    fewest_classes = 0

    def __setstate__(self, attributes: dict[str, Any]) -> None:  # copies and pickles
        super().__setstate__(attributes)
        if isinstance(self.__dict__.get("state_"), LogisticState):
            self.state_ = state.aligned(self.state_)

    @property
    def _n_classes(self) -> int:  # type: ignore[override]
        """The number of slots: the classes so far, and at least two."""
        return max(2, int(self.classes_.size))

    @property
    def _slots(self) -> Slots:
        slots, labels, places = self._recent.slots, self._labels, self.state_.slots
        if slots is None or slots.labels is not labels or slots.places is not places:
            self._recent.slots = slots = Slots(labels, places, self._open)
        return slots

    @property
    def _game(self) -> Game:
        """The compiled game of the present state."""
        game, state, constants = self._recent.game, self.state_, self._constants
        if game is None or game.state is not state or game.constants is not constants:
            self._recent.game = game = Game(state, constants)
        return game

    def _slot_of_class(self) -> np.ndarray:
        return self._slots.by_class

    def _learn_segment(self, segment: Segment, part: Part, out: Array) -> Iterator[int]:
        """Learn a segment; `out` gets the log probabilities, one column per slot, unless it has no rows.

        Yields the number of rows of the part that are learned, wherever the learner is whole.
        """
        if segment.schema is not None:
            self._widen(segment.schema)
        start, stop = segment.rows.start, segment.rows.stop
        if segment.new_label:
            self._meet_label(segment.rows, part, out)
            yield stop
            listen()
            return
        for begin in range(start, stop, at_once := self._rows_at_once()):
            for some in stretches(min(at_once, stop - begin)):
                self._run_rows(slice(begin + some.start, begin + some.stop), part, out)
                yield begin + some.stop

    def _rows_at_once(self) -> int:
        """How many rows are encoded at a time, which bounds the memory that they take."""
        return max(1, min(BLOCK, ENTRIES // max(self._encoder.width, self.state_.slots.size)))

    def _meet_label(self, row: slice, part: Part, out: Array) -> None:
        """Play a row in which a label appears for the first time."""
        taken, kept_for_it = self._slots.taken, reserve(float(self.state_.tally[ROWS]))
        if taken >= 2:
            self._add_slot(part.block.rows(row, self._encoder.schema))
        self._meet_classes(self._slots.with_label(part.arrivals[row.start]))
        self._run_rows(row, part, out, named=max(2, taken))
        if taken >= 2:
            self.state_.tally[LOSS] -= part.weight[row.start] * math.log(kept_for_it)

    def _run_rows(self, some: slice, part: Part, out: Array, named: int | None = None) -> None:
        """Play some rows. Where their label is new, `named` slots could have a class when they were forecast."""
        K, before, weight = self.state_.slots.size, float(self.state_.tally[ROWS]), part.weight[some]
        said, table = np.empty((len(weight), K)), part.block.rows(some, self._encoder.schema)
        self._run_slots(table, part.targets.rows(some, K), weight, said, self._reserves and named is None)
        self.bad_rows_ += int(np.count_nonzero(part.bad[some]))
        if len(out):
            write_forecasts(said, named or K, before, weight, out[some])

    @property
    def _reserves(self) -> bool:
        """Whether a row keeps some probability for labels never seen."""
        return self._open and self.classes_.size >= 2

    def _run_slots(self, table: Any, Y: Array, weight: Array, out: Array, reserves: bool) -> None:
        if isinstance(self._encoder, SparseEncoder):
            index = self._encoder.index
            self.state_ = play(self.state_, index, table, Y, weight, self._constants, reserves, out)
            if self._encoder.named:
                self.n_features_in_ = max(1, index.n - bool(self._constants.intercept))
            return
        schema = self._encoder.schema
        if not schema.coded:
            self._run_filled(table, Y, weight, out, reserves)
            return
        with uninterrupted():  # offsets and members learn the same rows
            self._run_filled(offsets.play(self.state_, table, Y, weight, schema), Y, weight, out, reserves)

    def _run_filled(self, table: Array, Y: Array, weight: Array, out: Array, reserves: bool) -> None:
        """Play encoded rows that have offsets instead of slots."""
        done, n = 0, len(table)
        while done < n:
            rest = table[done:], Y[done:], weight[done:]
            done += threads.play(self._game, *rest, reserves, out[done:])
            if done < n:
                self.state_ = forest.with_room(self.state_)

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        self._run_slots(X, Y, weight, out, reserves=False)

    def _add_slot(self, row: Any) -> None:
        """Add a class that appears in this row."""
        if isinstance(self._encoder, SparseEncoder):
            s = self._settings
            self.state_, self._constants = meet_class(self.state_, self._encoder.index, row, s.tracks, s.fit_intercept)
            return
        before, schema = self._constants, self._encoder.schema
        after = self._settings.constants(schema.width, self.state_.slots.size + 1, schema.numbers, schema.singly)
        row = offsets.filled(self.state_, row, schema) if schema.coded else row
        self.state_ = state.add_class(self.state_, before.members, after.members, row)
        self._constants = after

    def _widen(self, schema: Schema) -> None:
        """Add the columns of a grown schema."""
        old = self._encoder.schema
        if (schema.kinds, schema.levels, schema.coded) == (old.kinds, old.levels, old.coded):  # one more rare category
            self._encoder = self._encoder.with_schema(schema)
            return
        before, K = self._constants, self.state_.slots.size
        after = self._settings.constants(schema.width, K, schema.numbers, schema.singly)
        seen = schema.rows_seen(old, float(self.state_.tally[ROWS]))
        coded = len(schema.coded)
        self.state_ = state.add_columns(self.state_, before.members, after.members, schema.width, seen, coded)
        self._constants, self._encoder = after, self._encoder.with_schema(schema)
        if len(schema.kinds) > self.n_features_in_:  # dictionaries with new names
            self.n_features_in_ = len(schema.kinds)
            self.feature_names_in_ = np.array(self._encoder.names, dtype=object)
