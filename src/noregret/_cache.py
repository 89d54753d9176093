"""The user's cache folder: compiled kernels and data sets live there. ``NOREGRET_CACHE_DIR`` moves it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_home() -> Path:
    """Where the platform keeps what can be made again; not made here."""
    chosen = os.environ.get("NOREGRET_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "noregret"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "noregret"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "noregret"
