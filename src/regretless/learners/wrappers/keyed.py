"""KeyedLearner: one learner per key, for many keys."""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from regretless.core.errors import NoCertificate
from regretless.core.files import state_checks
from regretless.core.files.stored import Stored
from regretless.core.interrupts import stretches, uninterrupted
from regretless.core.learner import ONE, OnlineLearner
from regretless.core.merging import beginning
from regretless.core.numbers.tally import LOSS, ROWS
from regretless.core.rows import validate
from regretless.core.rows.inputs import UNLEARNED
from regretless.core.scikit_learn import NotFittedError, clone
from regretless.core.turns import learns, turn_of
from regretless.core.types import FLOAT, Array
from regretless.learners.wrappers import routing
from regretless.learners.wrappers.keys import (
    TEXT,
    WHOLE,
    Key,
    Keys,
    KeyTable,
    as_keys,
    kind_of,
    listed,
    require_storable,
)
from regretless.learners.wrappers.texts import CHARACTER

OWN = ("keys", "last_rows")  # the fields of the state that are not the learner's
AT_ONCE = 1 << 23  # numbers of states that are passed over, at least, before Ctrl-C takes effect


@cache
def _state_type(fields: tuple[str, ...]) -> Any:
    plain: Any = namedtuple("KeyedState", fields)  # type: ignore[misc]  # the fields depend on the learner
    return type("KeyedState", (plain,), {"__slots__": (), "__reduce__": _reduced})


def _reduced(state: Any) -> tuple[Any, ...]:
    """For pickle, which would look for the class by its name."""
    return keyed_state, (state._fields, tuple(state))


def keyed_state(fields: tuple[str, ...], arrays: Sequence[NDArray[Any]]) -> Any:
    """The state of all keys: those of `OWN`, then the learner's fields with one more axis."""
    return _state_type(fields)(*arrays)


class _Room:
    """The arrays that a state is the beginning of: they have room for more keys."""

    __slots__ = ("arrays", "stack", "state")

    def __init__(self, learner: Any, state: Any, arrays: Sequence[NDArray[Any]]) -> None:
        self.state, self.arrays, self.stack = state, arrays, routing.Stack(learner, arrays[len(OWN) :])


class KeyedLearner(Stored):
    r"""One learner per key (user, device, shop), all of one kind, in one pass over the rows of all keys.

    **Choose it when** every user, device or shop needs a model of its own: thousands to millions of learners of one
    kind, each with its certificate, in one pass.

    The states of all learners are stacked in shared arrays. A block of rows is routed to them by compiled code, on
    several threads. A key is text or an integer, and its learner is created with its first row. For a key without rows
    `predict_proba` returns the forecast of a new learner.

    **Guarantee.** Each key forecasts and learns as a separate learner of its rows would, to the bit (with panels, from
    224 numbers per state on, up to rounding), with its own certificate. With `pooled=True` one more learner learns the
    rows of all keys, and a new key starts from its state at that row instead of from nothing: its certificate then
    covers these rows and its own together, against the best single model for all of them.

    Parameters
    ----------
    learner : a second-order or first-order learner on numeric arrays. It is not changed. Compiled code routes the rows,
        except for configurations whose rows need more than one kernel, such as a loss of your own: these are called
        once per key and block.
    max_keys : the largest number of keys. A block with a key beyond it is refused as a whole, and nothing is learned:
        make room with `remove`, for example of `idle_keys(n)`, or raise the limit with `set_params`.
    pooled : whether new keys start from a learner of the rows of all keys. It makes a row about twice as expensive.

    Attributes
    ----------
    keys_ : the keys, in the order of their first rows.
    learner_ : the learner from which a new key starts: one without rows, or, if `pooled`, that of all rows.
    total_losses_, row_counts_, last_rows_ : for each key of `keys_` the total loss and the number of rows (both, with
        `pooled`, including those it started from), and the number of its last row among all rows, counted from 1.
    classes_, n_features_in_ : as in the learner.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, KeyedLearner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 5)) / np.sqrt(5)
    >>> shops = rng.choice(["Bergen", "Lyon", "Turin"], size=6000)
    >>> sign = np.where(shops == "Turin", -1.0, 1.0)  # customers in Turin like the opposite
    >>> y = rng.random(6000) < 1 / (1 + np.exp(-sign * (X @ [3, -3, 2, 0, 1])))
    >>> learner = KeyedLearner(AIOLI(radius=5.0), max_keys=1000)
    >>> p = learner.predict_then_learn(shops, X, y)
    >>> loss = -np.log(np.where(y, p[:, 1], p[:, 0])).mean()
    >>> print(f"{loss:.4f}; without keys {AIOLI(radius=5.0).fit(X, y).total_loss_ / 6000:.4f}")
    0.4550; without keys 0.6771
    >>> learner.keys_, learner.regret_certificates(["Turin"]).round(1).tolist()
    (['Bergen', 'Turin', 'Lyon'], [30.3])

    References
    ----------
    See the learner passed as `learner`.
    """

    holds = {"learner": "learner_"}
    learner_: Any
    _table: KeyTable
    _n_rows: int  # of all keys
    _width: int  # characters per key, 0 for integers
    _kind: str
    _learned: ClassVar[tuple[str, ...]] = ("_table", "_n_rows", "_width", "_kind")
    __slots__ = ("_made_room",)  # like the lock, it is no part of the learner
    _made_room: _Room

    def __init__(self, learner: OnlineLearner, max_keys: int = 1_000_000, pooled: bool = False) -> None:
        self.learner = learner
        self.max_keys = max_keys
        self.pooled = pooled

    @classmethod
    def _example(cls) -> Self:
        """A small one that can be played."""
        from regretless.learners.second_order.aioli import AIOLI

        return cls(AIOLI())

    # ------------------------------------------------------------------ the first rows

    def begin(self, features: int | list[str], classes: Any = None) -> Self:
        """Begin before the first row, so that there are forecasts before there is a label (`OnlineLearner.begin`)."""
        if hasattr(self, "state_"):
            raise ValueError("this KeyedLearner has begun already: use a clone to start again.")
        with self._untouched_on_error():
            self._begin_from(OnlineLearner.begin(self._unlearned(), features, classes))
        return self

    def _unlearned(self) -> Any:
        """A new learner for one key."""
        learner = self.learner
        if not isinstance(learner, OnlineLearner):
            raise ValueError(f"learner={learner!r} is not a learner of regretless: pass one, such as AIOLI().")
        if learner.grows or learner.holds or learner.reads_tables:
            raise ValueError(
                f"learner={learner!r}: the state of {type(learner).__name__} grows, or holds other learners, and the "
                "states of all keys are arrays of one size. Use AIOLI, FOLKLORE, GAF, VovkAzouryWarmuth, ONS or a "
                "first-order learner, or a dictionary of learners."
            )
        validate.whole("max_keys", self.max_keys, 1)
        if not isinstance(self.pooled, bool | np.bool_):
            raise ValueError(f"pooled={self.pooled!r}: pass True or False.")
        return clone(learner)

    def _begin_from(self, learner: Any) -> None:
        """Take over the columns and classes of a learner that has begun."""
        self.n_features_in_ = learner.n_features_in_
        if hasattr(learner, "feature_names_in_"):
            self.feature_names_in_ = learner.feature_names_in_
        if hasattr(learner, "classes_"):
            self._meet_classes(learner._labels)
        if getattr(learner, "n_outputs_", 1) > 1:
            raise ValueError(f"targets of {learner.n_outputs_} numbers: KeyedLearner takes one number per row.")
        self._begin_with(learner)

    def _begin(self, n_features: int) -> None:
        self._begin_with(self._unlearned()._begin_like(self, getattr(self, "_labels", None)))

    def _begin_with(self, learner: Any) -> None:
        self.learner_ = learner
        self.params_ = self.get_params(deep=False)
        self._n_rows = self.__dict__.get("_n_rows", 0)
        self._kind, self._width = self.__dict__.get("_kind", ""), self.__dict__.get("_width", 0)
        empty = [np.empty((0, *array.shape), dtype=array.dtype) for array in learner.state_]
        keys = np.empty((0, self._width), dtype=np.uint32) if self._kind == TEXT else np.empty(0, dtype=np.int64)
        self._set_state(keys, np.empty(0, dtype=np.int64), *empty)

    def _set_state(self, *arrays: NDArray[Any]) -> None:
        self.state_ = _state_type((*OWN, *self.learner_.state_._fields))(*arrays)

    @property
    def _stack(self) -> Any:
        """The states of all keys, in the learner's type."""
        return type(self.learner_.state_)(*self.state_[len(OWN) :])

    @property
    def grows(self) -> tuple[str, ...]:  # type: ignore[override]
        """All fields of the state: their length is the number of keys."""
        return self.state_._fields if "state_" in self.__dict__ else OWN

    # ------------------------------------------------------------------ learning

    @learns
    def learn(self, keys: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn a block of rows, in order, each with the learner of its key. All are checked before any is learned.

        `keys` has one key per row; the other arguments are those of the learner's `partial_fit`.
        """
        self._play(keys, X, y, classes, sample_weight)
        return self

    def predict_then_learn(self, keys: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """`learn`, and return the forecast of each row, made before its label is used."""
        out = self._play(keys, X, y, classes, sample_weight)
        found: Array = self.learner_._said(out)
        return found

    def _play(self, keys: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Array:
        _require_dense(X)
        with self._untouched_on_error():
            begun = hasattr(self, "state_")
            learner = self.learner_ if begun else self._unlearned()
            if begun and classes is None and sample_weight is None and _is_plain_row(X, y, learner):
                learner._check_rows(X, ONE)
                Y, weight = learner._target(y[0], None), ONE
            else:
                X, Y, weight = learner._take_in(X, y, classes, sample_weight)
            given = as_keys(keys, len(Y))
            if not begun:
                self._begin_from(learner)
            numbers = self._add(given)
        out: Array = learner._new_forecasts(len(Y))
        compiled = self._room().stack.router(X) is not None
        if compiled and len(Y) <= routing.FEW:
            self._learn_stretch(numbers, X, Y, weight, out)
            return out
        for rows in stretches(len(Y), self._least_rows() if compiled else 1, slow=not compiled):
            with uninterrupted():
                self._learn_stretch(numbers[rows], X[rows], Y[rows], weight[rows], out[rows])
        return out

    def _least_rows(self) -> int:
        """Rows that are routed at once: the more there are, the more of them belong to one key."""
        return 1 << (AT_ONCE // sum(array.size for array in self.learner_.state_)).bit_length()

    def _learn_stretch(self, numbers: NDArray[np.int64], X: Array, Y: Array, weight: Array, out: Array) -> None:
        stack, last_rows = self._room().stack, self.state_.last_rows
        groups = routing.groups_of(numbers, len(last_rows))
        if self.pooled:
            stack.run_pool(groups, last_rows[groups.numbers] == 0, X, Y, weight)
        stack.run(groups, X, Y, weight, out)
        last_rows[groups.numbers] = groups.last_rows() + self._n_rows  # the last one of a key counts
        self._n_rows += len(Y)

    def _find(self, keys: Keys) -> NDArray[np.int64]:
        """The number of each row's key, -1 for a new one."""
        table = self._keys()
        table.require_kind(keys)
        return table.find(keys)

    def _add(self, keys: Keys) -> NDArray[np.int64]:
        """The number of each row's key, with learners for the new keys."""
        table = self._keys()
        table.require_kind(keys)
        require_storable(keys)
        held = len(table)
        numbers = table.add(keys)
        if len(table) == held:
            return numbers
        try:
            new = table.since(held)
            self._require_room(new, held)
            self._make_room(new)
        except BaseException:
            table.forget(held)
            raise
        table.kind = self._kind = kind_of(keys)
        return numbers

    def _require_room(self, new: NDArray[Any], held: int) -> None:
        """Refuse keys beyond `max_keys`."""
        most = validate.whole("max_keys", self.max_keys, 1)
        if held + len(new) > most:
            raise ValueError(
                f"there are {held:,} keys, and {len(new):,} more in this call, the first of them "
                f"{listed(new[:1])[0]!r}; max_keys={most}: remove keys, for example "
                f"remove(idle_keys({held + len(new) - most})), or raise the limit with set_params(max_keys=...). "
                f"{UNLEARNED}"
            )
        self.params_["max_keys"] = most

    def _make_room(self, new: NDArray[Any]) -> None:
        """Append learners without rows (or, for a pool, with those so far) for new keys."""
        room, n = self._room(), len(self)
        arrays, more = room.arrays, n + len(new)
        if len(arrays[0]) < more:
            arrays = [_longer(array[:n], more, self.max_keys) for array in arrays]
        if new.ndim == 2:
            longest = max(1, int(np.flatnonzero(np.append(True, new.any(axis=0)))[-1]))
            if longest > self._width:
                wider = np.zeros((len(arrays[0]), longest), dtype=CHARACTER)
                if n:
                    wider[:n, : self._width] = self.state_.keys
                arrays, self._width = [wider, *arrays[1:]], longest
            new = new[:, : self._width]
        grown = [array[:more] for array in arrays]
        for array, start in zip(grown, (new, 0, *self.learner_.state_), strict=True):
            array[n:] = start
        self.state_ = type(self.state_)(*grown)
        if arrays is room.arrays:
            room.state = self.state_
        else:
            self._made_room = _Room(self.learner_, self.state_, arrays)

    def _room(self) -> _Room:
        """The arrays of the present state."""
        try:
            room: _Room = self._made_room
        except AttributeError:
            self._made_room = room = _Room(self.learner_, self.state_, self.state_)
            return room
        if room.state is not self.state_:
            self._made_room = room = _Room(self.learner_, self.state_, self.state_)
        return room

    def _keys(self) -> KeyTable:
        """The table of keys, created from the state after loading."""
        if "_table" not in self.__dict__:
            self._table = KeyTable(self.state_.keys, self._kind)
        return self._table

    # ------------------------------------------------------------------ forecasts

    def predict_proba(self, keys: Any, X: Any) -> Array:
        """Probabilities (n, K) of each row by the learner of its key; a new key's by `learner_`. Changes nothing."""
        found: Array = self._predictor(keys, X).predict_proba(X)
        return found

    def predict(self, keys: Any, X: Any) -> np.ndarray:
        """The most probable class of each row, or its predicted number."""
        found: np.ndarray = self._predictor(keys, X).predict(X)
        return found

    def _predictor(self, keys: Any, X: Any) -> Any:
        """A learner whose forecasts are those of the learners of these keys."""
        self._require_begun()
        _require_dense(X)
        numbers = self._find(as_keys(keys, len(X)))
        stack, one = self._room().stack, object.__new__(type(self.learner_))  # `copy` takes longer than all the rest
        one.__dict__.update(self.learner_.__dict__)
        one._turn = turn_of(self)
        one._forecast = lambda X, out: stack.forecast(numbers, X, out)
        return one

    # ------------------------------------------------------------------ single keys

    @property
    def keys_(self) -> list[Key]:
        """The keys, in the order of their first rows."""
        self._require_begun()
        return listed(self.state_.keys)

    def __len__(self) -> int:
        return len(self.state_.last_rows) if hasattr(self, "state_") else 0

    @property
    def total_losses_(self) -> Array:
        """The total loss of each key."""
        return self._tallied(LOSS)

    @property
    def row_counts_(self) -> Array:
        """The number of rows of each key."""
        return self._tallied(ROWS)

    def _tallied(self, field: int) -> Array:
        self._require_begun()
        found: Array = self.state_.tally[:, field].copy()
        return found

    @property
    def last_rows_(self) -> NDArray[np.int64]:
        """The number of each key's last row among all rows, counted from 1; 0 for a key without rows."""
        self._require_begun()
        found: NDArray[np.int64] = self.state_.last_rows.copy()
        return found

    def idle_keys(self, n: int) -> list[Key]:
        """The n keys whose last rows are the longest ago, oldest first."""
        self._require_begun()
        held = self.keys_
        return [held[i] for i in np.argsort(self.state_.last_rows, kind="stable")[: validate.whole("n", n, 0)]]

    def learner_of(self, key: Key) -> Any:
        """The learner of one key as a separate learner, which can be saved. It is a copy."""
        return self._copy(self._numbers_of([key])[0])

    def regret_certificates(self, keys: Any = None, comparator_norm: float | None = None) -> Array:
        """The certificate of each key, for all keys in the order of `keys_` by default; NaN where there is none."""
        self._require_begun()
        numbers = range(len(self)) if keys is None else self._numbers_of(keys)
        found, one, stack = np.empty(len(numbers)), copy.copy(self.learner_), self._stack
        for i, number in enumerate(numbers):
            one.state_ = routing.state_at(stack, number)
            try:
                found[i] = one.regret_certificate(comparator_norm)
            except NoCertificate:
                found[i] = np.nan
        return found

    @learns
    def put(self, key: Key, learner: Any) -> Self:
        """Give a key the state of a separate learner, such as one that `learner_of` returned and `remove` removed."""
        self._require_begun()
        mine = self.learner_
        if type(learner) is not type(mine) or not hasattr(learner, "state_") or learner.params_ != mine.params_:
            raise ValueError(f"learner={learner!r}: give a fitted learner like {mine!r}, with the same parameters.")
        classes, others = (getattr(each, "classes_", np.empty(0)).tolist() for each in (mine, learner))
        if classes != others or learner.n_features_in_ != mine.n_features_in_:
            raise ValueError(
                f"learner={learner!r} has {learner.n_features_in_} features and the classes {others}, and this one has "
                f"{mine.n_features_in_} and {classes}."
            )
        if learner._parts > 1:
            raise ValueError(
                f"learner={learner!r} was merged, and a merged learner forecasts with constants of its own."
            )
        number = self._add(as_keys([key]))[0]
        for arrays, array in zip(self._stack, learner.state_, strict=True):
            arrays[number] = array
        self.state_.last_rows[number] = max(1, self._n_rows)
        return self

    @learns
    def remove(self, keys: Any) -> Self:
        """Forget these keys. The next row of such a key creates a new learner, unless `put` gives it one."""
        stays = np.ones(len(self), dtype=bool)
        stays[self._numbers_of(keys)] = False
        kept = [array[stays] for array in self.state_]
        table = KeyTable(kept[0], self._kind)
        with uninterrupted():
            self._set_state(*kept)
            self._table = table
        return self

    def _numbers_of(self, keys: Any) -> list[int]:
        self._require_begun()
        given = as_keys(keys)
        numbers = self._find(given).tolist()
        if -1 in numbers:
            raise KeyError(
                f"key {_plain(given[numbers.index(-1)])!r} has no learner: it has had no row, or was removed."
            )
        return numbers

    def _copy(self, number: int) -> Any:
        own = beginning(self.learner_)
        own.state_ = type(own.state_)(*(arrays[number].copy() for arrays in self._stack))
        return own

    def _require_begun(self) -> None:
        if not hasattr(self, "state_"):
            raise NotFittedError("This KeyedLearner is not fitted: call learn, predict_then_learn or begin first.")

    # ------------------------------------------------------------------ files

    def _aside(self) -> dict[str, Any]:
        return {"rows": self._n_rows, "kind": self._kind, "width": self._width}

    def _take_up(self, aside: dict[str, Any]) -> None:
        state_checks.require(
            aside.keys() == {"rows", "kind", "width"}, f"aside={aside!r} is not that of a KeyedLearner"
        )
        state_checks.require(aside["kind"] in ("", TEXT, WHOLE), f"kind={aside['kind']!r} of keys is unknown")
        self._n_rows = validate.whole("rows", aside["rows"], 0)
        self._kind, self._width = aside["kind"], validate.whole("width", aside["width"], 0)

    def _check_state(self) -> None:
        """Check the keys, and the state of each."""
        last = self.state_.last_rows
        state_checks.whole("last_rows", last, self._n_rows)
        state_checks.require(len(self._keys()) == len(last), "a key occurs twice")
        wrong = self.learner_._first_invalid(self._stack)
        if wrong >= 0:
            one = self._copy(wrong)
            try:
                one._check_state()
            except ValueError as error:
                raise ValueError(f"key {self.keys_[wrong]!r}: {error}") from error


def _longer(array: NDArray[Any], n: int, most: int) -> NDArray[Any]:
    """The array with room for n lines, and for as many again, so that growing costs little. They are not yet filled."""
    room = np.empty((min(max(2 * len(array), n, 16), most), *array.shape[1:]), dtype=array.dtype)
    room[: len(array)] = array
    return room


def _plain(key: Any) -> Any:
    """A key as a Python object, for messages."""
    return key.item() if isinstance(key, np.generic) else key


def _is_plain_row(X: Any, y: Any, learner: Any) -> bool:
    """Whether this is a block of one row in the form of the kernels, which needs fewer checks than others."""
    return (
        type(X) is np.ndarray
        and X.shape == (1, learner.n_features_in_)
        and X.dtype is FLOAT
        and X.flags.carray
        and "feature_names_in_" not in learner.__dict__
        and (len(y) == 1 if type(y) is list else type(y) is np.ndarray and y.shape == (1,))
    )


def _require_dense(X: Any) -> None:
    if sparse.issparse(X):
        raise ValueError("X is sparse: KeyedLearner takes dense rows. Use X.toarray() on blocks of rows.")
