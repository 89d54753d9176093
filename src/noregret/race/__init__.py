"""Learners side by side on the same streams: what they lost, how far that is from the best, and what they can prove."""

from __future__ import annotations

from noregret.race.entrants import entrants
from noregret.race.games import Game, Refusal
from noregret.race.playing import race
from noregret.race.results import Line, Race, StreamRace

__all__ = ["Game", "Line", "Race", "Refusal", "StreamRace", "entrants", "race"]
