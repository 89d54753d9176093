"""The user's cache folder: compiled kernels and data sets live there. ``REGRETLESS_CACHE_DIR`` moves it."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path


def cache_home() -> Path:
    """Where the platform keeps what can be made again; not made here."""
    chosen = os.environ.get("REGRETLESS_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "regretless"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "regretless"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regretless"


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def why_distrusted(folder: Path, own: int = 1) -> str:
    """Why somebody else may have written what is in a folder, or may yet; empty where nobody can have.

    `folder` has no links in it (`os.path.realpath`). It, its files and all folders above it must be ours or root's, and
    the folders writable by nobody else. Above `folder` others may write where only owners may rename (the sticky bit
    of /tmp); and above the first `own` folders a group may, if it is ours alone. Where users have no numbers (Windows)
    there is nothing to look at.
    """
    if not hasattr(os, "getuid"):
        return ""
    us = os.getuid()
    for level, each in enumerate((folder, *folder.parents)):
        found = each.stat()
        if found.st_uid not in (us, 0):
            return f"{each} belongs to another user (number {found.st_uid})"
        sticky = level > 0 and bool(found.st_mode & stat.S_ISVTX)
        group = bool(found.st_mode & stat.S_IWGRP) and (level < own or not _is_ours_alone(found.st_gid))
        if (group or found.st_mode & stat.S_IWOTH) and not sticky:
            return f"{each} can be written by other users (mode {stat.S_IMODE(found.st_mode):o})"
    for name in os.listdir(folder):
        try:
            owner = (folder / name).lstat().st_uid
        except FileNotFoundError:  # another process of ours has just renamed it
            continue
        if owner not in (us, 0):
            return f"{folder / name} belongs to another user (number {owner})"
    return ""


def _is_ours_alone(group: int) -> bool:
    """Whether a group has us as its only member: many systems give each user one, and let it write by default."""
    import grp
    import pwd

    try:
        name, found = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and set(found.gr_mem) <= {name}


def private_folder() -> Path:
    """A fresh folder of ours alone, which goes when this process ends."""
    folder, maker = Path(os.path.realpath(tempfile.mkdtemp(prefix="regretless-"))), os.getpid()

    def remove() -> None:
        if os.getpid() == maker:  # a fork of this process has a copy of this function
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
