"""Every public learner in a small configuration: the test matrix (tests/learners.py), one entry per code path."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parents[1]))  # where processes without pytest find the matrix

from learners import MATRIX


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


PATHS = {entry.path: entry for entry in reversed(MATRIX)}
SUBJECTS = [Subject(entry.learner, entry.n_classes) for entry in reversed(PATHS.values())]
every_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
