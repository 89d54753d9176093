"""Sources of rows (file names, compressed or not, standard input, open files) and their formats."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regretless.streams.witness import Witness

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
# Limits, so that memory stays bounded for any compressed file.
LONGEST = 1 << 24  # bytes per line
LARGEST_BLOCK = 1 << 25  # bytes of the lines of a block, and of the sample
MOST_COLUMNS = 1 << 17  # in the header of a table
MOST_CELLS = 1 << 24  # rows times columns of a block, where rows may omit columns
SAMPLE = 4096  # lines from which the kinds of columns are inferred


def is_path(source: Any) -> bool:
    """Whether the source is a file name, so that it can be opened again."""
    return isinstance(source, str | os.PathLike) and str(source) != "-"


def called(source: Any) -> str:
    """The name of the source, for messages."""
    if is_path(source):
        return str(source)
    return "standard input" if isinstance(source, str) else str(getattr(source, "name", type(source).__name__))


def format_of(source: Any, chosen: str | None) -> str:
    """The given format, or that of the file name; CSV for standard input and open files without a name."""
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
            f"cannot tell the format of {name} from its name: pass format=, one of {', '.join(NAMES)} "
            f"(or use a name that ends in one of {', '.join('.' + known for known in FORMATS)})."
        )
    return FORMATS[suffix]


def open_lines(source: Any, witness: Witness | None = None, encoding: str | None = None) -> Iterator[bytes]:
    """Iterate over the lines of a source as UTF-8, each with its line ending. `witness` receives every line."""
    if is_path(source):
        path = Path(source)
        try:
            with COMPRESSED.get(path.suffix.lower(), open)(path, "rb") as file:
                yield from _lines(_decoded(file, encoding), witness)
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:  # from the disk, not from the decompressor
                raise
            raise ValueError(f"it is damaged, or not compressed as its name says ({error}).") from error
    else:
        yield from _lines(_decoded(sys.stdin.buffer if isinstance(source, str) else source, encoding), witness)


def _decoded(file: Any, encoding: str | None) -> Any:
    """The file as text, unless it is UTF-8 or text already."""
    if encoding is None or isinstance(file, io.TextIOBase):
        return file
    return io.TextIOWrapper(file, encoding=encoding, newline="\n")


def _lines(file: Any, witness: Witness | None) -> Iterator[bytes]:
    for number, given in enumerate(iter(lambda: file.readline(LONGEST), file.read(0)), start=1):
        line = given.encode() if isinstance(given, str) else given
        if len(line) >= LONGEST:
            raise ValueError(f"line {number} has more than {LONGEST} bytes (LONGEST): is this a text file?")
        if witness is not None:
            witness.see(line)
        yield line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line  # byte order mark
    if witness is not None:
        witness.end()


class Lines:
    """The lines of a source in portions of bounded size. The first lines are the sample, which ends with a portion.

    The end of the sample does not depend on the sizes of the portions.
    """

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._back: deque[bytes] = deque()
        self._ended = False
        self._size = 0
        self.read = 0

    @property
    def sampled(self) -> bool:
        """Whether the whole sample was read."""
        return self._ended or self.read >= SAMPLE or self._size >= LARGEST_BLOCK

    def end_sample(self) -> None:
        """End the sample here."""
        self._ended = True

    def next(self) -> bytes | None:
        """The next line, or None at the end."""
        line = self._back.popleft() if self._back else next(self._lines, None)
        if line is not None:
            self.read += 1
            self._size += len(line)
        return line

    def give_back(self, lines: list[bytes]) -> None:
        """Put the last lines back, so that they are read again."""
        self._back.extendleft(reversed(lines))
        self.read -= len(lines)
        self._size -= sum(map(len, lines))

    def some(self, most: int) -> list[bytes]:
        """The next lines, at most `most`; an empty list at the end."""
        found: list[bytes] = []
        sampled, end = self.sampled, self._size + LARGEST_BLOCK
        while len(found) < most and self._size < end and sampled == self.sampled:
            line = self.next()
            if line is None:
                break
            found.append(line)
        return found


def plain(line: bytes) -> str:
    """A line as text for a message, even if it is not valid UTF-8."""
    return line.decode("utf-8", errors="replace").rstrip("\r\n")
