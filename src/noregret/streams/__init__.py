"""Streams to play on."""

from __future__ import annotations

from noregret.streams.builtin import NAMES, Stream, builtin

__all__ = ["NAMES", "Stream", "builtin"]
