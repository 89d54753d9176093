"""Compile all kernels in advance, by a tiny game of every learner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from regretless.core.learner import OnlineLearner
from regretless.evaluate.registry import public_learners

FIRST = ["OnlineLogisticRegression", "AIOLI", "FOLKLORE", "GAF", "ONS", "OGD"]


def games() -> Iterator[tuple[str, Any, list[int]]]:
    """Name, example and numbers of classes (0 for regression) of each game, the most used learners first."""
    from sklearn.base import is_regressor

    kinds = {name: kind for name, kind in public_learners().items() if issubclass(kind, OnlineLearner)}
    for name in sorted(kinds, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)):
        learner = kinds[name]._example()
        yield name, learner, [0] if is_regressor(learner) else [2] if learner.binary_only else [2, 3]


def rows() -> np.ndarray[Any, Any]:
    """The rows of a game: 12 rows of 2 features."""
    found: np.ndarray[Any, Any] = np.random.default_rng(0).uniform(-0.5, 0.5, size=(12, 2))
    return found


def play(learner: Any, n_classes: int) -> None:
    """Call every method, so that every kernel of the learner is compiled."""
    from sklearn.base import clone

    from regretless.evaluate.play import play as game

    X, t = rows(), np.arange(12)
    learner = clone(learner)
    if n_classes == 0:
        learner.predict_then_learn(X, X[:, 0])
    else:
        learner.predict_then_learn(X, t % n_classes, classes=range(n_classes))
    learner.predict(X)
    if hasattr(learner, "predict_proba"):
        learner.predict_proba(X)
    y = X[:, 0] if n_classes == 0 else t % n_classes
    trace: Any = game(clone(learner), X, y, progress=False, checkpoints=[12])
    if trace.competition is not None and trace.competition.regularization == 0.0:
        try:
            _ = trace.regret
        except ValueError:  # learners that compete in another space of features
            pass
