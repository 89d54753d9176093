"""Sets of comparators: what a learner's total loss is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Ball:
    """All weights of Euclidean (Frobenius) norm at most `radius`."""

    radius: float

    def largest_norm(self, n_rows: int) -> float:
        """The largest Frobenius norm of an element with `n_rows` rows."""
        return self.radius


@dataclass(frozen=True)
class RowBall:
    """All weight matrices each of whose rows (one a class) has Euclidean norm at most `radius`."""

    radius: float

    def largest_norm(self, n_rows: int) -> float:
        """The largest Frobenius norm of an element with `n_rows` rows."""
        return math.sqrt(n_rows) * self.radius


@dataclass(frozen=True)
class WholeSpace:
    """All weights."""

    def largest_norm(self, n_rows: int) -> float:
        """No element is largest."""
        return math.inf


Domain = Ball | RowBall | WholeSpace


class Competition(NamedTuple):
    """What a learner competes with: the best element of `domain` in hindsight, under `loss`."""

    loss: str
    domain: Domain
