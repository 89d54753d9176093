r"""Weak learners for boosting: they are told what each answer would cost, and answer with a label.

The protocol, with labels as numbers 0, ..., K-1: `predict(x, cost) -> label` and `update(x, cost, y)`, where cost is
the matrix C of the row, C(y, l) what it costs to say l when the truth is y: 0 for l = y, and at most 1 a row in all. A
weak learner is an object that can be copied; `start(n_features, n_classes, seed)` makes it forget everything.

`STUMP` and `NAIVE_BAYES` are compiled, with all stages of a boosting side by side: their state is an array with a row a
stage. `Weighted` makes a weak learner of any learner that takes weights.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Protocol

import numpy as np

from regretless.core import state_checks
from regretless.core.jit import kernel
from regretless.core.learner import OnlineClassifier
from regretless.core.types import Array

STUMP, NAIVE_BAYES = range(2)
COMPILED = {"stump": STUMP, "naive-bayes": NAIVE_BAYES}
COUNT, MEAN, SQUARE = range(3)
PARTS, WIDE = 8, 0.75  # a stump cuts a column into so many parts, so many deviations wide


class WeakLearner(Protocol):
    """What a boosting asks of the learners it boosts."""

    def start(self, n_features: int, n_classes: int, seed: int) -> None:
        """Forget everything."""

    def predict(self, x: Array, cost: Array) -> int:
        """A label for the row."""

    def update(self, x: Array, cost: Array, y: int) -> None:
        """Learn that the label was y."""


class Weighted:
    """A weak learner from any classifier of this library that takes weights.

    Cost-sensitive by importance: the row is learned with the weight that wrong answers to it cost, the sum of C(y, l)
    over l. It lies between 0, where the stages before are sure of y, and 1.

    >>> import numpy as np
    >>> from regretless import OGD
    >>> from regretless.learners.ensembles.weak import Weighted
    >>> weak = Weighted(OGD())
    >>> weak.start(2, 3, seed=0)
    >>> cost = (np.ones((3, 3)) - np.eye(3)) / 3
    >>> for _ in range(20):
    ...     weak.update(np.array([1.0, 0.0]), cost, 2)
    >>> weak.predict(np.array([1.0, 0.0]), cost)
    2
    """

    def __init__(self, learner: OnlineClassifier) -> None:
        self.learner = learner

    def start(self, n_features: int, n_classes: int, seed: int) -> None:
        """Forget everything."""
        self.learner_ = deepcopy(self.learner)
        if "random_state" in self.learner_.get_params():
            self.learner_.set_params(random_state=seed)
        nothing = np.zeros((n_classes, n_features))
        self.learner_.fit(nothing, np.arange(n_classes), classes=np.arange(n_classes), sample_weight=0.0)

    def predict(self, x: Array, cost: Array) -> int:
        """The learner's own most probable label."""
        return int(self.learner_.predict_one(x))

    def update(self, x: Array, cost: Array, y: int) -> None:
        """Learn y, with what the wrong answers cost as the weight."""
        self.learner_.partial_fit(x[None], [y], sample_weight=float(cost[y].sum()))


# ---------------------------------------------------------------------- compiled


def new_memory(kind: int, n_stages: int, n_features: int, n_classes: int, seed: int) -> Array:
    """What the stages of a compiled weak learner know at first.

    Stumps: (stages, features, 1 + PARTS K): by how much the cuts of the column are shifted, and what each answer has
    cost in each part. Naive Bayes: (stages, K, 3 features + 1): the moments of each class, and its weight.
    """
    if kind == STUMP:
        memory = np.zeros((n_stages, n_features, 1 + PARTS * n_classes))
        memory[:, :, 0] = WIDE * np.random.default_rng([seed, 0]).random((n_stages, n_features))
        return memory
    return np.zeros((n_stages, n_classes, 3 * n_features + 1))


def check_memory(kind: int, memory: Array) -> None:
    """Refuse what no rows can have taught the stages."""
    if kind == STUMP:
        state_checks.within("memory, shifts", memory[:, :, 0], 0.0, WIDE)
        state_checks.within("memory, costs", memory[:, :, 1:], 0.0, state_checks.LARGEST)
        return
    d = (memory.shape[2] - 1) // 3
    state_checks.sums("memory, means", memory[:, :, d : 2 * d])
    state_checks.within(
        "memory, squares and masses", memory[:, :, 2 * d :], -state_checks.ROUNDING, state_checks.LARGEST
    )


@kernel
def say(kind: int, memory: Array, i: int, z: Array) -> int:
    """The label that stage i gives a row of standardised features."""
    return say_stump(memory, i, z) if kind == STUMP else say_bayes(memory, i, z)


@kernel
def hear(kind: int, memory: Array, i: int, z: Array, cost: Array, y: int, weight: float) -> None:
    """Stage i learns what each answer to the row would have cost."""
    if kind == STUMP:
        hear_stump(memory, i, z, cost, weight)
    else:
        hear_bayes(memory, i, z, weight * cost.sum(), y)


@kernel
def part(z: float, shift: float) -> int:
    """Which part of a column a value is in: they are WIDE deviations wide, the outer ones without end."""
    place = (z - shift) / WIDE + PARTS / 2
    return int(min(place, PARTS - 1.0)) if place > 0.0 else 0  # what is no number is in the first part, not outside


@kernel
def say_stump(memory: Array, i: int, z: Array) -> int:
    """In its part of the best column, the answer that has cost least."""
    K = (memory.shape[2] - 1) // PARTS
    best, least = 0, math.inf
    for j in range(z.size):
        total = 0.0
        for a in range(PARTS):
            lowest = memory[i, j, 1 + a * K]
            for k in range(1, K):
                lowest = min(lowest, memory[i, j, 1 + a * K + k])
            total += lowest
        if total < least:
            best, least = j, total
    first = 1 + part(z[best], memory[i, best, 0]) * K
    label = 0
    for k in range(1, K):
        if memory[i, best, first + k] < memory[i, best, first + label]:
            label = k
    return label


@kernel
def hear_stump(memory: Array, i: int, z: Array, cost: Array, weight: float) -> None:
    """Add up what each answer costs, in the row's part of every column."""
    K = cost.size
    for j in range(z.size):
        first = 1 + part(z[j], memory[i, j, 0]) * K
        for k in range(K):
            memory[i, j, first + k] += weight * cost[k]


@kernel
def say_bayes(memory: Array, i: int, z: Array) -> int:
    """The class of the largest posterior, features taken as independent and normal; variances have 0.1 added."""
    K, d = memory.shape[1], z.size
    label, best = 0, -math.inf
    for k in range(K):
        mass = memory[i, k, 3 * d]
        score = math.log(mass + 1e-3)
        for j in range(d):
            variance = (memory[i, k, 2 * d + j] + 1.0) / (mass + 1.0) + 0.1
            away = z[j] - memory[i, k, d + j]
            score -= 0.5 * (math.log(variance) + away * away / variance)
        if score > best:
            label, best = k, score
    return label


@kernel
def hear_bayes(memory: Array, i: int, z: Array, weight: float, y: int) -> None:
    """A row of that weight joins its class."""
    d = z.size
    if weight <= 0.0:
        return
    memory[i, y, 3 * d] += weight
    rate = weight / memory[i, y, 3 * d]
    for j in range(d):
        away = z[j] - memory[i, y, d + j]
        memory[i, y, d + j] += rate * away
        memory[i, y, 2 * d + j] += weight * away * (z[j] - memory[i, y, d + j])
