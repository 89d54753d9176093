"""API keys: a file of hashes, with names and scopes.

A key is random, 32 bytes, so its plain SHA-256 cannot be guessed. The file is read again when it changes: a key that is
revoked stops working within a second.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from pathlib import Path

import msgspec

from regretless.core.files.writing import replacing

SCOPES = ("predict", "label", "read", "admin")
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Key(msgspec.Struct, forbid_unknown_fields=True):
    """A key as it is stored."""

    name: str
    sha256: str
    scopes: list[str]
    created: float


class KeyFile:
    """Keys in a JSON file; see `regretless keys`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Key]:
        """All keys; none if there is no file yet."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=list[Key])
        except FileNotFoundError:
            return []
        except msgspec.DecodeError as error:
            raise ValueError(f"{self.path} is not a file of keys ({error}): `regretless keys add` makes one.") from None

    def _write(self, keys: list[Key]) -> None:
        with replacing(self.path) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(msgspec.json.format(msgspec.json.encode(keys), indent=1))

    def add(self, name: str, scopes: list[str]) -> str:
        """Make a key. It is returned once; the file has its hash."""
        keys = self.read()
        if not NAME.fullmatch(name):
            raise ValueError(f"name={name!r}: use up to 64 letters, digits, points, lines and underscores.")
        if any(each.name == name for each in keys):
            raise ValueError(f"there is a key named {name!r} already: choose another name, or revoke it first.")
        if unknown := [scope for scope in scopes if scope not in SCOPES]:
            raise ValueError(f"unknown scope {unknown[0]!r}: choose from {', '.join(SCOPES)}.")
        if not scopes:
            raise ValueError(f"a key needs a scope: choose from {', '.join(SCOPES)}.")
        secret = f"rgl_{secrets.token_urlsafe(32)}"
        self._write([*keys, Key(name, _hash(secret), sorted(set(scopes)), time.time())])
        return secret

    def revoke(self, name: str) -> None:
        """Remove a key."""
        keys = self.read()
        left = [each for each in keys if each.name != name]
        if len(left) == len(keys):
            raise ValueError(f"there is no key named {name!r}.")
        self._write(left)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", errors="surrogateescape")).hexdigest()


class Keys:
    """The keys of a running service. Without a file, everything is allowed."""

    def __init__(self, path: Path | None) -> None:
        self.file = None if path is None else KeyFile(path)
        self._keys: list[Key] = []
        self._stamp: tuple[int, int] | None = None
        self._looked = 0.0
        if self.file is not None:
            self._keys = self.file.read()
            self._stamp = self._state()
            if not self._keys:
                raise ValueError(f"{path} has no keys: `regretless keys add NAME --file {path}` adds one.")

    def _state(self) -> tuple[int, int] | None:
        assert self.file is not None
        try:
            found = self.file.path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino

    def find(self, secret: str | None) -> Key | None:
        """The key with this secret. Every key is compared, in constant time."""
        assert self.file is not None
        clock = time.monotonic()
        if clock > self._looked + 1.0:
            self._looked = clock
            state = self._state()
            if state != self._stamp:
                self._stamp = state
                try:
                    self._keys = self.file.read()
                except ValueError:  # a damaged file has no keys: nobody is let in until it is repaired
                    self._keys = []
        if secret is None:
            return None
        given, found = _hash(secret), None
        for key in self._keys:
            if hmac.compare_digest(key.sha256, given):
                found = key
        return found
