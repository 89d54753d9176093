"""Ctrl-C waits until an update is done, so that nothing is left half updated.

Compiled code is not interrupted. An update of several steps is: a panel of rows, the members of a mixture one after
another.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What is done within, or by a function so decorated, is done to its end; only then is the interrupt heard.

    >>> with uninterrupted():
    ...     total = sum(range(10))
    >>> total
    45
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # Python interrupts the main thread alone
        return
    heard: list[Any] = []
    signal.signal(signal.SIGINT, lambda *event: heard.append(event))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard:
            handler(*heard[0])
