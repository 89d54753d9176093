"""Learners made of learners."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Hedge": "noregret.reductions.hedge",
    "Mixture": "noregret.reductions.mixture",
    "Stack": "noregret.reductions.grid",
    "OneVsRest": "noregret.reductions.one_vs_rest",
    "OnlineBoosting": "noregret.reductions.boosting",
    "OnlineToBatch": "noregret.reductions.online_to_batch",
    "BanditMulticlass": "noregret.reductions.bandit_multiclass",
    "EpsilonGreedy": "noregret.reductions.epsilon_greedy",
    "Banditron": "noregret.reductions.banditron",
    "Gaptron": "noregret.reductions.gaptron",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
