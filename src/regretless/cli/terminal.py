"""What is printed: text of others, from files or names of files, shows its control characters and obeys none."""

from __future__ import annotations

import codecs
import re
import sys
from typing import Any, TextIO


def printable(text: object, keep: str = "") -> str:
    r"""The text with escapes for characters that a terminal does not show but may act on; `keep` excepted.

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
    r"""JSON that means the same, where such characters are written \u001b."""
    return re.sub(r"[^\n]", lambda found: _in_json(found[0]), text) if not text.isprintable() else text


def _in_json(letter: str) -> str:
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def say(text: object, file: TextIO | None = None) -> None:
    """Print lines of text that may hold what others wrote."""
    print(printable(text, keep="\n"), file=file or sys.stdout)


def output() -> Any:
    """Where bytes of text go that others may read: standard output as it is, or made printable if a terminal is."""
    return _Printable(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer


class _Printable:
    """Takes UTF-8 in pieces that may end within a character."""

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
