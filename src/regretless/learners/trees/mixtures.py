r"""The mixture over the prunings of a tree: the probability of stopping at each inner node, and how a row changes it.

The subtree of an inner node v forecasts the mixture :math:`a_v p_v + (1 - a_v) P_c`, where :math:`P_c` is the forecast
of the child's subtree that contains the row, and :math:`a_v` the posterior probability that the pruning stops at v,
given that it reaches v. The sum of the weights of all prunings of a subtree changes by the factor :math:`G_v = a_v g_v
+ (1 - a_v) G_c` with a row, where :math:`g_v = \prod_k p_v(k)^{wy_k}`, and Bayes' rule is :math:`a_v \leftarrow a_v g_v
/ G_v`, :math:`1 - a_v \leftarrow (1 - a_v) G_c / G_v`, because the other child has not seen the row. (For a sure label
and weight 1, G is the probability of the label.) This is the context-tree recursion, in terms of ratios instead of sums
that grow with the rows.

Both probabilities are stored, each with small relative error, so that a row costs no logarithm. The smaller one would
soon underflow: factors STEP are left out of it and counted. It then has no effect on forecasts, until rows have
multiplied it by as many factors 1 / STEP.

Rows of a large weight, whose g underflows, are learned with logarithms of g and G (`in_logs`).
"""

from __future__ import annotations

import math

from regretless.core.kernels.jit import inlined_kernel, kernel
from regretless.core.types import Array

# Columns of a mixture, from its first one on: the probability of stopping, that of going on to a child, and the factors
# that are left out: of the first one if the number is positive, of the other one if it is negative.
STOP, GO, LEFT_OUT = range(3)
MIXTURE = 3  # columns

STEP = 2.0**-200  # a probability from which factors are left out is between STEP squared and STEP
LOG_STEP = math.log(STEP)
LEAST_LOG = -100.0  # of g, without logarithms: a row then changes probabilities by less than a factor STEP


@inlined_kernel
def keep_in_range(nodes: Array, v: int, at: int) -> None:
    """Leave out one factor more, or one less, where the smaller probability requires it."""
    out = nodes[v, at + LEFT_OUT]
    sign = 1.0 if nodes[v, at + STOP] < nodes[v, at + GO] else -1.0
    smaller = at + STOP if sign > 0.0 else at + GO
    if nodes[v, smaller] < STEP * STEP:
        nodes[v, smaller] /= STEP
        nodes[v, at + LEFT_OUT] = out + sign
    elif out != 0.0 and nodes[v, smaller] > STEP:
        nodes[v, smaller] *= STEP
        nodes[v, at + LEFT_OUT] = out - sign


@inlined_kernel
def set_both(nodes: Array, v: int, at: int, stop: float, go: float) -> None:
    """The two probabilities, with the same factors left out as before."""
    nodes[v, at + STOP], nodes[v, at + GO] = stop, go
    if stop < STEP * STEP or go < STEP * STEP or nodes[v, at + LEFT_OUT] != 0.0:
        keep_in_range(nodes, v, at)


@kernel
def log_odds(nodes: Array, v: int, at: int) -> float:
    """The log-odds of stopping."""
    return math.log(nodes[v, at + STOP] / nodes[v, at + GO]) + LOG_STEP * nodes[v, at + LEFT_OUT]


@kernel
def set_odds(nodes: Array, v: int, at: int, odds: float) -> None:
    """The probabilities by their log-odds."""
    out = max(0.0, math.floor(abs(odds) / -LOG_STEP) - 1.0)
    ratio = math.exp(-abs(odds) - LOG_STEP * out)
    smaller, larger = ratio / (1.0 + ratio), 1.0 / (1.0 + ratio)
    nodes[v, at + STOP], nodes[v, at + GO] = (smaller, larger) if odds < 0.0 else (larger, smaller)
    nodes[v, at + LEFT_OUT] = out if odds < 0.0 else -out


@kernel
def log_of_sum(odds: float) -> float:
    """ln(1 + e^odds)."""
    return max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))


@inlined_kernel
def factor(nodes: Array, v: int, at: int, g: float, G: float, in_logs: bool) -> float:
    """G of the subtree of v from g of v and G of the child's subtree, without learning."""
    if in_logs:
        odds = log_odds(nodes, v, at)
        return G + log_of_sum(odds + g - G) - log_of_sum(odds)
    return nodes[v, at + STOP] * g + nodes[v, at + GO] * G


@inlined_kernel
def learn_factor(nodes: Array, v: int, at: int, g: float, G: float, in_logs: bool) -> float:
    """Bayes' rule at v; returns G of its subtree."""
    if in_logs:
        odds = log_odds(nodes, v, at)
        set_odds(nodes, v, at, odds + g - G)
        return G + log_of_sum(odds + g - G) - log_of_sum(odds)
    stop, go = nodes[v, at + STOP] * g, nodes[v, at + GO] * G
    inverse = 1.0 / (stop + go)
    set_both(nodes, v, at, stop * inverse, go * inverse)
    return stop + go


@kernel
def halve(nodes: Array, v: int, at: int) -> None:
    """The probability 1/2 of stopping at a node that was a leaf."""
    nodes[v, at + STOP] = nodes[v, at + GO] = 0.5


@kernel
def divide(nodes: Array, v: int, copy: int, at: int, share: float) -> None:
    """Give the copy of an inner node, now below it, a share of the probability of stopping. The mixture is the same."""
    stop, go = nodes[v, at + STOP], nodes[v, at + GO]
    rest = share * stop + go
    set_both(nodes, copy, at, share * stop / rest, go / rest)
    nodes[v, at + LEFT_OUT] = max(nodes[v, at + LEFT_OUT], 0.0)  # the rest is no longer small
    set_both(nodes, v, at, (1.0 - share) * stop, rest)


@kernel
def begin_boldly(nodes: Array, v: int, at: int) -> float:
    r"""Give a node, and the subtree of its copy, the prior probability 1/2 each; returns the change of the weights.

    The sum of the weights of the prunings is :math:`W = w/2a` before, with w that of the node alone, and :math:`(w +
    W)/2` after.
    """
    ratio = 2.0 * nodes[v, at + STOP]
    nodes[v, at + LEFT_OUT] = max(nodes[v, at + LEFT_OUT], 0.0)
    set_both(nodes, v, at, ratio / (1.0 + ratio), 1.0 / (1.0 + ratio))
    return 0.5 * (1.0 + ratio)
