"""The learner that all workers start from, built once where the job is described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regretless.core.learner import OnlineLearner
from regretless.core.scikit_learn import clone
from regretless.evaluate.recipe import learner_of


def start_of(learner: Any, features: Sequence[str], classes: Any) -> Any:
    """A learner without rows, for these columns and classes; `learner` is one, or its text, "AIOLI(radius=5)"."""
    made = learner_of(learner) if isinstance(learner, str) else learner
    if not isinstance(made, OnlineLearner):
        raise ValueError(f"learner={learner!r} is not a learner of regretless: pass one, such as AIOLI(), or its text.")
    names = [features] if isinstance(features, str) else list(features)
    if classes is None and hasattr(made, "predict_proba"):
        raise ValueError(f"{type(made).__name__} is a classifier: declare all labels with classes=[...].")
    return OnlineLearner.begin(clone(made), names, classes)
