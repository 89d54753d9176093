"""Thread safety: any number of threads may predict at a time; a thread that learns is alone.

Every public method and property of a learner takes the lock: those that learn exclusively, all others shared.
`TakesTurns` wraps them, whatever a class defines. The lock is not part of the learner's `vars`, parameters or files,
and a copy has its own.

A thread never waits for itself: it may predict inside its own learning call (for example in a callback), or learn
inside its own prediction. Threads wait by short sleeps, so nobody must be notified and an interrupt loses nothing.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import get_ident
from typing import Any
from weakref import WeakSet

from regretless.core.files.mapped import in_memory
from regretless.core.interrupts import listen, uninterrupted

LEARNING = frozenset(
    {"begin", "fit", "partial_fit", "predict_then_learn", "play_block", "learn_one", "act", "feedback"}
)
OF_PARAMETERS = frozenset({"get_params", "set_params"})
SHORTEST, LONGEST = 5e-5, 1e-3  # seconds between two attempts
WRITER = 0
GONE = -1  # the writer of a learner that was copied by a fork in the middle of an update
_creating = threading.Lock()
_turns: WeakSet[Turn] = WeakSet()
_quiet = uninterrupted()


class Turn:
    """The lock of a learner. Each change of it is one atomic step of the interpreter."""

    __slots__ = ("__weakref__", "readers", "waiting", "writer")

    def __init__(self) -> None:
        self.readers: list[int] = []  # threads that predict, once for each call
        self.waiting: list[int] = []  # threads that wait to predict; they go first
        self.writer: dict[int, int] = {}  # WRITER: the thread that learns

    def wait_to_read(self, me: int) -> None:
        """Wait until no other thread learns; `me` is among the readers before and after, whatever happens."""
        self._require_whole()
        if self.writer.get(WRITER) == me or self.readers.count(me) > 1:
            return  # inside a call of the same thread
        try:  # restores the state of the first call: before it, Ctrl-C has no effect
            self.waiting.append(me)
            while self.writer:
                try:
                    self.readers.remove(me)
                    _sleep_while(lambda: bool(self.writer))
                finally:
                    self.readers.append(me)
        finally:
            self.waiting.remove(me)

    def wait_to_write(self, me: int) -> None:
        """Become the writer, and wait until no other thread predicts."""
        self._require_whole()
        reads = me in self.readers

        def taken() -> bool:
            if not self.waiting and self.writer.setdefault(WRITER, me) == me:
                return False
            if reads and self.writer:
                raise RuntimeError(
                    "a prediction tried to learn with its own learner while another thread waits to learn: each would "
                    "wait for the other. Learn after the prediction."
                )
            return True

        _sleep_while(taken)
        _sleep_while(lambda: any(reader != me for reader in list(self.readers)))

    def _require_whole(self) -> None:
        if self.writer.get(WRITER) == GONE:
            raise RuntimeError(
                "this process was forked while another thread was learning with this learner, so its state is "
                "incomplete. Start processes with spawn or forkserver, or load the learner from a file."
            )

    def forked(self) -> None:
        """Forget the threads that do not exist in this process."""
        me = get_ident()
        for threads in (self.readers, self.waiting):
            threads[:] = [thread for thread in threads if thread == me]
        if self.writer.get(WRITER, me) != me:
            self.writer[WRITER] = GONE


def _after_fork() -> None:
    global _creating
    _creating = threading.Lock()
    for turn in _turns:
        turn.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _sleep_while(busy: Callable[[], bool]) -> None:
    pause = SHORTEST
    while busy():
        time.sleep(pause)
        listen()
        pause = min(2.0 * pause, LONGEST)


def turn_of(learner: Any) -> Turn:
    """The learner's lock, created on first use."""
    try:
        return learner._turn
    except AttributeError:
        with _creating:
            if not hasattr(learner, "_turn"):
                learner._turn = Turn()
                _turns.add(learner._turn)
            return learner._turn


def reads(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes nothing: any number of threads may call it."""

    @wraps(verb)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        turn, me = turn_of(self), get_ident()
        readers = turn.readers
        try:
            readers.append(me)
            if turn.writer:
                turn.wait_to_read(me)
            return verb(self, *args, **kwargs)
        finally:
            readers.remove(me)

    return takes_its_turn(in_turn)


@contextmanager
def reading(learner: Any) -> Iterator[None]:
    """The shared lock as a context manager."""
    turn, me = turn_of(learner), get_ident()
    try:
        turn.readers.append(me)
        if turn.writer:
            turn.wait_to_read(me)
        yield
    finally:
        turn.readers.remove(me)


def alone(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes the learner: one thread at a time. It handles Ctrl-C itself."""

    @wraps(verb)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        turn, me = turn_of(self), get_ident()
        writer = turn.writer
        if writer.get(WRITER) == me:  # inside a learning call of the same thread
            return verb(self, *args, **kwargs)
        try:
            if turn.waiting or writer.setdefault(WRITER, me) != me or turn.readers:
                turn.wait_to_write(me)
            return verb(self, *args, **kwargs)
        finally:  # no function call before the lock is free: Ctrl-C could take effect after each
            if writer and writer[WRITER] == me:
                del writer[WRITER]

    return takes_its_turn(in_turn)


def learns(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A method that learns: one thread at a time, and Ctrl-C only where the learner is consistent."""
    locked = alone(verb)

    @wraps(verb)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _quiet:
            return locked(self, *args, **kwargs)

    return takes_its_turn(in_turn)


def takes_its_turn(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A method that handles the lock itself."""
    verb.takes_its_turn = True  # type: ignore[attr-defined]
    return verb


class TakesTurns:
    """Wraps all public methods and properties of a class and its subclasses with the lock."""

    __slots__ = ("_row_call", "_turn")
    _turn: Turn
    _row_call: Any  # see core/kernels/one_row.py; like the lock, it is no part of the learner

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, found in list(vars(cls).items()):
            if name.startswith("_") or name in OF_PARAMETERS or getattr(found, "__isabstractmethod__", False):
                continue
            if inspect.isfunction(found) and not hasattr(found, "takes_its_turn"):
                setattr(cls, name, (learns if name in LEARNING else reads)(found))
            elif isinstance(found, property) and found.fget is not None and not hasattr(found.fget, "takes_its_turn"):
                setattr(cls, name, property(reads(found.fget), found.fset, found.fdel, found.__doc__))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__  # for copies and pickles: everything except the lock

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: in_memory(value) for name, value in state.items()})
