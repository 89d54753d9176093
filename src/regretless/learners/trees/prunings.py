"""The best pruning of a tree in hindsight, and checks of trees that are read from files."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from regretless.core.files import state_checks
from regretless.core.kernels.jit import kernel
from regretless.core.types import Array
from regretless.learners.trees.mixtures import LOG_STEP, MIXTURE, STEP
from regretless.learners.trees.mondrian_tree import (
    CAUTIOUS,
    COUNTS,
    FEATURE,
    LEAST_PRODUCT,
    LEFT,
    LOSS,
    PRODUCT,
    RAISED,
    THRESHOLD,
    TIME,
    TOTAL,
)

LATEST = 1e300  # bound on times: their differences, times the reach of a row, are finite
AT_ONCE = 1024  # nodes per step of a check, which bounds its memory


@kernel
def in_order(nodes: Array, root: int, size: int, order: Array) -> int:
    """Write the nodes of a tree, parents before children; returns their number, or size + 1 if there are more."""
    order[0] = root
    found = 1
    i = 0
    while i < found:
        v = int(order[i])
        if nodes[v, LEFT] != 0.0:
            if found + 2 > size:
                return size + 1
            order[found] = nodes[v, LEFT]
            order[found + 1] = nodes[v, LEFT] + 1.0
            found += 2
        i += 1
    return found


@kernel
def best_pruning(nodes: Array, root: int, size: int) -> tuple[float, int]:
    """The least total loss of a pruning, and how many leaves it has. Of equal ones up to rounding, the smallest."""
    order, loss, leaves = np.empty(size), np.empty(nodes.shape[0]), np.empty(nodes.shape[0], np.int64)
    n = in_order(nodes, root, size, order)
    for i in range(n - 1, -1, -1):
        v = int(order[i])
        loss[v], leaves[v] = nodes[v, LOSS] - (math.log(nodes[v, PRODUCT]) if nodes[v, PRODUCT] > 0.0 else 0.0), 1
        if nodes[v, LEFT] != 0.0:
            left = int(nodes[v, LEFT])
            right = left + 1
            finer = loss[left] + loss[right]
            if finer < loss[v] * (1.0 - 1e-12):
                loss[v], leaves[v] = finer, leaves[left] + leaves[right]
    return loss[root], leaves[root]


def check_trees(nodes: Array, sizes: Array, n_features: int, rows: float) -> None:
    """Refuse a table that no run of so many rows can have led to."""
    M, used = sizes.size, int(sizes.sum())
    state_checks.require(not nodes[used:].any(), "nodes has entries beyond its trees")
    table = nodes[:used]
    check_links(table, sizes, n_features)
    state_checks.whole("nodes, splits above a node", table[:, RAISED], rows)
    state_checks.within("nodes, losses", table[:, LOSS], -state_checks.ROUNDING * rows, state_checks.LARGEST)
    products = table[table[:, TOTAL] > 0.0, PRODUCT]
    state_checks.within("nodes, products", products, LEAST_PRODUCT, 1.0 + state_checks.ROUNDING)
    state_checks.within("nodes, times", table[:, TIME], 0.0, LATEST)
    state_checks.require(not table[:M, TIME].any(), "nodes: a root does not begin at time 0")
    inner: NDArray[np.intp] = np.flatnonzero(table[:, LEFT])
    leaves = np.delete(table[:, [FEATURE, THRESHOLD, RAISED, *range(CAUTIOUS, TOTAL)]], inner, axis=0)
    state_checks.require(not leaves.any(), "nodes: a leaf is split")
    check_mixtures(table[inner, CAUTIOUS:TOTAL].reshape(-1, MIXTURE))
    for begin in range(0, used, AT_ONCE):
        check_contents(table[begin : begin + AT_ONCE], n_features)
    for begin in range(0, inner.size, AT_ONCE):
        check_splits(table, inner[begin : begin + AT_ONCE], n_features)


def check_mixtures(found: Array) -> None:
    """Two probabilities that sum to 1, the smaller one with as many factors left out as it needs."""
    stop, go, out = found.T
    smaller = np.minimum(stop, go)
    state_checks.within("nodes, probabilities", found[:, :2], STEP * STEP, 1.0 + state_checks.ROUNDING)
    state_checks.require(
        np.all(np.abs(stop + go - 1.0) <= state_checks.ROUNDING), "nodes: probabilities do not sum to 1"
    )
    state_checks.whole("nodes, factors left out of probabilities", np.abs(out), state_checks.LARGEST_COUNT / -LOG_STEP)
    state_checks.require(
        np.all((out == 0.0) | ((smaller <= STEP * (1.0 + state_checks.ROUNDING)) & ((out > 0.0) == (stop < go)))),
        "nodes: factors are left out of large probabilities",
    )


def check_links(table: Array, sizes: Array, n_features: int) -> None:
    """Every node but the roots is the child of one other, and every tree has as many nodes as it says."""
    M, used = sizes.size, len(table)
    state_checks.whole("nodes, children", table[:, LEFT], max(used - 2, 0))
    state_checks.whole("nodes, features", table[:, FEATURE], n_features - 1)
    left = table[table[:, LEFT] != 0.0, LEFT]
    children = np.concatenate([left, left + 1.0])
    state_checks.require(
        np.array_equal(np.sort(children), np.arange(M, used)), "nodes: children are not those of trees"
    )
    order = np.empty(int(sizes.max()))
    for tree, size in enumerate(sizes.tolist()):
        found = in_order(table, tree, int(size), order)
        state_checks.require(found == size, f"nodes: tree {tree} does not have {size:.0f} nodes")


def check_contents(some: Array, n_features: int) -> None:
    """Class weights that sum to the total, and boxes in order."""
    boxes = some.shape[1] - 2 * n_features
    counts, total = some[:, COUNTS:boxes], some[:, TOTAL]
    state_checks.within("nodes, class weights", some[:, TOTAL:boxes], 0.0, state_checks.LARGEST)
    state_checks.require(
        np.all(np.abs(counts.sum(axis=1) - total) <= state_checks.ROUNDING * total), "nodes: totals are not sums"
    )
    low, high = -some[:, boxes : boxes + n_features], some[:, boxes + n_features :]
    state_checks.within("nodes, boxes", some[:, boxes:], -state_checks.LARGEST_SQUARED, state_checks.LARGEST_SQUARED)
    state_checks.require(np.all(low <= high), "nodes have boxes that are not in order")


def check_splits(table: Array, inner: NDArray[np.intp], n_features: int) -> None:
    """What an inner node has in common with its children: it has their rows, and its threshold lies between them."""
    boxes = table.shape[1] - 2 * n_features
    parent = table[inner]
    first = parent[:, LEFT].astype(np.intp)
    left, right = table[first], table[first + 1]
    counts = slice(TOTAL, boxes)
    state_checks.require(
        np.all((left[:, TIME] == right[:, TIME]) & (left[:, TIME] >= parent[:, TIME])), "nodes: times are not in order"
    )
    off = np.abs(left[:, counts] + right[:, counts] - parent[:, counts])
    state_checks.require(
        np.all(off <= state_checks.ROUNDING * parent[:, [TOTAL]]), "nodes: children do not have the rows of the node"
    )
    state_checks.require(
        np.array_equal(parent[:, boxes:], np.maximum(left[:, boxes:], right[:, boxes:])),
        "nodes: boxes are not those of the children",
    )
    low, at, threshold = boxes + parent[:, FEATURE].astype(np.intp), np.arange(len(parent)), parent[:, THRESHOLD]
    state_checks.require(
        np.all((left[at, low + n_features] <= threshold) & (threshold < -right[at, low])),
        "nodes: thresholds split no boxes",
    )
