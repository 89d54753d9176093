"""Learners in several threads: any number predict at a time, and who learns waits until it is alone.

Every public verb and property of a learner takes its turn: those that learn one at a time, all others side by side.
`TakesTurns` sees to it, whatever a class defines. The lock is no part of what a learner holds: it is not among its
`vars`, its parameters or its files, and a copy has its own.

A thread never waits for itself: it may predict inside its own call that learns (from a callback, say), or learn inside
its own prediction. Waiting is by short sleeps. So there is no one to be woken, and an interrupt loses nothing.
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

from regretless.core.interrupts import listen, uninterrupted

LEARNING = frozenset({"fit", "partial_fit", "predict_then_learn", "play_block", "learn_one", "act", "feedback"})
OF_PARAMETERS = frozenset({"get_params", "set_params"})
SHORTEST, LONGEST = 5e-5, 1e-3  # seconds between two looks whether it is one's turn
WRITER = 0
GONE = -1  # the writer of a learner that a fork has copied in the middle of an update
_creating = threading.Lock()
_turns: WeakSet[Turn] = WeakSet()
_quiet = uninterrupted()


class Turn:
    """Who is at a learner. Each change of it is one step of the interpreter, which no other thread divides."""

    __slots__ = ("__weakref__", "readers", "waiting", "writer")

    def __init__(self) -> None:
        self.readers: list[int] = []  # threads that predict, once for each call
        self.waiting: list[int] = []  # threads that wait to predict: they are next
        self.writer: dict[int, int] = {}  # WRITER: the thread that learns

    def wait_to_read(self, me: int) -> None:
        """Wait until no other thread learns; `me` is among the readers before and after, whatever happens."""
        self._require_whole()
        if self.writer.get(WRITER) == me or self.readers.count(me) > 1:
            return  # inside a call of one's own
        try:  # what is put back has been the first call within: before it, Ctrl-C is not heard
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
                    "a prediction wants to learn with its own learner while another thread waits to do so: each would "
                    "wait for the other. Learn after the prediction."
                )
            return True

        _sleep_while(taken)
        _sleep_while(lambda: any(reader != me for reader in list(self.readers)))

    def _require_whole(self) -> None:
        if self.writer.get(WRITER) == GONE:
            raise RuntimeError(
                "this process was forked while another thread learned with this learner, and holds half an update of "
                "it. Start processes by spawn or forkserver, or load the learner from a file."
            )

    def forked(self) -> None:
        """Forget the threads that are not in this process."""
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
    """The learner's lock, which is made when it is first asked for."""
    try:
        return learner._turn
    except AttributeError:
        with _creating:
            if not hasattr(learner, "_turn"):
                learner._turn = Turn()
                _turns.add(learner._turn)
            return learner._turn


def reads(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that changes nothing: any number of threads may be in it."""

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
    """A stretch of code that `reads`."""
    turn, me = turn_of(learner), get_ident()
    try:
        turn.readers.append(me)
        if turn.writer:
            turn.wait_to_read(me)
        yield
    finally:
        turn.readers.remove(me)


def alone(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that changes the learner: one thread at a time. It sees to Ctrl-C itself."""

    @wraps(verb)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        turn, me = turn_of(self), get_ident()
        writer = turn.writer
        if writer.get(WRITER) == me:  # part of a call that learns already
            return verb(self, *args, **kwargs)
        try:
            if turn.waiting or writer.setdefault(WRITER, me) != me or turn.readers:
                turn.wait_to_write(me)
            return verb(self, *args, **kwargs)
        finally:  # without a call before the lock is free: after each, Ctrl-C may be heard
            if writer and writer[WRITER] == me:
                del writer[WRITER]

    return takes_its_turn(in_turn)


def learns(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that learns: one thread at a time, and no Ctrl-C but where the learner is whole."""
    locked = alone(verb)

    @wraps(verb)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _quiet:
            return locked(self, *args, **kwargs)

    return takes_its_turn(in_turn)


def takes_its_turn(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that sees to its lock itself."""
    verb.takes_its_turn = True  # type: ignore[attr-defined]
    return verb


class TakesTurns:
    """What makes all public verbs and properties of a class, and of those that inherit from it, take their turns."""

    __slots__ = ("_turn",)
    _turn: Turn

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
        return self.__dict__  # what is copied and pickled: all but the lock
