"""Learners of other libraries, with their default settings: River, Vowpal Wabbit, scikit-learn's SGD.

Labels are 0, 1, ..., K - 1. The learning rates of River and scikit-learn assume columns of variance 1, so their rows
are multiplied by a constant that gives them mean square 1; Vowpal Wabbit scales by itself. Probabilities below 1e-15
count as 1e-15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from regretless.streams import Stream

LEAST = 1e-15


class Rival(NamedTuple):
    """A learner of another library."""

    name: str  # in the table
    module: str
    package: str
    make: Callable[[Stream], Any]


def rivals_of(against: Iterable[str]) -> list[Rival]:
    """The rivals of these short names; an error if one is unknown or not installed."""
    found = []
    for name in against:
        if name not in RIVALS:
            raise ValueError(f"unknown library {name!r}: choose from {', '.join(RIVALS)}.")
        if find_spec(RIVALS[name].module) is None:
            raise ValueError(f"{name} is not installed: pip install {RIVALS[name].package}")
        found.append(RIVALS[name])
    return found


def unit_columns(stream: Stream) -> float:
    """The factor that gives the entries of the rows mean square 1."""
    size = math.sqrt(float(np.mean(np.square(stream.X))))
    return 1.0 / size if size > 0 else 1.0


def _river(stream: Stream) -> Any:
    """`LogisticRegression()`, or `SoftmaxRegression()` with all classes known."""
    from river import linear_model

    K = len(stream.classes)
    model = linear_model.LogisticRegression() if K == 2 else linear_model.SoftmaxRegression()
    if K > 2:
        for label in range(K):  # otherwise the first row of a label would have probability 0
            model.weights[label]
    return Enlarged(model, unit_columns(stream))


class Enlarged:
    """A River learner whose rows are multiplied by a factor."""

    def __init__(self, model: Any, factor: float) -> None:
        self.model, self.factor = model, factor

    def predict_proba_one(self, x: dict[Any, float]) -> dict[Any, float]:
        """Probabilities by label, for the row times the factor."""
        said = self.model.predict_proba_one({k: self.factor * v for k, v in x.items()})
        return {label: max(p, LEAST) for label, p in said.items()}

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        """Learn the row times the factor."""
        self.model.learn_one({k: self.factor * v for k, v in x.items()}, y)


class Wabbit:
    """Vowpal Wabbit row by row, with the sigmoid in double precision, so that forecasts do not round to 0 and 1."""

    def __init__(self, n_classes: int) -> None:
        from vowpalwabbit import Workspace

        self.n_classes = n_classes
        many = f"--oaa {n_classes} --probabilities" if n_classes > 2 else ""
        self.model = Workspace(f"--loss_function=logistic {many} --quiet")

    def predict_proba_one(self, x: dict[Any, float]) -> dict[int, float]:
        """Probabilities by label."""
        said = self.model.predict(_line(x))  # a margin in [-50, 50]
        if self.n_classes > 2:
            return {label: max(p, LEAST) for label, p in enumerate(said)}
        return {0: max(1 / (1 + math.exp(said)), LEAST), 1: max(1 / (1 + math.exp(-said)), LEAST)}

    def learn_one(self, x: dict[Any, float], y: int) -> None:
        """Learn one row."""
        label = y + 1 if self.n_classes > 2 else 2 * y - 1
        self.model.learn(f"{label} {_line(x)}")


def _line(x: dict[Any, float]) -> str:
    return "| " + " ".join(f"{name}:{value:.9g}" for name, value in x.items() if value)


def _wabbit(stream: Stream) -> Any:
    return Wabbit(len(stream.classes))


def _sgd(stream: Stream) -> Any:
    """`SGDClassifier(loss="log_loss")`, one row per call."""
    from sklearn.linear_model import SGDClassifier

    class EnlargedSGD(SGDClassifier):
        """Multiplies the rows by a factor."""

        factor = unit_columns(stream)

        def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
            return super().partial_fit(self.factor * X, y, classes=classes)

        def predict_proba(self, X: Any) -> Any:
            return np.maximum(super().predict_proba(self.factor * X), LEAST)

    # an int seed would be unpacked in every call
    return EnlargedSGD(loss="log_loss", random_state=np.random.RandomState(0))


RIVALS = {
    "river": Rival("River", "river", "river", _river),
    "vw": Rival("Vowpal Wabbit", "vowpalwabbit", "vowpalwabbit", _wabbit),
    "sklearn": Rival("scikit-learn SGD", "sklearn", "scikit-learn", _sgd),
}
