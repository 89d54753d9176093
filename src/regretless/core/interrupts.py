"""Ctrl-C waits until an update is complete, so that a learner is never left half updated.

Compiled code is not interrupted, but an update in several steps could be: reading labels, a panel of rows, the members
of a mixture in turn. Every call that learns is `uninterrupted` (`turns.learns`) and calls `listen` where its state is
consistent, or divides its rows into `stretches`. Inside another `uninterrupted` call, such as a mixture around its
members, `listen` does nothing: the member is consistent there, but the mixture is not.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the wrappers in `signal` take longer than learning a row
import signal
import time
from collections.abc import Iterator
from contextlib import ContextDecorator
from threading import get_ident, main_thread
from typing import Any

SIGINT = int(signal.SIGINT)
FIRST, FIRST_OF_SLOW = 256, 32  # rows of the first stretch
GROWTH = 16
LONG = 0.5  # seconds within which Ctrl-C should take effect


class _Held:
    """The interrupts of the main thread, the only one that Python interrupts."""

    __slots__ = ("depth", "events", "handler")

    def __init__(self) -> None:
        self.depth = 0  # of nested `uninterrupted`
        self.handler: Any = None
        self.events: list[Any] = []


_held = _Held()


def _hold(*event: Any) -> None:
    _held.events.append(event)


def _hear() -> None:
    event, _held.events = _held.events[0], []
    _held.handler(*event)


class uninterrupted(ContextDecorator):  # noqa: N801 (read like a function)
    """Delay Ctrl-C until the block, or the decorated function, is complete.

    >>> with uninterrupted():
    ...     total = sum(range(10))
    >>> total
    45
    """

    def __enter__(self) -> None:
        if get_ident() != main_thread().ident:
            return
        if _held.depth == 0:
            handler = _signal.getsignal(SIGINT)
            _held.events = []
            _held.handler = handler if callable(handler) else None
            if _held.handler is not None:
                _signal.signal(SIGINT, _hold)
        _held.depth += 1

    def __exit__(self, *error: Any) -> None:
        if get_ident() != main_thread().ident:
            return
        _held.depth -= 1
        if _held.depth == 0 and _held.handler is not None:
            _signal.signal(SIGINT, _held.handler)
            if _held.events:
                _hear()


def pressed() -> bool:
    """Whether a Ctrl-C is pending and may take effect now."""
    return bool(_held.events) and _held.depth == 1 and get_ident() == main_thread().ident


def listen() -> None:
    """Let a pending Ctrl-C take effect: to be called where the outermost learner is consistent."""
    if pressed():
        _hear()


def stretches(n: int, least: int = 1, slow: bool = False) -> Iterator[slice]:
    """Divide n rows into stretches of less than a second each, and listen after each.

    Their lengths are multiples of `least`, a power of two, and the last one is not shorter. The first is short for
    learners that may be `slow`.
    """
    first, size = 0, max(FIRST_OF_SLOW if slow else FIRST, least)
    while first < n:
        stop = first + size if n - first - size >= least else n
        began = time.perf_counter()
        yield slice(first, stop)
        listen()
        took = time.perf_counter() - began
        first = stop
        if took > LONG:
            size = max(size // 4, least)
        elif took * GROWTH < LONG:
            size *= GROWTH
