"""The aggregated Mondrian forest, with its mixture as an explicit sum over all prunings of every tree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
GOLDEN, STEP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
WORD = 2**64


def uniform(seed: int, counter: int) -> float:
    """A number in [0, 1): splitmix64 of seed and counter."""
    z = (seed * GOLDEN + counter * STEP + GOLDEN) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return ((z ^ (z >> 31)) >> 11) / 2**53


@dataclass
class Node:
    """A node, the rows in it, its loss, and the probability that a pruning that reaches it stops here.

    The bold mixture has other losses, without the first row of a leaf, and the probability 1/2 at every inner node.
    """

    time: float
    rows: list[tuple[Array, Array, float]] = field(default_factory=list)
    loss: float = 0.0
    bold_loss: float = 0.0
    stop: float = 1.0
    above: int = 0  # how many splits were put above it since it is inner
    feature: int = 0
    threshold: float = 0.0
    children: tuple[Node, Node] | None = None

    def counts(self) -> Array:
        return sum(weight * y for _, y, weight in self.rows)

    def forecast(self, K: int, s: float) -> Array:
        n = self.counts() if self.rows else np.zeros(K)
        total = sum(weight for _, _, weight in self.rows)
        return (n + s) / (total + K * s)

    def add(self, said: Array, x: Array, y: Array, weight: float) -> None:
        """Add a row, of which the node had said that."""
        loss = -weight * float(y @ np.log(said))
        self.loss += loss
        self.bold_loss += loss
        self.rows.append((x, y, weight))

    def box(self) -> tuple[Array, Array]:
        X = np.array([x for x, _, _ in self.rows])
        return X.min(axis=0), X.max(axis=0)

    def child(self, x: Array) -> Node:
        assert self.children is not None
        return self.children[int(x[self.feature] > self.threshold)]

    def prunings(self) -> Iterator[tuple[float, float, list[Node]]]:
        """The prior of every pruning of the subtree, the bold one, and the leaves."""
        half = 1.0 if self.children is None else 0.5
        yield self.stop, half, [self]
        if self.children is not None:
            for left, bold_left, some in self.children[0].prunings():
                for right, bold_right, others in self.children[1].prunings():
                    yield (1 - self.stop) * left * right, 0.5 * bold_left * bold_right, some + others

    def posterior(self, x: Array, K: int, s: float, bold: bool = False) -> tuple[Array, Array]:
        """The weights of all prunings, and their forecasts."""
        found = list(self.prunings())
        path, v = {id(self)}, self
        while v.children is not None:
            v = v.child(x)
            path.add(id(v))
        log_weight = np.array(
            [math.log(each[bold]) - sum(v.bold_loss if bold else v.loss for v in each[2]) for each in found]
        )
        weight = np.exp(log_weight - log_weight.max())
        said = [next(v for v in leaves if id(v) in path).forecast(K, s) for _, _, leaves in found]
        return weight / weight.sum(), np.array(said)

    def mixture(self, x: Array, K: int, s: float, bold: bool) -> Array:
        """The mean of the forecasts of all prunings, by their posterior."""
        weight, said = self.posterior(x, K, s, bold)
        return weight @ said

    def mixed_loss(self, x: Array, y: Array, c: float, s: float) -> float:
        """-ln of the mean of e^-loss: for a sure label and weight 1, the loss of the mixture."""
        weight, said = self.posterior(x, len(y), s)
        gain = c * np.log(said) @ y
        return -float(gain.max()) - math.log(float(weight @ np.exp(gain - gain.max())))

    def size(self) -> int:
        return 1 + (sum(child.size() for child in self.children) if self.children else 0)


class ReferenceMondrianForest:
    """The mean over trees of the mixture of all prunings, whose nodes forecast (n_k + s)/(n + K s).

    There is a cautious and a bold mixture, and the forecast is that of both, by their losses.
    """

    def __init__(
        self, n_estimators: int, dirichlet: float | None, max_nodes: int | None, random_state: int, n_classes: int
    ) -> None:
        self.K = n_classes
        self.s = 1 / n_classes if dirichlet is None else dirichlet
        self.max_nodes = math.inf if max_nodes is None else max_nodes
        self.trees = [Node(time=0.0) for _ in range(n_estimators)]
        self.seeds = [random_state * n_estimators + i for i in range(n_estimators)]
        self.row = 0
        self.losses = np.zeros(2)  # of the cautious and of the bold forest

    def both(self, x: Array) -> Array:
        """The forecasts of the cautious and of the bold forest."""
        said = [[tree.mixture(x, self.K, self.s, bold) for tree in self.trees] for bold in (False, True)]
        return np.mean(said, axis=1)

    def forecast(self, x: Array) -> Array:
        belief = np.exp(self.losses.min() - self.losses)
        return belief @ self.both(x) / belief.sum()

    def learn(self, x: Array, y: Array, weight: float = 1.0) -> None:
        if weight == 0.0:
            return
        self.losses -= weight * np.log(self.both(x)) @ y
        for tree, seed in zip(self.trees, self.seeds, strict=True):
            self._learn(tree, seed, np.asarray(x, float), np.asarray(y, float), weight)
        self.row += 1

    def _learn(self, root: Node, seed: int, x: Array, y: Array, weight: float) -> None:
        wait = -math.log1p(-uniform(seed, 3 * self.row))
        seen = np.array([*(other for other, _, _ in root.rows), x])
        size = np.ptp(seen, axis=0)
        v: Node | None = root
        room = root.size() + 2 <= self.max_nodes
        while v is not None:
            said = v.forecast(self.K, self.s)
            only = y.max() == 1.0 and v.rows and v.counts()[y.argmax()] == sum(w for _, _, w in v.rows)
            if room and v.rows and not only:
                low, high = v.box()
                away = np.maximum(low - x, 0) + np.maximum(x - high, 0)
                away = np.divide(away, size, out=np.zeros_like(away), where=size > 0)
                length = math.inf if v.children is None else v.children[0].time - v.time
                if away.sum() > 0 and wait < length * away.sum():
                    self._split(v, v.time + wait / away.sum(), away, seed, x, y, weight)
                    v.add(said, x, y, weight)
                    return
                if away.sum() > 0:
                    wait -= length * away.sum()
            v.add(said, x, y, weight)
            v = v.child(x) if v.children is not None else None

    def _split(self, v: Node, time: float, away: Array, seed: int, x: Array, y: Array, weight: float) -> None:
        """Put a split above the rows of v: its copy, and a leaf with the row."""
        mark = uniform(seed, 3 * self.row + 1) * away.sum()
        feature = int(np.searchsorted(np.cumsum(away), mark, side="right"))
        low, high = v.box()
        right = x[feature] > high[feature]
        ends = (high[feature], x[feature]) if right else (x[feature], low[feature])
        copy = Node(time, list(v.rows), v.loss, v.bold_loss, v.stop, 0, v.feature, v.threshold, v.children)
        if v.children is None:
            v.stop = 0.5
        else:
            v.above += 1
            given = v.stop / (v.above + 1) ** 2  # to the copy: the probability of reaching v and stopping there
            v.stop -= given
            copy.stop = given / (1 - v.stop)
        leaf = Node(time, [(x, y, weight)], copy.mixed_loss(x, y, weight, self.s))
        v.feature, v.threshold = feature, ends[0] + uniform(seed, 3 * self.row + 2) * (ends[1] - ends[0])
        v.children = (copy, leaf) if right else (leaf, copy)

    def best_prunings(self) -> list[tuple[float, int]]:
        """Of each tree, the least loss of a pruning, and how many leaves the smallest such has."""
        found = []
        for tree in self.trees:
            losses = [(sum(v.loss for v in leaves), len(leaves)) for _, _, leaves in tree.prunings()]
            least = min(losses)[0]
            found.append((least, min(m for loss, m in losses if loss < least + 1e-9)))
        return found
