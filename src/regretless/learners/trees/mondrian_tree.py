r"""Online Mondrian trees and the mixtures over their prunings: the kernels of one tree.

A node is a row of the table `nodes`: fourteen numbers, the weight of each class in it, and the box of its rows, first
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
then has two children, a copy of itself with all its rows, and a new leaf with this row. There are two mixtures.

The *cautious* one is the same before and after the split, so that it has a guarantee:

- the copy has the forecasts and the losses of v, so that the probability of stopping at v is divided between v and its
  copy. A leaf keeps half of it. Otherwise the copy gets :math:`1/(k+1)^2` of it, at the k-th split above the same node,
  and v keeps at least half of it for ever;
- the first loss of the new leaf is that of the copy's subtree, which is what the tree said about this row.

The *bold* one follows the program of the AMF paper's authors: every inner node has the prior probability 1/2 of
stopping, also a new one, and the first row of a leaf costs the leaf nothing. Trees are then deeper, and their mean is
often better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.draws import uniform
from regretless.core.jit import inlined_kernel, kernel, summing_kernel
from regretless.core.types import Array

# Columns of the table: the children (0, 0: a leaf), the split, the time at which the node began (when its parent was
# split), the splits put above its rows since the first, the log loss of the node's forecasts, the weight of its rows;
# then for the cautious and for the bold mixture the log-odds of stopping at an inner node, the probability of it, and
# minus the logarithm of that of going on.
LEFT, RIGHT, FEATURE, THRESHOLD, TIME, RAISED, LOSS, ODDS, STOP, PASS = range(10)
BOLD = 3  # ODDS + BOLD, STOP + BOLD and PASS + BOLD are those of the bold mixture
TOTAL = 13
COUNTS = 14  # the first column of class weights; the box follows

LOG_2 = math.log(2.0)
SURE = 150.0  # log-odds beyond which a probability is 0 or 1: forecasts are much larger than e^-150
DRAWS = 3  # per row and tree: the time of the split, its feature and its threshold
LEAST_RANGE = 1e-300  # 1 / range is finite
LEAST_REACH = 1e-280  # a row that is nearer to a box, in units of the columns' ranges, is inside: times stay finite


class Scratch(NamedTuple):
    """Buffers: the paths of a row, and numbers along the path in one tree."""

    paths: NDArray[np.int64]  # one after the other
    first: NDArray[np.int64]  # (M,) where each begins
    depth: NDArray[np.int64]  # (M,) and how long it is
    active: NDArray[np.int64]  # (M,) the trees whose paths go on
    own: Array  # ln g of the nodes
    after: Array  # (longest path, 6) their columns from ODDS on after the row
    scale: Array  # (d,) 1 / range of the columns
    said: Array  # (2, K) the forecasts of the cautious and of the bold forest


@kernel
def scratch_for(nodes: Array, M: int, d: int, K: int) -> Scratch:
    """Buffers for any paths in the table, which has M trees."""
    size = nodes.shape[0]
    return Scratch(
        np.empty(size, np.int64),
        np.empty(M, np.int64),
        np.empty(M, np.int64),
        np.empty(M, np.int64),
        np.empty(size),
        np.empty((size, 2 * BOLD)),
        np.empty(d),
        np.empty((2, K)),
    )


@inlined_kernel
def child(nodes: Array, v: int, x: Array) -> int:
    """The child of an inner node on the path of x."""
    side = LEFT if x[int(nodes[v, FEATURE])] <= nodes[v, THRESHOLD] else RIGHT
    return int(nodes[v, side])


@kernel
def descend(nodes: Array, sizes: Array, x: Array, scratch: Scratch) -> None:
    """Write the paths of x in all trees, from the root to a leaf.

    All paths go down by one node in turn, so that the processor reads the nodes of several trees at the same time.
    """
    paths, first, depth, active = scratch.paths, scratch.first, scratch.depth, scratch.active
    n, begin = sizes.size, 0
    for root in range(n):
        first[root], depth[root], active[root] = begin, 1, root
        paths[begin] = root
        begin += (int(sizes[root]) + 1) // 2  # a tree has no longer path
    while n > 0:
        i = 0
        while i < n:
            root = active[i]
            at = first[root] + depth[root]
            v = paths[at - 1]
            if nodes[v, LEFT] == 0.0:
                n -= 1
                active[i] = active[n]
                continue
            paths[at] = child(nodes, v, x)
            depth[root] += 1
            i += 1


@inlined_kernel
def path_in(scratch: Scratch, root: int) -> NDArray[np.int64]:
    """The path in one tree."""
    begin = scratch.first[root]
    return scratch.paths[begin : begin + scratch.depth[root]]


@kernel
def add_forecasts(nodes: Array, path: NDArray[np.int64], s: float, said: Array) -> tuple[float, float]:
    """Add the tree's two forecasts to `said`, except for a number to add to every class, which is returned."""
    K = said.shape[1]
    rest, bold_rest, spread, bold_spread = 1.0, 1.0, 0.0, 0.0
    for v in path:
        leaf = nodes[v, LEFT] == 0.0
        stop = 1.0 if leaf else nodes[v, STOP]
        bold_stop = 1.0 if leaf else nodes[v, STOP + BOLD]
        if stop > 0.0 or bold_stop > 0.0:
            total = nodes[v, TOTAL] + K * s
            share, bold_share = rest * stop / total, bold_rest * bold_stop / total
            counts = nodes[v, COUNTS : COUNTS + K]
            for k in range(K):
                said[0, k] += share * counts[k]
                said[1, k] += bold_share * counts[k]
            spread += share * s
            bold_spread += bold_share * s
            rest *= 1.0 - stop
            bold_rest *= 1.0 - bold_stop
    return spread, bold_spread


@inlined_kernel
def box(nodes: Array, v: int, K: int, d: int) -> tuple[Array, Array]:
    """The lower and the upper ends of a node's rows, as views: loops over them are faster."""
    first = COUNTS + K
    return nodes[v, first : first + d], nodes[v, first + d : first + 2 * d]


@kernel
def measure(nodes: Array, x: Array, K: int, scale: Array) -> None:
    """1 / range of every column over the rows so far and x; 0 for a constant column."""
    low, high = box(nodes, 0, K, x.size)
    for j in range(x.size):
        size = max(high[j], x[j]) - min(low[j], x[j])
        scale[j] = 1.0 / max(size, LEAST_RANGE) if size > 0.0 else 0.0


@inlined_kernel
def outside(low: float, high: float, value: float) -> float:
    """How far a value is outside an interval."""
    below, above = low - value, value - high
    return (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)


@inlined_kernel
def reach(nodes: Array, v: int, x: Array, K: int, scale: Array) -> float:
    """How far x is outside the node's box: the sum over the columns, each in units of its range."""
    low, high = box(nodes, v, K, x.size)
    total = 0.0
    for j in range(x.size):
        total += scale[j] * outside(low[j], high[j], x[j])
    return total


@summing_kernel  # for `reach`, which is inlined: a call would cost a tenth of the time of a row
def find_split(
    nodes: Array, path: NDArray[np.int64], x: Array, K: int, label: int, scale: Array, seed: int, row: float
) -> tuple[int, float, float]:
    """Where on the path the row splits, at which time, and its reach there; at its end: nowhere.

    In the time between a node's beginning and its split, a split above its rows comes at a rate equal to the reach. A
    node whose rows all have the label of this row is not split.
    """
    wait = -math.log1p(-uniform(seed, DRAWS * row))
    for i in range(path.size):
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
    return path.size, 0.0, 0.0


@kernel
def draw_cut(
    nodes: Array, v: int, x: Array, K: int, scale: Array, rate: float, seed: int, row: float
) -> tuple[int, float, bool]:
    """The feature and the threshold of a split between the box of v and x, and whether x is to the right."""
    low, high = box(nodes, v, K, x.size)
    mark = uniform(seed, DRAWS * row + 1.0) * rate
    feature = -1
    for j in range(x.size):
        part = scale[j] * outside(low[j], high[j], x[j])
        if part > 0.0:
            feature = j  # the last one, if rounding leaves a rest
            mark -= part
            if mark < 0.0:
                break
    right = x[feature] > high[feature]
    least, most = (high[feature], x[feature]) if right else (x[feature], low[feature])
    threshold = least + uniform(seed, DRAWS * row + 2.0) * (most - least)
    return feature, (threshold if threshold < most else least), right


@kernel
def share_for_copy(raised: float) -> float:
    """The share of the probability of stopping at an inner node that its copy gets, at its next split."""
    return 1.0 / ((raised + 2.0) * (raised + 2.0))


@kernel
def sure_label(y: Array) -> int:
    """The class of probability 1; -1: a soft label."""
    for k in range(y.size):
        if y[k] == 1.0:
            return k
    return -1


@inlined_kernel
def probabilities(odds: float) -> tuple[float, float]:
    """The probability of stopping, and minus the logarithm of that of going on, ln(1 + e^odds)."""
    if odds > SURE:
        return 1.0, odds
    if odds < -SURE:
        return 0.0, 0.0
    e = math.exp(-abs(odds))
    stop = 1.0 / (1.0 + e) if odds >= 0.0 else e / (1.0 + e)
    return stop, max(odds, 0.0) + math.log(1.0 + e)  # faster than log1p; only the absolute error matters


@inlined_kernel
def set_odds(table: Array, i: int, at: int, odds: float) -> None:
    """Log-odds of stopping, and what follows from them, in three columns of row i from `at` on."""
    table[i, at] = odds
    table[i, at + 1], table[i, at + 2] = probabilities(odds)


@inlined_kernel
def log_likelihood(nodes: Array, v: int, y: Array, label: int, s: float) -> float:
    """ln g of a node for weight 1."""
    K = y.size
    total = nodes[v, TOTAL] + K * s
    if label >= 0:
        return math.log((nodes[v, COUNTS + label] + s) / total)
    found = 0.0
    for k in range(K):
        if y[k] != 0.0:
            found += y[k] * math.log((nodes[v, COUNTS + k] + s) / total)
    return found


@kernel
def weigh(nodes: Array, path: NDArray[np.int64], at: int, scratch: Scratch) -> tuple[float, float]:
    """Fill `after` for the cautious mixture; returns ln G of the tree, and of the new leaf if the row splits."""
    own, after, depth = scratch.own, scratch.after, path.size
    G = own[depth - 1]
    new_leaf = G
    if at == depth - 1:
        set_odds(after, at, 0, 0.0)
    for i in range(depth - 2, -1, -1):
        v, gain = path[i], own[i] - G
        odds = nodes[v, ODDS]
        if i != at:
            set_odds(after, i, 0, odds + gain)
            G += after[i, 2] - nodes[v, PASS]
            continue
        share = share_for_copy(nodes[v, RAISED])
        copy = odds + math.log(share)
        passed = probabilities(copy)[1]
        new_leaf = G + probabilities(copy + gain)[1] - passed
        set_odds(after, i, 0, odds + math.log1p(-share) - passed + own[i] - new_leaf)
        G += probabilities(odds + gain)[1] - nodes[v, PASS]
    return G, new_leaf


@kernel
def weigh_boldly(nodes: Array, path: NDArray[np.int64], at: int, scratch: Scratch) -> None:
    r"""Fill `after` for the bold mixture.

    A split changes the sum of the weights from :math:`W = w(1 + e^{-odds})/2`, or w for a leaf, to :math:`(wg + W)/2`.
    """
    own, after = scratch.own, scratch.after
    last = min(at, path.size - 1)
    G = own[last]
    if at < path.size:
        v = path[at]
        inner = nodes[v, LEFT] != 0.0
        set_odds(after, at, BOLD, G + (LOG_2 + nodes[v, ODDS + BOLD] - nodes[v, PASS + BOLD] if inner else 0.0))
        G = after[at, BOLD + 2] - LOG_2
    for i in range(last - 1, -1, -1):
        v = path[i]
        set_odds(after, i, BOLD, nodes[v, ODDS + BOLD] + own[i] - G)
        G += after[i, BOLD + 2] - nodes[v, PASS + BOLD]


@kernel
def split(nodes: Array, v: int, used: int, cut: tuple[int, float, bool], time: float) -> int:
    """Put a split above the rows of v: its copy and a leaf without rows, which is returned, become its children."""
    copy, leaf = used, used + 1
    nodes[copy] = nodes[v]
    nodes[copy, TIME] = time
    nodes[leaf, TIME] = time
    if nodes[v, LEFT] != 0.0:
        set_odds(nodes, copy, ODDS, nodes[v, ODDS] + math.log(share_for_copy(nodes[v, RAISED])))
        nodes[copy, RAISED] = 0.0
        nodes[v, RAISED] += 1.0
    feature, threshold, right = cut
    nodes[v, FEATURE] = feature
    nodes[v, THRESHOLD] = threshold
    nodes[v, LEFT] = copy if right else leaf
    nodes[v, RIGHT] = leaf if right else copy
    return leaf


@inlined_kernel
def count(nodes: Array, v: int, x: Array, y: Array, label: int, weight: float) -> None:
    """Add a row to the class weights and to the box of a node."""
    nodes[v, TOTAL] += weight
    if label >= 0:
        nodes[v, COUNTS + label] += weight
    else:
        for k in range(y.size):
            nodes[v, COUNTS + k] += weight * y[k]
    low, high = box(nodes, v, y.size, x.size)
    for j in range(x.size):
        if x[j] < low[j]:
            low[j] = x[j]
        elif x[j] > high[j]:
            high[j] = x[j]


@kernel
def settle(
    nodes: Array, path: NDArray[np.int64], x: Array, y: Array, label: int, weight: float, at: int, scratch: Scratch
) -> None:
    """Update the nodes of the path down to the split: losses, probabilities of stopping, class weights and boxes."""
    for i in range(min(at + 1, path.size)):
        v = path[i]
        nodes[v, LOSS] -= scratch.own[i]
        if nodes[v, LEFT] != 0.0:
            for j in range(2 * BOLD):
                nodes[v, ODDS + j] = scratch.after[i, j]
        count(nodes, v, x, y, label, weight)


@kernel
def begin_box(nodes: Array, v: int, x: Array, K: int) -> None:
    """The box of the first row of a node."""
    low, high = box(nodes, v, K, x.size)
    low[:] = x
    high[:] = x
