"""Files that appear whole or not at all, and never through a link that somebody left in their place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def replacing(path: Path, room: Path | None = None) -> Iterator[BinaryIO]:
    """Yields a new file, which takes the place of `path` once all is written.

    It is written in `room` (by default beside its place), under a name that nothing has. A symbolic link at `path` is
    replaced, not followed.
    """
    temporary = (room or path.parent) / f"{path.name}.{uuid4().hex}.part"
    try:
        with open(temporary, "xb") as file:  # exclusive: an existing file, or a link, is an error
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str, room: Path | None = None) -> None:
    """The text as UTF-8, whole or not at all."""
    with replacing(path, room) as file:
        file.write(text.encode("utf-8"))
