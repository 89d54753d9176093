"""Where rows come from: files by name, compressed or not, standard input, open files; and the format of each."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMATS = {
    "csv": "csv",
    "tsv": "tsv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "ipc": "arrow",
    "feather": "arrow",
    "svm": "svmlight",
    "libsvm": "svmlight",
    "svmlight": "svmlight",
    "vw": "vw",
}
NAMES = (*dict.fromkeys(FORMATS.values()), "svmlight0", "svmlight1")
COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
LONGEST = 1 << 24  # bytes of a line
SAMPLE = 4096  # lines that tell what columns hold


def is_path(source: Any) -> bool:
    """Whether the source names a file, which can be opened again."""
    return isinstance(source, str | os.PathLike) and str(source) != "-"


def called(source: Any) -> str:
    """The source in words, for messages."""
    if is_path(source):
        return str(source)
    return "standard input" if isinstance(source, str) else str(getattr(source, "name", type(source).__name__))


def format_of(source: Any, chosen: str | None) -> str:
    """The format asked for, else that of the name; standard input and open files without a name are CSV."""
    if chosen is not None:
        known = FORMATS.get(chosen, chosen)
        if known not in NAMES:
            raise ValueError(f"format={chosen!r}: choose one of {', '.join(NAMES)}.")
        return known
    name = source if is_path(source) else getattr(source, "name", "-")
    if not isinstance(name, str | os.PathLike) or str(name).startswith(("-", "<")):
        return "csv"
    path = Path(name)
    path = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise ValueError(
            f"the format of {name} is not clear from its name: give format=, one of {', '.join(NAMES)} "
            f"(or a name that ends in one of {', '.join('.' + known for known in FORMATS)})."
        )
    return FORMATS[suffix]


def open_lines(source: Any) -> Iterator[bytes]:
    """The lines of a source, one after another as they are asked for, each with its end."""
    if is_path(source):
        path = Path(source)
        try:
            with COMPRESSED.get(path.suffix.lower(), open)(path, "rb") as file:
                yield from _lines(file)
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
            raise ValueError(f"{path} is broken, or not compressed as its name says ({error}).") from error
    else:
        yield from _lines(sys.stdin.buffer if isinstance(source, str) else source)


def _lines(file: Any) -> Iterator[bytes]:
    for number, given in enumerate(iter(lambda: file.readline(LONGEST), file.read(0)), start=1):
        line = given.encode() if isinstance(given, str) else given
        if len(line) >= LONGEST:
            raise ValueError(f"line {number} has more than {LONGEST} bytes: is this a text file?")
        yield line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line  # the byte order mark of some spreadsheets


def at_once(rows: int, read: int) -> int:
    """How many lines to read next: so many, but a block ends where the sample does, however the rest is cut."""
    return min(rows, SAMPLE - read) if read < SAMPLE else rows


def plain(line: bytes) -> str:
    """A line as text for a message, whatever its bytes."""
    return line.decode("utf-8", errors="replace").rstrip("\r\n")
