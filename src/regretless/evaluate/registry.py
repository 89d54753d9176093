"""The public learners, found among the public names. Tests, docs, race and warm-up derive from this list."""

from __future__ import annotations

import inspect
from typing import Any

import regretless


def public_learners() -> dict[str, type[Any]]:
    """Every public learner by name: the classes with `partial_fit` or, for bandit feedback, `act`.

    >>> "AIOLI" in public_learners(), "OnlineLearner" in public_learners()
    (True, False)
    """
    return {
        name: kind for name, kind in public_predictors().items() if hasattr(kind, "partial_fit") or hasattr(kind, "act")
    }


def public_predictors() -> dict[str, type[Any]]:
    """Every public learner, `KeyedLearner`, and the batch predictors, which only have `fit`.

    >>> sorted(public_predictors().keys() - public_learners().keys())
    ['KeyedLearner', 'SampleMinmaxPredictor', 'ShiftedLeastSquares']
    """
    public = {name: getattr(regretless, name) for name in regretless.__all__}
    return {
        name: kind
        for name, kind in public.items()
        if inspect.isclass(kind)
        and not inspect.isabstract(kind)
        and any(hasattr(kind, verb) for verb in ("fit", "partial_fit", "act", "learn"))
    }
