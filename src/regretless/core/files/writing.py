"""Atomic writing: files appear complete or not at all, and symbolic links are never followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def replacing(path: Path, room: Path | None = None) -> Iterator[BinaryIO]:
    """Yields a new file that replaces `path` once it is complete.

    It is written to `room` (by default the folder of `path`) under a new name. A symbolic link at `path` is replaced,
    not followed.
    """
    temporary = (room or path.parent) / f"{path.name}.{uuid4().hex}.part"
    try:
        with open(temporary, "xb") as file:  # exclusive: fails for an existing file or link
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str, room: Path | None = None) -> None:
    """Write the text as UTF-8, atomically."""
    with replacing(path, room) as file:
        file.write(text.encode("utf-8"))
