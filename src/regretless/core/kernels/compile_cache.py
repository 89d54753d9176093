"""The user's cache folder, for compiled kernels and data sets. ``REGRETLESS_CACHE_DIR`` changes it."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path


def cache_home() -> Path:
    """The platform's folder for cached data; it is not created here."""
    chosen = os.environ.get("REGRETLESS_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "regretless"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "regretless"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regretless"


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with access for the user only."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def why_distrusted(folder: Path, own: int = 1) -> str:
    """The reason why another user may have written to a folder, or could; empty if nobody can have.

    `folder` contains no symbolic links (`os.path.realpath`). The folder, its files and all parents must belong to the
    user or root, and nobody else may write to the folders. Parents may be writable by others if only owners may rename
    (the sticky bit of /tmp), and beyond the first `own` folders by a group whose only member is the user. Without user
    ids (Windows) nothing is checked.
    """
    if not hasattr(os, "getuid"):
        return ""
    us = os.getuid()
    for level, each in enumerate((folder, *folder.parents)):
        found = each.stat()
        if found.st_uid not in (us, 0):
            return f"{each} belongs to another user (uid {found.st_uid})"
        sticky = level > 0 and bool(found.st_mode & stat.S_ISVTX)
        group = bool(found.st_mode & stat.S_IWGRP) and (level < own or not _is_ours_alone(found.st_gid))
        if (group or found.st_mode & stat.S_IWOTH) and not sticky:
            return f"{each} is writable by other users (mode {stat.S_IMODE(found.st_mode):o})"
    for name in os.listdir(folder):
        try:
            owner = (folder / name).lstat().st_uid
        except FileNotFoundError:  # just renamed by another process of this user
            continue
        if owner not in (us, 0):
            return f"{folder / name} belongs to another user (uid {owner})"
    return ""


def _is_ours_alone(group: int) -> bool:
    """Whether the user is the only member of a group: many systems give each user a group with write access."""
    import grp
    import pwd

    try:
        name, found = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and set(found.gr_mem) <= {name}


def private_folder() -> Path:
    """A new folder for this user only, deleted when the process ends."""
    folder, maker = Path(os.path.realpath(tempfile.mkdtemp(prefix="regretless-"))), os.getpid()

    def remove() -> None:
        if os.getpid() == maker:  # not in a forked process
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
