"""BanditLearner: the base class of learners that play a label and observe only whether it was correct.

The methods `act(x)` and `feedback(x, action, correct)` alternate. A subclass implements

- `_prepare(n_features, n_classes)`: the validated numbers;
- `_start(n_features, n_classes)`: the state before the first round, with the fields `x`, `pending` and `tally`;
- `_check(row)`: refuses invalid rows;
- `_policy(row)`: the probability of exploring, and the distribution to draw from otherwise;
- `_learn(row, k, correct, label)`: the update after a round.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.files import state_checks
from regretless.core.files.stored import Stored
from regretless.core.interrupts import listen, uninterrupted
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.tally import ROWS
from regretless.core.rows import validate
from regretless.core.rows.inputs import as_block, as_floats, has_names, in_rows
from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import NotFittedError, clone, validate_data
from regretless.core.types import Array
from regretless.theory.domains import Competition

ROUNDS, MISTAKES, EXPLORED, LEARNED = range(4)  # of the tally: rounds finished, wrong, explored, and with an update
OPEN, ACTION, PROBABILITY, EXPLORING = range(4)  # of the round between `act` and `feedback`


class BanditState(NamedTuple):
    """The state of a bandit learner that holds another one, apart from what that one has learned."""

    exploration: Array  # (1,): the current probability of exploring
    x: Array  # (d,): the row of the open round
    pending: Array  # (4,): whether a round is open, the action played, its probability, whether it explores
    tally: Array  # (4,): rounds finished, mistakes, explorations, rounds with an update


class LinearBanditState(NamedTuple):
    """The state of a bandit learner with its own weights."""

    W: Array  # (K, d)
    x: Array
    pending: Array
    tally: Array


class BanditLearner(Stored):
    """A learner that plays one label per round and observes whether it was correct."""

    n_classes: int | None
    classes: Any
    random_state: int
    needs_labels: ClassVar[bool] = False  # whether `feedback` needs the true label: then the feedback is not a bandit's
    _learned = ("_seed",)

    # ------------------------------------------------------------------ what a subclass implements

    @abstractmethod
    def _prepare(self, n_features: int, n_classes: int) -> Any: ...

    @abstractmethod
    def _start(self, n_features: int, n_classes: int) -> NamedTuple: ...

    @abstractmethod
    def _check(self, row: Array) -> None: ...

    @abstractmethod
    def _policy(self, row: Array) -> tuple[float, Array]: ...

    @abstractmethod
    def _learn(self, row: Array, k: int, correct: bool, label: int | None) -> bool:
        """Learn from a round in which class k was played. Returns whether there was an update."""

    @property
    def competes_with(self) -> Competition | None:
        """The loss and the set of comparators, or None."""
        return None

    # ------------------------------------------------------------------ the game

    def act(self, x: Any) -> tuple[Any, float]:
        """Play a label for the row x. Returns the label and its probability."""
        with self._untouched_on_error():
            row = self._row(x)
            if "state_" not in vars(self):
                self.n_features_in_ = row.shape[1]
                self._meet_classes(self._declared())
                self._begin(row.shape[1])
            elif self.state_.pending[OPEN]:
                raise ValueError(
                    f"round {self.rounds_}: there was no feedback yet. Call feedback(x, action, correct) before the "
                    "next act(x). Nothing was changed."
                )
            self._check(row)
            explore, p = self._policy(row)
            # one generator per round, from the seed and the number of the round: no generator has to be saved
            rng = np.random.default_rng([self._seed, self.rounds_])
            exploring = bool(rng.random() < explore)
            k = int(rng.integers(p.size)) if exploring else drawn(p, rng.random())
            probability = float(explore / p.size + (1.0 - explore) * p[k])
            listen()  # the last point at which an interrupt leaves no open round
        self.state_.x[:] = row[0]
        self.state_.pending[:] = 1.0, k, probability, exploring
        return self.classes_[k], probability

    def feedback(self, x: Any, action: Any, correct: bool) -> None:
        """End the round; `correct` says whether `action`, which `act` chose for x, was the label."""
        self._end(x, action, correct, None)

    def _end(self, x: Any, action: Any, correct: bool, label: Any) -> None:
        if "state_" not in vars(self) or not self.state_.pending[OPEN]:
            raise ValueError("feedback without an open round: call act(x) first.")
        state, row = self.state_, self._row(x)
        if not np.array_equal(row[0], state.x):
            raise BadRow(
                f"round {self.rounds_}: this x is not the row of the last act(x). Pass that row; nothing was learned "
                "from this call."
            )
        k = int(state.pending[ACTION])
        if self._labels.code.get(plain(action), -1) != k:
            raise BadRow(
                f"round {self.rounds_}: action={action!r} was not played, act(x) chose {self.classes_[k]!r}. Pass the "
                "action that was played; nothing was learned from this call."
            )
        if not isinstance(correct, bool | np.bool_):
            raise BadRow(f"round {self.rounds_}: correct={correct!r} must be True or False.")
        true = None if label is None else self._labels.code.get(plain(label), -1)
        if true is not None and true < 0:
            raise self._labels.unknown(label, 0)
        if true is not None and (true == k) != correct:
            raise BadRow(f"round {self.rounds_}: correct={correct!r}, but label={label!r} and action={action!r}.")
        with uninterrupted():
            learned = self._learn(row, k, bool(correct), true)
            state.tally[:] += 1.0, not correct, state.pending[EXPLORING], learned
            self._close()
            self._next_round()

    def _close(self) -> None:
        """Close the round."""
        self.state_.pending[:] = 0.0
        self.state_.x[:] = 0.0

    def _next_round(self) -> None:
        """Called between two rounds."""

    def probabilities(self, x: Any) -> Array:
        """The probability (K,) of every action at x, in the order of `classes_`. Changes nothing."""
        self._require_begun()
        row = self._row(x)
        self._check(row)
        explore, p = self._policy(row)
        found: Array = explore / p.size + (1.0 - explore) * p
        return found

    def _require_begun(self) -> None:
        if "state_" not in vars(self):
            raise NotFittedError(f"This {type(self).__name__} is not fitted: call act(x) first.")

    @property
    def rounds_(self) -> int:
        """The number of finished rounds."""
        self._require_begun()
        return int(self.state_.tally[ROUNDS])

    @property
    def mistakes_(self) -> int:
        """The number of wrong labels in the finished rounds."""
        self._require_begun()
        return int(self.state_.tally[MISTAKES])

    # ------------------------------------------------------------------ rows and labels

    def _row(self, x: Any) -> Array:
        """One row as a block of length one, copied."""
        if has_names(x):
            validate_data(self, as_block(x), reset="state_" not in vars(self), skip_check_array=True)
        given = x.toarray().ravel() if sparse.issparse(x) else x
        row = as_floats(given, in_rows(getattr(self, "feature_names_in_", None))).copy()
        d = vars(self).get("n_features_in_")
        if row.ndim != 1 or row.size != (d or max(row.size, 1)):
            raise BadRow(f"x has shape {row.shape}: give one row, {d or 'one or more'} features. Nothing was learned.")
        return row.reshape(1, -1)

    def _declared(self) -> Labels:
        """The labels of the parameters: feedback never reveals them."""
        n = self.n_classes
        if self.classes is None and n is None:
            raise ValueError("Labels are never revealed: pass n_classes or classes.")
        if n is not None:
            validate.whole("n_classes", n, 2)
        labels = Labels.of(None, np.arange(n or 0) if self.classes is None else self.classes)
        if n is not None and labels.classes.size != n:
            raise ValueError(f"n_classes={n}, but classes={labels.classes.tolist()}: leave one of them out.")
        return labels

    @property
    def _n_classes(self) -> int:
        return int(self.classes_.size)

    def _begin(self, n_features: int) -> None:
        self._seed = validate.whole("random_state", self.random_state, 0)
        self._constants = self._prepare(n_features, self._n_classes)
        self.params_ = self.get_params(deep=False)
        self.state_ = self._start(n_features, self._n_classes)

    # ------------------------------------------------------------------ files

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        """The approximate size of a fresh state: a file with fewer numbers is refused."""
        return n_features

    def _check_state(self) -> None:
        """Refuse a state that no game leads to (`state_checks.py`): a file may contain anything."""
        K, state = self._n_classes, self.state_
        # n_classes first: a wrong one would allocate that many labels
        same = self.n_classes in (None, K) and self._declared().classes.tolist() == self.classes_.tolist()
        state_checks.require(same, f"the classes {self.classes_.tolist()} are not those of the parameters")
        state_checks.whole("tally, rounds", state.tally[ROUNDS])
        state_checks.whole("tally", state.tally, float(state.tally[ROUNDS]))
        opened, action, probability, exploring = state.pending.tolist()
        if not opened:
            state_checks.require(
                not state.pending.any() and not state.x.any(), "pending: no round is open, but it has a row"
            )
            return
        state_checks.require(opened == 1.0 and exploring in (0.0, 1.0), "pending: flags other than 0 and 1")
        state_checks.whole("pending, action", action, K - 1)
        state_checks.within("pending, probability", probability, 1.0 / (2.0 * validate.HEAVIEST), 1.0)
        self._check(state.x[None])


class BanditReduction(BanditLearner):
    """A bandit learner that holds a learner with full information."""

    estimator: OnlineClassifier
    estimator_: OnlineClassifier
    state_: BanditState
    holds = {"estimator": "estimator_"}

    def _fresh(self, given: Any, n_features: int) -> Any:
        """A clone of a learner, ready for its first row."""
        if not isinstance(given, OnlineClassifier) or getattr(given, "_regresses", False):
            raise ValueError(f"estimator={given!r}: give a classifier of regretless, such as FOLKLORE().")
        return clone(given)._begin_like(self, self._labels)

    def _start(self, n_features: int, n_classes: int) -> BanditState:
        return BanditState(np.zeros(1), np.zeros(n_features), np.zeros(4), np.zeros(4))

    def _check_state(self) -> None:
        super()._check_state()
        state_checks.within("exploration", self.state_.exploration, 0.0, 1.0)
        state_checks.require(
            self.estimator_.state_.tally[ROWS] <= self.state_.tally[LEARNED],
            "tally: the base learner has learned more rounds",
        )

    def _teach(self, row: Array, k: int, weight: float = 1.0) -> None:
        """The base learner learns that class k is the label of the row."""
        base = self.estimator_
        base._run(row, base._labels.target(k), np.array([weight]), base._new_forecasts(1))


def drawn(p: Array, u: float) -> int:
    """The class that the uniform number u draws from the distribution p."""
    return min(int(np.searchsorted(np.cumsum(p), u, side="right")), p.size - 1)


def certain(k: int, n_classes: int) -> Array:
    """The distribution concentrated on class k."""
    p = np.zeros(n_classes)
    p[k] = 1.0
    return p


def plain(label: Any) -> Any:
    """The label as a hashable Python object, or None."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if getattr(label, "__hash__", None) else None
