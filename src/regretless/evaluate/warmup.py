"""Compile now what would be compiled at first use: a tiny game of every learner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from regretless.evaluate.recipe import learners

EXAMPLES = {  # of learners that are made of others, or of functions
    "Mixture": "Mixture([AIOLI(), AIOLI()])",
    "Hedge": "Hedge([OGD(), OGD()])",
    "OneVsRest": "OneVsRest(AIOLI())",
    "AggregatingForecaster": 'AggregatingForecaster(method="langevin", n_samples=16)',
}


def games() -> Iterator[tuple[str, Any, list[int]]]:
    """Name, learner and numbers of classes (0: numbers) of each game, the ones most used first."""
    from regretless.evaluate.recipe import learner_of
    from regretless.learners.first_order.base_functions import stumps

    names = learners()
    first = ["OnlineLogisticRegression", "AIOLI", "FOLKLORE", "GAF", "ONS", "OGD"]
    for name in sorted(names, key=lambda name: (first.index(name) if name in first else len(first), name)):
        if name == "FollowTheLeader":  # linear losses: nobody's first use
            continue
        if name == "MirrorDescentAggregator":
            import regretless

            yield name, regretless.MirrorDescentAggregator(stumps(rows(), 2)), [2]
            continue
        learner = learner_of(EXAMPLES.get(name, name))
        if name == "VovkAzouryWarmuth":
            yield name, learner, [0]
        else:
            yield name, learner, [2] if learner._binary_only or name in ("Mixture", "ExponentiatedGradient") else [2, 3]


def rows() -> np.ndarray[Any, Any]:
    """A few rows."""
    found: np.ndarray[Any, Any] = np.random.default_rng(0).uniform(-0.5, 0.5, size=(12, 2))
    return found


def play(learner: Any, n_classes: int) -> None:
    """Every verb, so that every kernel of the learner is compiled."""
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
        except ValueError:  # of learners that compete in a space of their own
            pass
