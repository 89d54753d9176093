"""The public learners, found by walking the public names: what tests, docs, race and warm-up are derived from."""

from __future__ import annotations

import inspect
from typing import Any

import regretless


def public_learners() -> dict[str, type[Any]]:
    """Every public class that learns, by name: with `partial_fit`, or with bandit feedback with `act`.

    >>> "AIOLI" in public_learners(), "OnlineLearner" in public_learners()
    (True, False)
    """
    public = {name: getattr(regretless, name) for name in regretless.__all__}
    return {
        name: kind
        for name, kind in public.items()
        if inspect.isclass(kind)
        and not inspect.isabstract(kind)
        and (hasattr(kind, "partial_fit") or hasattr(kind, "act"))
    }
