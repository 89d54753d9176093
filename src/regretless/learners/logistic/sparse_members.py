r"""The members for wide rows: one or two numbers per weight, and work per entry of the row.

First-order members keep :math:`n = \sum g^2` and :math:`G = \sum g` per weight, with :math:`g = (p - y)\,x`:

.. math:: w \leftarrow w - \alpha\, g / (1 + \sqrt n) \quad\text{(AdaGrad)}, \qquad
          w = -\alpha\, G / (1 + \sqrt n) \quad\text{(follow the regularized leader)}.

The first is also FTRL-Proximal without l1. Both have the certificate of the tangents: regret against u is at most
:math:`\sum_t g_t\cdot w_t - G\cdot u`.

Second-order members have a Gaussian belief per weight, of mean w and variance v: the Newton steps of `newton.py` with
diagonal matrices. The step is implicit,

.. math:: z = m + q\,(y - p), \qquad w \leftarrow w + (y - p)\,v x, \qquad 1/v \leftarrow 1/v + \kappa\,p(1-p)\,x^2,

with m the score before it, z the one after it, p its probability and :math:`q = \sum v x^2`. They learn as fast as a
weight is uncertain: rare columns by large steps, frequent ones by small steps.

Two classes have opposite weights, so only those of the margin are stored. With K classes, each has half of the margin's
rate and variance.

The members were chosen on two synthetic streams, clicks (2^18 columns) and a bag of words: see
docs/online-logistic-regression.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import inlined_kernel, kernel, lanes_kernel
from regretless.core.numbers.links import sigmoid, softmax
from regretless.core.types import Array
from regretless.learners.logistic.newton import settle
from regretless.learners.second_order.forecasts import solve_margin, tanh_of_half

# (rate of the margin, whether it keeps its weights: AdaGrad; or not: the regularized leader)
FIRST_ORDER = ((0.03, 1.0), (0.15, 1.0), (0.6, 1.0), (0.15, 0.0))
# (kappa, variance of the margin's weights at the start)
BELIEFS = ((1.0, 0.03), (1.0, 0.1), (1.0, 0.5), (0.1, 1.0))
SKETCHED = ((1.0, 0.1), (0.1, 1.0))  # the same of the sketched members
INTERCEPT = 5.0  # the constant entry: its weight has a prior 25 times wider than the others
A, B = len(FIRST_ORDER), len(BELIEFS)
N = A + B
# A line of the table (S, C, WIDTH): weights of all members, then of the first-order ones the sums of squares, of the
# beliefs the variances, of the first-order ones the sums of gradients.
SQUARE, VARIANCE, GRADIENT, WIDTH = N, N + A, 2 * N, 2 * N + A


class SparseConstants(NamedTuple):
    """The members' constants. C is K, or 1 for two classes."""

    rate: Array  # (A,) of the first-order members
    keep: Array  # (A,) 1: AdaGrad, 0: the regularized leader
    kappa: Array  # (B,) of the second-order members
    variance: Array  # (B,) at the start
    sketched: Array  # (G, 2) kappa and variance of the sketched members: see sparse_sketch.py
    intercept: float  # the constant entry; 0 for none
    shares: bool  # whether the mixture tracks change


def constants(n_classes: int, intercept: bool, shares: bool) -> SparseConstants:
    """The constants for so many classes."""
    part = 1.0 if n_classes == 2 else 0.5
    rate, keep = np.array(FIRST_ORDER).T.copy()
    kappa, variance = np.array(BELIEFS).T.copy()
    sketched = np.array(SKETCHED) * [1.0, part]
    return SparseConstants(part * rate, keep, kappa, part * variance, sketched, INTERCEPT if intercept else 0.0, shares)


def names(directions: int) -> list[str]:
    """A title for each member."""
    first = [f"{'AdaGrad' if keep else 'regularized leader'}, learning rate {rate:g}" for rate, keep in FIRST_ORDER]
    kinds: list[tuple[str, tuple[tuple[float, float], ...]]] = [("Gaussian belief", BELIEFS)]
    if directions:
        kinds.append((f"Gaussian belief with a sketch of rank {directions}", SKETCHED))
    return first + [
        f"{kind}, learning rate {1 / kappa:.3g}, variance {v:g}" for kind, pairs in kinds for kappa, v in pairs
    ]


class Row(NamedTuple):
    """The entries of one rescaled row that are not 0, and what the members say about it and learn from it."""

    slots: NDArray[np.uintp]  # of each entry
    x: Array
    score: Array  # (C, N) w.x
    spread: Array  # (C, B) q of the beliefs
    pull: Array  # (C, A) the slope of the loss in the score
    step: Array  # (C, B) y - p after the belief's implicit step
    bend: Array  # (C, B) kappa p (1 - p)


@kernel
def new_row(longest: int, C: int) -> Row:
    """Room for rows of up to so many entries."""
    return Row(
        np.empty(longest, np.uintp),
        np.empty(longest),
        np.empty((C, N)),
        np.empty((C, B)),
        np.empty((C, A)),
        np.empty((C, B)),
        np.empty((C, B)),
    )


@lanes_kernel
def look(table: Array, slots: NDArray[np.uintp], x: Array, n: int, score: Array, spread: Array) -> None:
    """The scores and spreads of a row of n entries."""
    C = score.shape[0]
    score[:] = 0.0
    spread[:] = 0.0
    for e in range(n):
        at, value = slots[e], x[e]
        square = value * value
        for k in range(C):
            for i in range(N):
                score[k, i] += table[at, k, i] * value
            for i in range(B):
                spread[k, i] += table[at, k, VARIANCE + i] * square


@kernel
def publish(score: Array, logits: Array, t: int) -> None:
    """Write the scores as the first N members' logits of row t."""
    K = logits.shape[2]
    for i in range(N):
        if K == 2:
            logits[i, t, 0] = -0.5 * score[0, i]
            logits[i, t, 1] = 0.5 * score[0, i]
        else:
            for k in range(K):
                logits[i, t, k] = score[k, i]


@inlined_kernel
def settled(score: float, reach: float, y: float) -> float:
    """The probability of the second of two classes after an implicit step: p = sigmoid(score + reach (y - p))."""
    pulled = score + reach * (y - 0.5)
    _, tanh = solve_margin(pulled, tanh_of_half(pulled), 0.5 * reach)
    return 0.5 + 0.5 * tanh


@kernel
def judge(row: Row, logits: Array, y: Array, weight: float, kappa: Array, slopes: Array) -> None:
    """How the label moves each member: pull, step and bend. `slopes` are the first-order members' sums of g.w.

    `logits` (>= N, K) are those of the row.
    """
    K, score = y.size, row.score
    if K == 2:
        for i in range(A):
            row.pull[0, i] = weight * (sigmoid(score[0, i]) - y[1])
            slopes[i] += row.pull[0, i] * score[0, i]
        for i in range(B):
            p = settled(score[0, A + i], weight * row.spread[0, i], y[1])
            row.step[0, i] = weight * (y[1] - p)
            row.bend[0, i] = weight * kappa[i] * p * (1.0 - p)
        return
    said, z, q = np.empty(K), np.empty(K), np.empty(K)
    for i in range(A):
        softmax(logits[i], said)
        for k in range(K):
            row.pull[k, i] = weight * (said[k] - y[k])
            slopes[i] += row.pull[k, i] * score[k, i]
    for i in range(B):
        copy_line(row.spread[:, i], q)
        settle(logits[A + i], q, weight, y, z, said)
        for k in range(K):
            row.step[k, i] = weight * (y[k] - said[k])
            row.bend[k, i] = weight * kappa[i] * said[k] * (1.0 - said[k])


@lanes_kernel
def descend(table: Array, slots: NDArray[np.uintp], x: Array, n: int, pull: Array, rate: Array, keep: Array) -> None:
    """Move the weights of the row's n entries, for the first-order members."""
    for e in range(n):
        at, value = slots[e], x[e]
        for k in range(pull.shape[0]):
            for i in range(A):
                g = pull[k, i] * value
                square = table[at, k, SQUARE + i] + g * g
                total = table[at, k, GRADIENT + i] + g
                table[at, k, SQUARE + i] = square
                table[at, k, GRADIENT + i] = total
                drive = keep[i] * g + (1.0 - keep[i]) * total
                table[at, k, i] = keep[i] * table[at, k, i] - rate[i] * drive / (1.0 + math.sqrt(square))


@lanes_kernel
def believe(table: Array, slots: NDArray[np.uintp], x: Array, n: int, step: Array, bend: Array) -> None:
    """Move the weights of the row's n entries and make them more certain, for the second-order members."""
    for e in range(n):
        at, value = slots[e], x[e]
        square = value * value
        for k in range(step.shape[0]):
            for i in range(B):
                v = table[at, k, VARIANCE + i]
                table[at, k, A + i] += step[k, i] * value * v
                table[at, k, VARIANCE + i] = v / (1.0 + bend[k, i] * square * v)
