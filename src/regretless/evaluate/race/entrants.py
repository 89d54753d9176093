"""Who races: the learners that enter themselves (`Stored._entrants`), at the stream's radius, and those asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from regretless.core.learner import OnlineLearner
from regretless.core.registry import public_learners
from regretless.core.setting import Setting
from regretless.evaluate.recipe import learner_of
from regretless.streams import Stream


def entrants(stream: Stream) -> dict[str, OnlineLearner]:
    """The learners that can play the stream, at the stream's radius."""
    setting = setting_of(stream)
    kinds = [kind for kind in public_learners().values() if issubclass(kind, OnlineLearner)]
    return {name: entrant for kind in kinds for name, entrant in kind._entrants(setting).items()}


def setting_of(stream: Stream) -> Setting:
    """What the learners may know of the stream."""
    return Setting(stream.X, len(stream.classes), stream.radius)


def field_of(stream: Stream, learners: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """The learners that were asked for, by name, or else all `entrants`.

    A text that is no more than the name of an entrant, or of its class, is that entrant, at the stream's radius;
    "AIOLI(radius=5)" is what it says. Other texts are the defaults of what they name.
    """
    own = entrants(stream)
    if learners is None:
        return dict(own)
    if isinstance(learners, Mapping):
        return {name: _one(each, own) for name, each in learners.items()}
    return {each if isinstance(each, str) else repr(each): _one(each, own) for each in learners}


def _one(learner: Any, own: dict[str, OnlineLearner]) -> Any:
    if not isinstance(learner, str):
        return learner
    wanted = learner.strip().lower()
    for name, entrant in own.items():
        if wanted in (name.lower(), type(entrant).__name__.lower()):
            return entrant
    return learner_of(learner)
