r"""Weak learners for boosting: cost-sensitive classifiers.

The protocol, with labels 0, ..., K-1: `predict(x, cost) -> label` and `update(x, cost, y)`, where cost is the cost
matrix C of the row: C(y, l) is the cost of predicting l when the label is y. It is 0 for l = y, and each row of C sums
to at most 1. A weak learner is an object that can be copied; `start(n_features, n_classes, seed)` resets it.

`STUMP`, `NAIVE_BAYES` and `FERNS` are compiled: the state of all stages is one array with one row per stage. `Weighted`
turns any learner that accepts weights into a weak learner.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Protocol

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.jit import kernel
from regretless.core.learner import OnlineClassifier
from regretless.core.types import Array

STUMP, NAIVE_BAYES, FERNS = range(3)
COMPILED = {"stump": STUMP, "naive-bayes": NAIVE_BAYES, "ferns": FERNS}
COUNT, MEAN, SQUARE = range(3)
PARTS, WIDE = 8, 0.75  # a stump cuts a column into PARTS parts, each WIDE standard deviations wide
# A stage has MANY ferns. A fern cuts COLUMNS columns (all, if there are fewer) into FERN_PARTS parts, each one standard
# deviation wide: 256 cells. Chosen on digits, segment and vehicle; benchmarks/boosting.py reports other streams.
MANY, COLUMNS, FERN_PARTS, FERN_WIDE = 20, 4, 4, 1.0


class WeakLearner(Protocol):
    """The protocol of weak learners."""

    def start(self, n_features: int, n_classes: int, seed: int) -> None:
        """Forget everything."""

    def predict(self, x: Array, cost: Array) -> int:
        """A label for the row."""

    def update(self, x: Array, cost: Array, y: int) -> None:
        """Learn that the label was y."""


class Weighted:
    """A weak learner from any classifier of this library that accepts weights.

    The weight of a row is the cost of its wrong labels, the sum of C(y, l) over l. It lies between 0, where the
    previous stages are sure of y, and 1.

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
        """The learner's most probable label."""
        return int(self.learner_.predict_one(x))

    def update(self, x: Array, cost: Array, y: int) -> None:
        """Learn y, with the cost of the wrong labels as the weight."""
        self.learner_.partial_fit(x[None], [y], sample_weight=float(cost[y].sum()))


# ---------------------------------------------------------------------- compiled


def memory_shape(kind: int, n_stages: int, n_features: int, n_classes: int) -> tuple[int, int, int]:
    """The shape of the state of the stages of a compiled weak learner.

    Stumps: per column, the shift of its cuts, and the total cost of each label in each part. Naive Bayes: per class,
    the moments of the columns, and its weight. Ferns: per fern, its columns, the shifts of their cuts, and the total
    cost of each label in each cell.
    """
    if kind == STUMP:
        return n_stages, n_features, 1 + PARTS * n_classes
    if kind == NAIVE_BAYES:
        return n_stages, n_classes, 3 * n_features + 1
    m = min(COLUMNS, n_features)
    return n_stages, MANY, 2 * m + FERN_PARTS**m * n_classes


def new_memory(kind: int, n_stages: int, n_features: int, n_classes: int, seed: int) -> Array:
    """The state of the stages of a compiled weak learner before the first row: see `memory_shape`."""
    memory = np.zeros(memory_shape(kind, n_stages, n_features, n_classes))
    rng = np.random.default_rng([seed, 0])
    if kind == STUMP:
        memory[:, :, 0] = WIDE * rng.random((n_stages, n_features))
    elif kind == FERNS:
        m = min(COLUMNS, n_features)
        for fern in memory.reshape(n_stages * MANY, -1):
            fern[:m] = rng.choice(n_features, m, replace=False)
        memory[:, :, m : 2 * m] = FERN_WIDE * (rng.random((n_stages, MANY, m)) - 0.5)
    return memory


def check_memory(kind: int, memory: Array, n_features: int) -> None:
    """Refuse a state that no rows lead to."""
    if kind == STUMP:
        state_checks.within("memory, shifts", memory[:, :, 0], 0.0, WIDE)
        state_checks.within("memory, costs", memory[:, :, 1:], 0.0, state_checks.LARGEST)
    elif kind == NAIVE_BAYES:
        d = n_features
        state_checks.sums("memory, means", memory[:, :, d : 2 * d])
        state_checks.within(
            "memory, squares and masses", memory[:, :, 2 * d :], -state_checks.ROUNDING, state_checks.LARGEST
        )
    else:
        m = min(COLUMNS, n_features)
        state_checks.whole("memory, columns", memory[:, :, :m], n_features - 1)
        state_checks.within("memory, shifts", memory[:, :, m : 2 * m], -FERN_WIDE / 2, FERN_WIDE / 2)
        state_checks.within("memory, costs", memory[:, :, 2 * m :], 0.0, state_checks.LARGEST)


@kernel
def say(kind: int, memory: Array, i: int, z: Array) -> int:
    """The label of stage i for a row of standardised features."""
    if kind == STUMP:
        return say_stump(memory, i, z)
    return say_bayes(memory, i, z) if kind == NAIVE_BAYES else say_ferns(memory, i, z)


@kernel
def hear(kind: int, memory: Array, i: int, z: Array, cost: Array, y: int, weight: float) -> None:
    """Update stage i with the cost of each label for the row."""
    if kind == STUMP:
        hear_stump(memory, i, z, cost, weight)
    elif kind == NAIVE_BAYES:
        hear_bayes(memory, i, z, weight * cost.sum(), y)
    else:
        hear_ferns(memory, i, z, cost, weight)


@kernel
def part(z: float, shift: float, parts: int, wide: float) -> int:
    """The part of a column that contains the value: parts are `wide` deviations wide, the outer ones unbounded."""
    place = (z - shift) / wide + 0.5 * parts
    return int(min(place, parts - 1.0)) if place > 0.0 else 0  # NaN goes to the first part


@kernel
def say_stump(memory: Array, i: int, z: Array) -> int:
    """The label of least cost in the row's part of the best column."""
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
    first = 1 + part(z[best], memory[i, best, 0], PARTS, WIDE) * K
    label = 0
    for k in range(1, K):
        if memory[i, best, first + k] < memory[i, best, first + label]:
            label = k
    return label


@kernel
def hear_stump(memory: Array, i: int, z: Array, cost: Array, weight: float) -> None:
    """Add the cost of each label, in the row's part of every column."""
    K = cost.size
    for j in range(z.size):
        first = 1 + part(z[j], memory[i, j, 0], PARTS, WIDE) * K
        for k in range(K):
            memory[i, j, first + k] += weight * cost[k]


@kernel
def say_bayes(memory: Array, i: int, z: Array) -> int:
    """The class with the largest posterior, for independent normal features; 0.1 is added to variances."""
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
    """Add a row of that weight to its class."""
    d = z.size
    if weight <= 0.0:
        return
    memory[i, y, 3 * d] += weight
    rate = weight / memory[i, y, 3 * d]
    for j in range(d):
        away = z[j] - memory[i, y, d + j]
        memory[i, y, d + j] += rate * away
        memory[i, y, 2 * d + j] += weight * away * (z[j] - memory[i, y, d + j])


@kernel
def cell(fern: Array, z: Array, K: int) -> int:
    """Where the costs of the row's cell of a fern begin."""
    m = min(COLUMNS, z.size)
    place = 0
    for j in range(m):
        place = place * FERN_PARTS + part(z[int(fern[j])], fern[m + j], FERN_PARTS, FERN_WIDE)
    return 2 * m + place * K


@kernel
def n_labels(memory: Array, n_features: int) -> int:
    """K, from the size of a fern."""
    m = min(COLUMNS, n_features)
    return (memory.shape[2] - 2 * m) // FERN_PARTS**m


@kernel
def say_ferns(memory: Array, i: int, z: Array) -> int:
    """The label of least mean cost, summed over the row's cells; a cell's costs have the sum of its rows' weights."""
    K = n_labels(memory, z.size)
    votes = np.zeros(K)
    for f in range(MANY):
        fern = memory[i, f]
        first = cell(fern, z, K)
        total = 1.0
        for k in range(K):
            total += fern[first + k]
        for k in range(K):
            votes[k] += fern[first + k] / total
    label = 0
    for k in range(1, K):
        if votes[k] < votes[label]:
            label = k
    return label


@kernel
def hear_ferns(memory: Array, i: int, z: Array, cost: Array, weight: float) -> None:
    """Add the cost of each label, in the row's cell of every fern."""
    for f in range(MANY):
        fern = memory[i, f]
        first = cell(fern, z, cost.size)
        for k in range(cost.size):
            fern[first + k] += weight * cost[k]
