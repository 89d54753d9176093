"""Safe output: control characters in text from files or file names are shown, never executed."""

from __future__ import annotations

import codecs
import re
import sys
from typing import Any, TextIO


def printable(text: object, keep: str = "") -> str:
    r"""The text with escapes for characters that a terminal would act on, except those in `keep`.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def printable_json(text: str) -> str:
    r"""Equivalent JSON, with such characters written as \u001b."""
    return re.sub(r"[^\n]", lambda found: _in_json(found[0]), text) if not text.isprintable() else text


def _in_json(letter: str) -> str:
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def say(text: object, file: TextIO | None = None) -> None:
    """Print text that may contain control characters."""
    print(printable(text, keep="\n"), file=file or sys.stdout)


def output() -> Any:
    """A binary file for text output: standard output as it is, or with escapes if it is a terminal."""
    return _Printable(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer


class _Printable:
    """Accepts UTF-8 in pieces that may end within a character."""

    closed = False

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def write(self, data: Any) -> int:
        self.terminal.write(printable(self.decoder.decode(bytes(data)), keep="\n"))
        return len(data)

    def flush(self) -> None:
        self.terminal.flush()

    def close(self) -> None:
        self.flush()
