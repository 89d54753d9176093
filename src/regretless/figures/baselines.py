r"""Algorithms that the papers compare with, for the figures: AdaBoost.OL, AdaBoost.OLM and Newtron.

They are written as in their papers, row by row in Python, and return the mistakes of every row. The learners of this
library improve on them: `OnlineBoosting` on the first two, `BanditMulticlass` on the third.
Keys of REFERENCES.bib: `beygelzimer2015`, `jung2017`, `newtron`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, softmax

from regretless.core.types import Array
from regretless.learners.ensembles.boosting import standardise
from regretless.learners.ensembles.weak import COMPILED, COUNT, MEAN, SQUARE, WeakLearner, hear, new_memory, say


class Named:
    """A compiled weak learner of `OnlineBoosting`, by name, as an object."""

    def __init__(self, name: str) -> None:
        self.kind = COMPILED[name]

    def start(self, n_features: int, n_classes: int, seed: int) -> None:
        """Forget everything."""
        self.memory = new_memory(self.kind, 1, n_features, n_classes, seed)
        self.moments, self.z = np.zeros((3, n_features)), np.empty(n_features)

    def predict(self, x: Array, cost: Array) -> int:
        """A label for the row."""
        standardise(self.moments, x, self.z)
        return int(say(self.kind, self.memory, 0, self.z))

    def update(self, x: Array, cost: Array, y: int) -> None:
        """Learn that the label was y."""
        standardise(self.moments, x, self.z)
        hear(self.kind, self.memory, 0, self.z, cost[y], y, 1.0)
        self.moments[COUNT] += 1.0
        away = x - self.moments[MEAN]
        self.moments[MEAN] += away / self.moments[COUNT]
        self.moments[SQUARE] += away * (x - self.moments[MEAN])


def adaboost_olm(
    weak: list[WeakLearner], X: Array, y: NDArray[np.int64], n_classes: int, seed: int, scale: float | None = None
) -> Array:
    r"""The mistakes (n,) of AdaBoost.OLM (Jung, Goetz and Tewari, 2017, Algorithm 2) with started weak learners.

    Stage i adds :math:`\alpha_i` to the score of its weak learner's label l, under the costs
    :math:`C(r, k) = \sigma(s_k - s_r)`, :math:`C(r, r) = -\sum_{k \ne r} \sigma(s_k - s_r)`, shifted and scaled so that
    each row is at least 0 and sums to at most 1. Projected gradient descent on the logistic losses of all pairs,
    :math:`\sum_{k \ne y} \ln(1 + e^{s_k - s_y})`, moves :math:`\alpha_i \in [-2, 2]` with the steps
    :math:`\frac{2\sqrt2}{(K-1)\sqrt t}`. Hedge draws the stage. With two classes and `scale` 4 this is AdaBoost.OL
    (Beygelzimer, Kale and Luo, 2015, Algorithm 2).
    """
    N, K = len(weak), n_classes
    scale = 2.0 * math.sqrt(2.0) / (K - 1) if scale is None else scale
    alpha, log_weight = np.zeros(N), np.zeros(N)
    rng, mistakes = np.random.default_rng(seed), np.zeros(len(y))
    for t, (x, true) in enumerate(zip(X, y.tolist(), strict=True)):
        scores, costs, labels = np.zeros((N + 1, K)), np.empty((N, K, K)), []
        for i, learner in enumerate(weak):
            costs[i] = pairwise_costs(scores[i])
            labels.append(learner.predict(x, costs[i]))
            scores[i + 1] = scores[i]
            scores[i + 1, labels[i]] += alpha[i]
        said = scores[1:].argmax(axis=1)
        mistakes[t] = said[rng.choice(N, p=softmax(log_weight))] != true
        log_weight[said != true] -= 1.0
        for i, (learner, label) in enumerate(zip(weak, labels, strict=True)):
            learner.update(x, costs[i], true)
            pulls = expit(scores[i + 1] - scores[i + 1, true])  # of the wrong labels; 1/2 for the true one
            slope = pulls[label] if label != true else 0.5 - pulls.sum()
            alpha[i] = min(max(alpha[i] - scale / math.sqrt(t + 1.0) * slope, -2.0), 2.0)
    return mistakes


def pairwise_costs(scores: Array) -> Array:
    """The cost matrix of AdaBoost.OLM: first index the true label."""
    K = scores.size
    pulls = expit(scores[None, :] - scores[:, None])
    np.fill_diagonal(pulls, 0.0)
    costs: Array = pulls + pulls.sum(axis=1, keepdims=True)
    np.fill_diagonal(costs, 0.0)
    return costs / (K * (K - 1))


def newtron(
    X: Array, y: NDArray[np.int64], n_classes: int, radius: float, exploration: float, beta: float, seed: int
) -> Array:
    r"""The mistakes (n,) of Newtron (Hazan and Kale, 2011, Algorithm 1) with bandit feedback.

    The label is drawn from :math:`p' = (1-\gamma)\,\mathrm{softmax}(Wx) + \gamma/K`. With p = softmax(Wx), the gradient
    of the log loss is estimated by :math:`\frac{1 - p_y}{p'_y}(\frac1K - e_y) \otimes x`, :math:`\kappa = p'_y`, after
    a correct label, and by :math:`\frac{p_l}{p'_l}(e_l - \frac1K) \otimes x`, :math:`\kappa = 1`, after a wrong one.
    W minimises the sum of :math:`g \cdot (W - W_t) + \frac{\kappa\beta}2 (g \cdot (W - W_t))^2` and
    :math:`\frac1{2D}|W|^2` over the ball of radius D.
    """
    K, d, gamma = n_classes, X.shape[1], exploration
    W, A, b = np.zeros((K, d)), np.eye(K * d) / radius, np.zeros(K * d)
    rng, mistakes = np.random.default_rng(seed), np.zeros(len(y))
    for t, x in enumerate(X):
        p = softmax(W @ x)
        explored = (1.0 - gamma) * p + gamma / K
        label = int(rng.choice(K, p=explored))
        correct = label == y[t]  # all that is revealed
        mistakes[t] = not correct
        apart = np.full(K, 1.0 / K)
        apart[label] -= 1.0
        size = (1.0 - p[label]) / explored[label] if correct else -p[label] / explored[label]
        g = np.outer(size * apart, x).ravel()
        bend = beta * (explored[label] if correct else 1.0)
        A += bend * np.outer(g, g)
        b += (bend * (g @ W.ravel()) - 1.0) * g
        W = least_in_ball(A, b, radius).reshape(K, d)
    return mistakes


def least_in_ball(A: Array, b: Array, radius: float) -> Array:
    """The minimiser of w'Aw / 2 - b.w over a ball."""
    values, vectors = np.linalg.eigh(A)
    c = vectors.T @ b

    def beyond(mu: float) -> float:
        return float(np.linalg.norm(c / (values + mu))) - radius

    mu = 0.0 if beyond(0.0) <= 0.0 else brentq(beyond, 0.0, float(np.linalg.norm(b)) / radius)
    found: Array = vectors @ (c / (values + mu))
    return found
