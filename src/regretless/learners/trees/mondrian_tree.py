r"""Online Mondrian trees: the kernels of one tree.

A node is a row of the table `nodes`: fourteen numbers, the weight of each class in it, and the box of its rows. A row
of zeros is a leaf without rows. Tree i has its root in row i for ever; a split adds two rows, of the left child and of
the right one.

**Boxes.** First minus the lower end of each of the d columns, then the upper ends. With a row in the same form, -x and
x, the row is outside by its excess over the box, and the larger of both is the box with the row.

**Forecasts.** A node forecasts :math:`p_v(k) = (n_k + s)/(n + Ks)` from its class weights; the tree forecasts the
mixture of its prunings (mixtures.py).

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

from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import (
    apart_kernel,
    apart_summing_kernel,
    inlined_kernel,
    kernel,
    merged_kernel,
    shared_kernel,
)
from regretless.core.numbers.draws import uniform
from regretless.core.types import Array
from regretless.learners.trees.mixtures import (
    GO,
    LEAST_LOG,
    MIXTURE,
    STEP,
    STOP,
    begin_boldly,
    divide,
    factor,
    halve,
    learn_factor,
)

# Columns of the table: the left child, which the right one follows (0: a leaf), the split, the time at which the node
# began (when its parent was split), the splits put above its rows since the first, the log loss of the node's forecasts
# but for the last ones, the product of the probabilities that these gave to their labels, the two mixtures, and the
# weight of its rows.
LEFT, FEATURE, THRESHOLD, TIME, RAISED, LOSS, PRODUCT, CAUTIOUS = range(8)
BOLD = CAUTIOUS + MIXTURE
TOTAL = BOLD + MIXTURE
COUNTS = TOTAL + 1  # the first column of class weights; the box follows

LEAST_PRODUCT = 1e-200
DRAWS = 3  # per row and tree: the time of the split, its feature and its threshold
LEAST_RANGE = 1e-300  # 1 / range is finite
LEAST_REACH = 1e-280  # a row that is nearer to a box, in units of the columns' ranges, is inside: times stay finite


class Measured(NamedTuple):
    """A row, and how columns are measured."""

    ends: Array  # (2d,) the row as a box
    scale: Array  # (2d,) 1 / range of the columns


class Draws(NamedTuple):
    """Where the random numbers of a row begin."""

    seed: int
    row: float


class Scratch(NamedTuple):
    """Buffers: a row and its paths, and numbers along the path in one tree."""

    paths: NDArray[np.int64]  # one after the other
    first: NDArray[np.int64]  # (M,) where each begins
    depth: NDArray[np.int64]  # (M,) and how long it is
    active: NDArray[np.int64]  # (M,) the trees whose paths go on
    own: Array  # g of the nodes, or ln g
    ends: Array  # (2d,) the row as a box
    scale: Array  # (2d,) 1 / range of the columns
    said: Array  # (2, K) the forecasts of the cautious and of the bold forest


@kernel
def scratch_for(nodes: Array, M: int, d: int, K: int) -> Scratch:
    """Buffers for any paths in the table, which has M trees, and one more node in each."""
    size = nodes.shape[0] + M
    return Scratch(
        np.empty(size, np.int64),
        np.empty(M, np.int64),
        np.empty(M, np.int64),
        np.empty(M, np.int64),
        np.empty(size),
        np.empty(2 * d),
        np.empty(2 * d),
        np.empty((2, K)),
    )


@inlined_kernel
def child(nodes: Array, v: int, x: Array) -> int:
    """The child of an inner node on the path of x."""
    return int(nodes[v, LEFT]) + int(x[int(nodes[v, FEATURE])] > nodes[v, THRESHOLD])


@merged_kernel
def descend(nodes: Array, sizes: Array, x: Array, scratch: Scratch) -> None:
    """Write the paths of x in all trees, from the root to a leaf.

    All paths go down by one node in turn, so that the processor reads the nodes of several trees at the same time.
    """
    paths, first, depth, active = scratch.paths, scratch.first, scratch.depth, scratch.active
    n, begin = sizes.size, 0
    for root in range(n):
        first[root], depth[root], active[root] = begin, 1, root
        paths[begin] = root
        begin += (int(sizes[root]) + 1) // 2 + 1  # a tree has no longer path, and a split may add a node
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


@inlined_kernel
def end_path(scratch: Scratch, root: int, at: int, leaf: int) -> None:
    """Let the path in one tree end with the leaf after its entry `at`."""
    scratch.paths[scratch.first[root] + at + 1] = leaf
    scratch.depth[root] = at + 2


@kernel
def add_forecasts(nodes: Array, path: NDArray[np.int64], s: float, said: Array) -> tuple[float, float]:
    """Add the tree's two forecasts to `said`, except for a number to add to every class, which is returned."""
    K, last = said.shape[1], path.size - 1
    rest, bold_rest, spread, bold_spread = 1.0, 1.0, 0.0, 0.0
    for i in range(path.size):
        v = path[i]
        stop = 1.0 if i == last else nodes[v, CAUTIOUS + STOP]
        bold_stop = 1.0 if i == last else nodes[v, BOLD + STOP]
        if stop > STEP or bold_stop > STEP:
            inverse = 1.0 / (nodes[v, TOTAL] + K * s)
            share, bold_share = rest * stop * inverse, bold_rest * bold_stop * inverse
            for k in range(K):
                said[0, k] += share * nodes[v, COUNTS + k]
                said[1, k] += bold_share * nodes[v, COUNTS + k]
            spread += share * s
            bold_spread += bold_share * s
            rest *= nodes[v, CAUTIOUS + GO]
            bold_rest *= nodes[v, BOLD + GO]
    return spread, bold_spread


@kernel
def measure(nodes: Array, x: Array, K: int, ends: Array, scale: Array) -> None:
    """Write the row as a box, and 1 / range of every column over the rows so far and x; 0 for a constant column."""
    d, seen = x.size, nodes[0, COUNTS + K :]
    for j in range(d):
        ends[j], ends[d + j] = -x[j], x[j]
        size = max(seen[d + j], x[j]) + max(seen[j], -x[j])
        scale[j] = scale[d + j] = 1.0 / max(size, LEAST_RANGE) if size > 0.0 else 0.0


@apart_summing_kernel
def reach(box: Array, ends: Array, scale: Array) -> tuple[float, float]:
    """How far a row is outside a box: the sum over the columns, each in units of its range; and in their own units.

    The second sum is 0 if and only if the row is inside; the first one may underflow.
    """
    total, plain = 0.0, 0.0
    for j in range(ends.size):
        more = ends[j] - box[j]
        more = more if more > 0.0 else 0.0
        total += scale[j] * more
        plain += more
    return total, plain


@apart_kernel
def extend(box: Array, ends: Array) -> None:
    """Add a row to a box."""
    for j in range(ends.size):
        box[j] = ends[j] if ends[j] > box[j] else box[j]


@kernel
def find_split(
    nodes: Array, path: NDArray[np.int64], K: int, label: int, full: bool, measured: Measured, draws: Draws
) -> tuple[int, float, float]:
    """Where on the path the row splits, at which time, and its reach there; at its end: nowhere.

    In the time between a node's beginning and its split, a split above its rows comes at a rate equal to the reach. A
    node whose rows all have the label of this row is not split, and no node of a full tree. The boxes of the nodes
    above the split get the row.
    """
    first, last, (ends, scale) = COUNTS + K, path.size - 1, measured
    # the difference is exact, and log is faster than log1p
    wait = -math.log(1.0 - uniform(draws.seed, DRAWS * draws.row))
    i, rate, time = 0, 0.0, 0.0
    while i <= last:
        v = path[i]
        if full or (label >= 0 and nodes[v, COUNTS + label] == nodes[v, TOTAL]):
            plain = 1.0
        else:
            rate, plain = reach(nodes[v, first:], ends, scale)
            if rate >= LEAST_REACH:
                time = nodes[v, TIME] + wait / rate
                if i == last or time < nodes[path[i + 1], TIME]:
                    break
                wait = max(wait - (nodes[path[i + 1], TIME] - nodes[v, TIME]) * rate, 0.0)
        if plain > 0.0:
            extend(nodes[v, first:], ends)
        i += 1
    return i, time, rate


@kernel
def draw_cut(nodes: Array, v: int, K: int, measured: Measured, rate: float, draws: Draws) -> tuple[int, float, bool]:
    """The feature and the threshold of a split between the box of v and x, and whether x is to the right."""
    ends, scale = measured
    some, d = nodes[v, COUNTS + K :], ends.size // 2
    mark = uniform(draws.seed, DRAWS * draws.row + 1.0) * rate
    feature = -1
    for j in range(d):
        part = scale[j] * (max(ends[j] - some[j], 0.0) + max(ends[d + j] - some[d + j], 0.0))
        if part > 0.0:
            feature = j  # the last one, if rounding leaves a rest
            mark -= part
            if mark < 0.0:
                break
    low, high, value = -some[feature], some[d + feature], ends[d + feature]
    right = value > high
    least, most = (high, value) if right else (value, low)
    threshold = least + uniform(draws.seed, DRAWS * draws.row + 2.0) * (most - least)
    return feature, (threshold if threshold < most else least), right


@kernel
def sure_label(y: Array) -> int:
    """The class of probability 1; -1: a soft label."""
    for k in range(y.size):
        if y[k] == 1.0:
            return k
    return -1


@kernel
def likelihoods(
    nodes: Array, path: NDArray[np.int64], y: Array, label: int, weight: float, s: float, own: Array
) -> bool:
    """Write g of the nodes, or, where one of them is too small, ln g; returns whether it is ln g."""
    K, plain, least = y.size, weight == 1.0 and label >= 0, 0.0
    for i in range(path.size):
        v = path[i]
        total = nodes[v, TOTAL] + K * s
        if plain:
            own[i] = (nodes[v, COUNTS + label] + s) / total
            continue
        own[i] = 0.0
        for k in range(K):
            if y[k] != 0.0:
                own[i] += weight * y[k] * math.log((nodes[v, COUNTS + k] + s) / total)
        least = min(least, own[i])
    if plain or least < LEAST_LOG:
        return not plain
    for i in range(path.size):
        own[i] = math.exp(own[i])
    return False


@kernel
def split(nodes: Array, v: int, used: int, cut: tuple[int, float, bool], time: float) -> tuple[int, int, float]:
    """Put a split above the rows of v: its copy and a leaf without rows become its children.

    Returns their places, and the change of the weights of the bold mixture.
    """
    feature, threshold, right = cut
    copy, leaf = (used, used + 1) if right else (used + 1, used)
    copy_line(nodes[v], nodes[copy])
    nodes[copy, TIME] = nodes[leaf, TIME] = time
    nodes[leaf, PRODUCT] = 1.0
    if nodes[v, LEFT] == 0.0:
        halve(nodes, v, CAUTIOUS)
        halve(nodes, v, BOLD)
    else:
        divide(nodes, v, copy, CAUTIOUS, 1.0 / ((nodes[v, RAISED] + 2.0) * (nodes[v, RAISED] + 2.0)))
        nodes[copy, RAISED] = 0.0
        nodes[v, RAISED] += 1.0
    nodes[v, LEFT], nodes[v, FEATURE], nodes[v, THRESHOLD] = used, feature, threshold
    return copy, leaf, begin_boldly(nodes, v, BOLD)


@shared_kernel
def learn_mixtures(
    nodes: Array, path: NDArray[np.int64], own: Array, in_logs: bool, at: int, copy: int, change: float
) -> float:
    """Learn a row in the two mixtures, from the leaf up; returns ln G of the cautious tree.

    If the row splits the node at `at`, its copy and the nodes below do not learn it: what the cautious mixture says of
    it there is g of the new leaf, and takes the place of the copy's.
    """
    last, lowest = path.size - 1, path.size - 2
    G = bold = own[last]
    if at <= last:
        for i in range(last - 1, at, -1):
            G = factor(nodes, path[i], CAUTIOUS, own[i], G, in_logs)
        if at < last:
            G = factor(nodes, copy, CAUTIOUS, own[at], G, in_logs)
        own[at + 1] = G
        G = learn_factor(nodes, path[at], CAUTIOUS, own[at], G, in_logs)
        bold = learn_factor(nodes, path[at], BOLD, own[at], 0.0 if in_logs else 1.0, in_logs)
        bold = bold + math.log(change) if in_logs else bold * change
        lowest = at - 1
    for i in range(lowest, -1, -1):
        G = learn_factor(nodes, path[i], CAUTIOUS, own[i], G, in_logs)
        bold = learn_factor(nodes, path[i], BOLD, own[i], bold, in_logs)
    return G if in_logs else math.log(G)


@kernel
def count(
    nodes: Array, path: NDArray[np.int64], y: Array, label: int, weight: float, own: Array, in_logs: bool
) -> None:
    """Add a row to the losses and to the class weights of the nodes of its path."""
    for i in range(path.size):
        v = path[i]
        if in_logs:
            nodes[v, LOSS] -= own[i]
        else:
            nodes[v, PRODUCT] *= own[i]
            if nodes[v, PRODUCT] < LEAST_PRODUCT:
                nodes[v, LOSS] -= math.log(nodes[v, PRODUCT])
                nodes[v, PRODUCT] = 1.0
        nodes[v, TOTAL] += weight
        if label >= 0:
            nodes[v, COUNTS + label] += weight
        else:
            for k in range(y.size):
                nodes[v, COUNTS + k] += weight * y[k]


@kernel
def begin(nodes: Array, v: int, x: Array, K: int) -> None:
    """The first row of a root: its box, and no loss yet."""
    for j in range(x.size):
        nodes[v, COUNTS + K + j], nodes[v, COUNTS + K + x.size + j] = -x[j], x[j]
    nodes[v, PRODUCT] = 1.0
