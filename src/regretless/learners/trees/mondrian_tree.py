r"""Online Mondrian trees and the exact mixture over their prunings: the kernels of one tree.

A node is a row of the table `nodes`: eleven numbers, the weight of each class in it, and the box of its rows, first
the d lower ends, then the d upper ones. A row of zeros is a leaf without rows. Tree i has its root in row i for ever; a
split adds two rows.

**Forecasts.** A node forecasts :math:`p_v(k) = (n_k + s)/(n + Ks)` from its class weights. The subtree of an inner
node forecasts the mixture :math:`a_v p_v + (1 - a_v) P_c`, where :math:`P_c` is the forecast of the child's subtree
that contains the row, and :math:`a_v` the posterior probability that the pruning stops at v, given that it reaches v.
The sum of the weights of all prunings of a subtree changes by the factor :math:`G_v = a_v g_v + (1 - a_v) G_c` with a
row, where :math:`g_v = \prod_k p_v(k)^{wy_k}`, and Bayes' rule is :math:`\ln\frac{a_v}{1 - a_v} \mathrel{+}= \ln g_v -
\ln G_c`, because the other child has not seen the row. (For a sure label and weight 1, G is the probability of the
label.) This is the context-tree recursion, in terms of ratios instead of sums that grow with the rows.

**Splits.** A row outside the box of a node may put a new split above the node's rows (Mondrian process): the node v
then has two children, a copy of itself with all its rows, and a new leaf with this row. The mixture before and after
the split is the same, because

- the copy has the forecasts and the losses of v, so that the probability of stopping at v may be divided between v
  and its copy. A leaf keeps `STOP_PRIOR` of it. Otherwise the copy gets :math:`1/(k+1)^2` of it, at the k-th split
  above the same node, and v keeps at least half of it for ever;
- the first loss of the new leaf is that of the copy's subtree, which is what the tree said about this row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.draws import uniform
from regretless.core.jit import inlined_kernel, kernel, summing_kernel
from regretless.core.links import sigmoid
from regretless.core.types import Array

# Columns of the table: the children (0, 0: a leaf), the split, the time at which the node began (when its parent
# was split), the log-odds of stopping here, the probability of it and minus the logarithm of that of going on, the
# splits put above its rows since the first, the log loss of the node's forecasts and the weight of its rows.
LEFT, RIGHT, FEATURE, THRESHOLD, TIME, ODDS, STOP, PASS, RAISED, LOSS, TOTAL = range(11)
COUNTS = 11  # the first column of class weights; the box follows

STOP_PRIOR = 0.2  # 1/2 is the context-tree prior; less means deeper trees, whose average is better (docs/benchmarks.md)
DRAWS = 3  # per row and tree: the time of the split, its feature and its threshold
LEAST_RANGE = 1e-300  # 1 / range is finite
LEAST_REACH = 1e-280  # a row that is nearer to a box, in units of the columns' ranges, is inside: times stay finite


class Scratch(NamedTuple):
    """Buffers: the path of a row, and along it ln g of the nodes and ln G of the subtrees below them."""

    path: NDArray[np.int64]
    own: Array
    below: Array
    scale: Array  # (d,) 1 / range of the columns


@kernel
def scratch_for(nodes: Array, n_features: int) -> Scratch:
    """Buffers for any path in the table."""
    size = nodes.shape[0]
    return Scratch(np.empty(size, np.int64), np.empty(size), np.empty(size), np.empty(n_features))


@inlined_kernel
def child(nodes: Array, v: int, x: Array) -> int:
    """The child of an inner node on the path of x."""
    side = LEFT if x[int(nodes[v, FEATURE])] <= nodes[v, THRESHOLD] else RIGHT
    return int(nodes[v, side])


@kernel
def add_forecast(nodes: Array, root: int, x: Array, s: float, p: Array) -> float:
    """Add the tree's forecast to p, except for a number to add to every class, which is returned."""
    K = p.size
    v, rest, spread = root, 1.0, 0.0
    while True:
        leaf = nodes[v, LEFT] == 0.0
        stop = 1.0 if leaf else nodes[v, STOP]
        share = rest * stop / (nodes[v, TOTAL] + K * s)
        for k in range(K):
            p[k] += share * nodes[v, COUNTS + k]
        spread += share * s
        if leaf:
            return spread
        rest *= 1.0 - stop
        v = child(nodes, v, x)


@kernel
def descend(nodes: Array, root: int, x: Array, path: NDArray[np.int64]) -> int:
    """Write the path of x, from the root to a leaf; returns its length."""
    v, depth = root, 1
    path[0] = v
    while nodes[v, LEFT] != 0.0:
        v = child(nodes, v, x)
        path[depth] = v
        depth += 1
    return depth


@kernel
def measure(nodes: Array, x: Array, K: int, scale: Array) -> None:
    """1 / range of every column over the rows so far and x; 0 for a constant column."""
    d = x.size
    for j in range(d):
        low, high = nodes[0, COUNTS + K + j], nodes[0, COUNTS + K + d + j]
        size = max(high, x[j]) - min(low, x[j])
        scale[j] = 1.0 / max(size, LEAST_RANGE) if size > 0.0 else 0.0


@inlined_kernel
def outside(low: float, high: float, value: float) -> float:
    """How far a value is outside an interval."""
    return low - value if value < low else (value - high if value > high else 0.0)


@summing_kernel
def reach(nodes: Array, v: int, x: Array, K: int, scale: Array) -> float:
    """How far x is outside the node's box: the sum over the columns, each in units of its range."""
    d, total = x.size, 0.0
    for j in range(d):
        total += scale[j] * outside(nodes[v, COUNTS + K + j], nodes[v, COUNTS + K + d + j], x[j])
    return total


@kernel
def find_split(
    nodes: Array, path: NDArray[np.int64], depth: int, x: Array, y: Array, scale: Array, seed: int, row: float
) -> tuple[int, float, float]:
    """Where on the path the row splits, at which time, and its reach there; `depth`: nowhere.

    In the time between a node's beginning and its split, a split above its rows comes at a rate equal to the reach. A
    node whose rows all have the label of this row is not split.
    """
    K = y.size
    wait = -math.log1p(-uniform(seed, DRAWS * row))
    label = -1
    for k in range(K):
        if y[k] == 1.0:
            label = k
    for i in range(depth):
        v = path[i]
        if label >= 0 and nodes[v, COUNTS + label] == nodes[v, TOTAL]:
            continue
        rate = reach(nodes, v, x, K, scale)
        if rate < LEAST_REACH:
            continue
        began = nodes[v, TIME]
        if nodes[v, LEFT] == 0.0:
            return i, began + wait / rate, rate
        time = (nodes[int(nodes[v, LEFT]), TIME] - began) * rate
        if wait < time:
            return i, began + wait / rate, rate
        wait -= time
    return depth, 0.0, 0.0


@kernel
def draw_cut(
    nodes: Array, v: int, x: Array, K: int, scale: Array, rate: float, seed: int, row: float
) -> tuple[int, float, bool]:
    """The feature and the threshold of a split between the box of v and x, and whether x is to the right."""
    d = x.size
    mark = uniform(seed, DRAWS * row + 1.0) * rate
    feature = -1
    for j in range(d):
        part = scale[j] * outside(nodes[v, COUNTS + K + j], nodes[v, COUNTS + K + d + j], x[j])
        if part > 0.0:
            feature = j  # the last one, if rounding leaves a rest
            mark -= part
            if mark < 0.0:
                break
    low, high = nodes[v, COUNTS + K + feature], nodes[v, COUNTS + K + d + feature]
    right = x[feature] > high
    least, most = (high, x[feature]) if right else (x[feature], low)
    threshold = least + uniform(seed, DRAWS * row + 2.0) * (most - least)
    return feature, (threshold if threshold < most else least), right


@kernel
def share_for_copy(raised: float) -> float:
    """The share of the probability of stopping at an inner node that its copy gets, at its next split."""
    return 1.0 / ((raised + 2.0) * (raised + 2.0))


@kernel
def softplus(a: float) -> float:
    """ln(1 + e^a)."""
    return max(a, 0.0) + math.log1p(math.exp(-abs(a)))


@kernel
def set_odds(nodes: Array, v: int, odds: float) -> None:
    """The log-odds of stopping at a node, and what follows from them."""
    nodes[v, ODDS] = odds
    nodes[v, STOP] = sigmoid(odds)
    nodes[v, PASS] = softplus(odds)


@kernel
def weigh(nodes: Array, y: Array, weight: float, s: float, depth: int, at: int, scratch: Scratch) -> float:
    """Fill `own` and `below` along the path; returns ln G of the tree.

    Where the row splits, `below` is that of the copy's subtree, and so of the new leaf.
    """
    path, own, below, _ = scratch
    K = y.size
    for i in range(depth):
        v = path[i]
        own[i] = 0.0
        for k in range(K):
            if y[k] != 0.0:
                p = (nodes[v, COUNTS + k] + s) / (nodes[v, TOTAL] + K * s)
                own[i] += weight * y[k] * math.log(p)
    G = own[depth - 1]
    below[depth - 1] = G
    for i in range(depth - 2, -1, -1):
        v, gain = path[i], own[i] - G
        below[i] = G
        if i == at:
            odds = nodes[v, ODDS] + math.log(share_for_copy(nodes[v, RAISED]))
            below[i] += softplus(odds + gain) - softplus(odds)
        G += softplus(nodes[v, ODDS] + gain) - nodes[v, PASS]
    return G


@kernel
def split(nodes: Array, v: int, used: int, cut: tuple[int, float, bool], time: float) -> int:
    """Put a split above the rows of v: its copy and a leaf without rows, which is returned, become its children."""
    copy, leaf = used, used + 1
    nodes[copy] = nodes[v]
    nodes[copy, TIME] = time
    nodes[leaf, TIME] = time
    if nodes[v, LEFT] == 0.0:
        set_odds(nodes, v, math.log(STOP_PRIOR / (1.0 - STOP_PRIOR)))
    else:
        share, odds = share_for_copy(nodes[v, RAISED]), nodes[v, ODDS]
        nodes[v, RAISED] += 1.0
        nodes[copy, RAISED] = 0.0
        set_odds(nodes, copy, odds + math.log(share))
        set_odds(nodes, v, odds + math.log1p(-share) - softplus(odds + math.log(share)))
    feature, threshold, right = cut
    nodes[v, FEATURE] = feature
    nodes[v, THRESHOLD] = threshold
    nodes[v, LEFT] = copy if right else leaf
    nodes[v, RIGHT] = leaf if right else copy
    return leaf


@kernel
def count(nodes: Array, v: int, x: Array, y: Array, weight: float) -> None:
    """Add a row to the class weights and to the box of a node."""
    d, K = x.size, y.size
    nodes[v, TOTAL] += weight
    for k in range(K):
        nodes[v, COUNTS + k] += weight * y[k]
    low, high = COUNTS + K, COUNTS + K + d
    for j in range(d):
        nodes[v, low + j] = min(nodes[v, low + j], x[j])
        nodes[v, high + j] = max(nodes[v, high + j], x[j])


@kernel
def settle(nodes: Array, x: Array, y: Array, weight: float, scratch: Scratch, last: int) -> None:
    """Update the nodes of the path down to `last`: losses, probabilities of stopping, class weights and boxes."""
    for i in range(last + 1):
        v = scratch.path[i]
        nodes[v, LOSS] -= scratch.own[i]
        if nodes[v, LEFT] != 0.0:
            set_odds(nodes, v, nodes[v, ODDS] + scratch.own[i] - scratch.below[i])
        count(nodes, v, x, y, weight)


@kernel
def begin_box(nodes: Array, v: int, x: Array, K: int) -> None:
    """The box of the first row of a node."""
    d = x.size
    for j in range(d):
        nodes[v, COUNTS + K + j] = x[j]
        nodes[v, COUNTS + K + d + j] = x[j]
