"""Every public learner in a small configuration, found by walking the public names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    ONS,
    AggregatingForecaster,
    BanditMulticlass,
    Banditron,
    EpsilonGreedy,
    ExponentiatedGradient,
    FollowTheLeader,
    Gaptron,
    Hedge,
    KernelAIOLI,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    Mixture,
    OneVsRest,
    OnlineBoosting,
    OnlineLogisticRegression,
    OnlineToBatch,
    Perceptron,
    Stack,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
)
from regretless.theory.domains import Ball, Box


@dataclass(frozen=True)
class Subject:
    """A learner, and what it learns: `n_classes` labels, or numbers where that is 1."""

    learner: Any
    n_classes: int = 2

    def __str__(self) -> str:
        return f"{type(self.learner).__name__}-{self.n_classes}"

    def new(self) -> Any:
        return clone(self.learner, safe=False)

    @property
    def is_bandit(self) -> bool:
        """Whether it is played by `act` and `feedback`."""
        return hasattr(self.learner, "act")

    @property
    def first(self) -> dict[str, Any]:
        """What the first call declares."""
        return {"classes": np.arange(self.n_classes)} if self.n_classes > 1 else {}

    def stream(self, rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of norm up to 1, and labels or numbers up to 1."""
        X = rng.normal(size=(n, d))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        y = rng.uniform(-1.0, 1.0, n) if self.n_classes == 1 else rng.integers(0, self.n_classes, n)
        return X, y


SUBJECTS = [
    Subject(OnlineLogisticRegression()),
    Subject(OnlineLogisticRegression(), 3),
    Subject(AIOLI(radius=3.0)),
    Subject(FOLKLORE(radius=2.0), 3),
    Subject(GAF(radius=2.0)),
    Subject(GAF(radius=2.0), 3),
    Subject(ONS(radius=0.5, feature_bound=1.0)),
    Subject(ONS(radius=0.5, feature_bound=1.0), 3),
    Subject(VovkAzouryWarmuth(), 1),
    Subject(Perceptron(), 3),
    Subject(OGD(radius=2.0)),
    Subject(StronglyConvexOGD(regularization=0.1), 3),
    Subject(LinearizedFTRL(alpha=0.5, l1=0.1)),
    Subject(MirrorDescent(domain=Ball(2.0), gradient_bound=1.5), 3),
    Subject(ExponentiatedGradient(scale=2.0)),
    Subject(MirrorDescentAggregator()),
    Subject(FTRL(regularization=0.3)),
    Subject(FollowTheLeader(Box(1.0)), 1),
    Subject(KernelAIOLI(radius=3.0)),
    Subject(KernelAIOLI(approximation="nystrom", budget=8, radius=3.0)),
    Subject(AggregatingForecaster(radius=3.0, method="langevin", n_samples=16)),
    Subject(Mixture([AIOLI(radius=1.0), FOLKLORE(radius=2.0)])),
    Subject(Hedge([Perceptron(), OGD(radius=2.0)])),
    Subject(Stack([AIOLI(radius=1.0), AIOLI(radius=3.0)])),
    Subject(OneVsRest(AIOLI(radius=2.0)), 3),
    Subject(OnlineBoosting(n_estimators=3), 3),
    Subject(OnlineToBatch(AIOLI(radius=2.0))),
    Subject(BanditMulticlass(FOLKLORE(radius=2.0), n_classes=3, exploration=0.2), 3),
    Subject(EpsilonGreedy(FOLKLORE(radius=2.0), n_classes=3), 3),
    Subject(Banditron(n_classes=3), 3),
    Subject(Gaptron(n_classes=3), 3),
]


every_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
