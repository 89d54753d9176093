"""race: compare learners on the same streams by loss, regret, certificate and bound."""

from __future__ import annotations

from regretless.evaluate.race.entrants import entrants
from regretless.evaluate.race.games import Game, Refusal
from regretless.evaluate.race.playing import race
from regretless.evaluate.race.results import Line, Race, StreamRace

__all__ = ["Game", "Line", "Race", "Refusal", "StreamRace", "entrants", "race"]
