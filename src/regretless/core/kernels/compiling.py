"""A line in the terminal while kernels are compiled: that happens once per machine, and may take half a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds of compilation before anything is shown
ERASED = "\r\033[K"


class _Line:
    """What is shown, by all compilations of this process; Numba compiles one function at a time."""

    def __init__(self) -> None:
        self.depth = self.functions = 0
        self.seconds = self.began = 0.0
        self.others = 0  # progress bars in the same terminal
        self.is_shown = False

    @contextmanager
    def while_compiling(self) -> Iterator[None]:
        """Around the compilation of one function, which may compile those that it calls."""
        if not self.depth:
            self.began = time.monotonic()
        self.depth += 1
        self.functions += 1
        self._show()
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                self.seconds += time.monotonic() - self.began
                if self.is_shown:
                    print(ERASED, end="", file=sys.stderr, flush=True)
                    self.is_shown = False

    def _show(self) -> None:
        seconds = self.seconds + time.monotonic() - self.began
        if seconds >= PATIENCE and not self.others and sys.stderr is not None and sys.stderr.isatty():
            text = f"regretless is compiling (once per machine): {self.functions} functions, {seconds:.0f} s"
            print(f"{ERASED}{text}", end="", file=sys.stderr, flush=True)
            self.is_shown = True

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Inside, nothing is shown: something else is."""
        self.others += 1
        try:
            yield
        finally:
            self.others -= 1


line = _Line()
