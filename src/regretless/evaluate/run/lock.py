"""A lock file: one run per folder, one service per log."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NAME = "run.lock"

if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """Held from `take` to `release`. The operating system releases the lock of a process that dies."""

    def __init__(
        self, path: Path, who: str = "another run", advice: str = "wait for it, or choose another folder with --out."
    ) -> None:
        self.path = path
        self._who, self._advice = who, advice
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock; an error if another process holds it."""
        while self._file is None:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                try:
                    _take(file)
                except OSError as error:
                    raise self._refusal(file, error) from error
                if self._is_still_there(file):  # and was not removed by a run that has just ended
                    self._file, file = file, -1
            finally:
                if file >= 0:
                    os.close(file)
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def _refusal(self, file: int, error: OSError) -> ValueError:
        if not isinstance(error, BlockingIOError | PermissionError):
            return ValueError(f"{self.path} cannot be locked ({error}): choose a place on another disk.")
        who = "" if sys.platform == "win32" else os.read(file, 20).decode("ascii", errors="replace").strip()
        process = f" (process {who})" if who.isdigit() else ""
        return ValueError(f"{self._who}{process} is writing to {self.path.parent}: {self._advice}")

    def _is_still_there(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Release the lock and remove its file."""
        if self._file is not None:
            try:
                self.path.unlink(missing_ok=True)
            except PermissionError:  # Windows does not remove open files
                pass
            os.close(self._file)
            self._file = None
