"""The learners of a race: those of `Stored._entrants`, with the stream's radius, or those chosen by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from regretless.core.learner import OnlineLearner
from regretless.core.setting import Setting
from regretless.evaluate.recipe import learner_of
from regretless.evaluate.registry import public_learners
from regretless.streams import Stream


def entrants(stream: Stream) -> dict[str, OnlineLearner]:
    """All learners that support the stream, with the stream's radius."""
    setting = setting_of(stream)
    kinds = [kind for kind in public_learners().values() if issubclass(kind, OnlineLearner)]
    return {name: entrant for kind in kinds for name, entrant in kind._entrants(setting).items()}


def setting_of(stream: Stream) -> Setting:
    """The facts about the stream that entrants may use."""
    return Setting(stream.X, len(stream.classes), stream.radius)


def field_of(stream: Stream, learners: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """The learners that the user chose, by name, or all `entrants` if `learners` is None.

    The bare name of an entrant, or of its class, means that entrant, with the stream's radius. "AIOLI(radius=5)" means
    exactly these parameters. Other bare names mean the learner with default parameters.
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
