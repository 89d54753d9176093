"""An aggregated Mondrian forest as a member: the kernels of learners/trees on encoded rows, and how they grow.

The forest plays on rows as they are, not on rescaled ones: it measures columns by their range, and a box of earlier
rows would mean nothing once the scale has changed. A missing value counts as the mean of the values so far. Where there
are none, all rows so far count as having the first value that is learned: with 0 instead, a column that starts late and
far from 0 would have a range in which its values hardly differ.

The table of nodes grows with the rows. Where it is full, `run` stops, and the learner makes room (`with_room`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.jit import jitable, kernel, shared_kernel
from regretless.core.numbers.tally import ROWS
from regretless.core.types import Array
from regretless.learners.logistic.scaling import COUNT, MEAN
from regretless.learners.trees import mondrian_forest
from regretless.learners.trees.mondrian_forest import Forest, ForestConstants, has_room
from regretless.learners.trees.mondrian_tree import COUNTS, scratch_for

if TYPE_CHECKING:
    from regretless.learners.logistic.state import LogisticState

MAX_NODES = 10_000  # of a tree, for rows of any width, so that wider rows never leave a tree too large
SEED = 0

forecast_row, learn_row, first_forest = mondrian_forest.forecast, mondrian_forest.learn, mondrian_forest.start


# ---------------------------------------------------------------------- kernels


@jitable
def forest_of(s: LogisticState) -> Forest:
    """The fields of the state that belong to the forest."""
    return Forest(s.forest_nodes, s.forest_sizes, s.forest_losses, s.forest_played, s.forest_tally)


@kernel
def fill(known: Array, X: Array, t: int, x: Array) -> None:
    """Row t, with the means in `known` for missing values."""
    for j in range(x.size):
        x[j] = known[MEAN, j] if math.isnan(X[t, j]) else X[t, j]


@kernel
def meet(forest: Forest, known: Array, X: Array, t: int, K: int) -> None:
    """Update the means with row t. The first value of a column becomes that of all rows so far."""
    used, d = int(np.sum(forest.sizes)), X.shape[1]
    for j in range(d):
        x = X[t, j]
        if math.isnan(x):
            continue
        if known[COUNT, j] == 0.0 and forest.tally[ROWS] > 0.0:
            for v in range(used):
                forest.nodes[v, COUNTS + K + j], forest.nodes[v, COUNTS + K + d + j] = -x, x
        known[COUNT, j] += 1.0
        known[MEAN, j] += (x - known[MEAN, j]) / known[COUNT, j]


@kernel
def known(moments: Array) -> Array:
    """The counts and means of the columns so far, as the forest reads and updates them."""
    return moments[: MEAN + 1].copy()


@shared_kernel
def run(forest: Forest, known: Array, X: Array, Y: Array, weight: Array, out: Array) -> int:
    """Play a block; `out` holds the log probabilities. Returns the number of rows played: see `has_room`.

    `known` has the counts and means of the columns before the block, (2, d), and is updated.
    """
    K = Y.shape[1]
    constants = ForestConstants(1.0 / K, MAX_NODES, SEED)
    scratch, x = scratch_for(forest.nodes, forest.sizes.size, X.shape[1], K), np.empty(X.shape[1])
    for t in range(X.shape[0]):
        if weight[t] != 0.0 and not has_room(forest, constants):
            return t
        fill(known, X, t, x)
        forecast_row(forest, x, constants, scratch, out[t])
        if weight[t] != 0.0:
            meet(forest, known, X, t, K)
            learn_row(forest, x, Y[t], weight[t], out[t], constants, scratch)
        np.log(out[t], out[t])
    return X.shape[0]


@shared_kernel
def forecast_block(forest: Forest, moments: Array, X: Array, out: Array) -> None:
    """The log probabilities of a block, all from the same forest."""
    K = out.shape[1]
    constants = ForestConstants(1.0 / K, MAX_NODES, SEED)
    scratch, x = scratch_for(forest.nodes, forest.sizes.size, X.shape[1], K), np.empty(X.shape[1])
    for t in range(X.shape[0]):
        fill(moments, X, t, x)
        forecast_row(forest, x, constants, scratch, out[t])
        np.log(out[t], out[t])


# ---------------------------------------------------------------------- the start, and growth


def fields(forest: Forest) -> dict[str, Array]:
    """The fields of a LogisticState."""
    return {f"forest_{name}": array for name, array in forest._asdict().items()}


def start(n_trees: int, n_columns: int, n_classes: int) -> dict[str, Array]:
    """The fields of the state before the first row; empty where there are no trees."""
    if n_trees:
        return fields(first_forest(n_trees, MAX_NODES, n_columns, n_classes))
    return fields(Forest(np.empty((0, 0)), *(np.empty(0) for _ in range(4))))


def fits(state: LogisticState, n_rows: int) -> bool:
    """Whether the table has room for so many rows, whatever they are."""
    M, room = state.forest_sizes.size, len(state.forest_nodes)
    return bool(room >= state.forest_sizes.sum() + 2 * M * n_rows or room == M * MAX_NODES)


def with_room(state: Any) -> Any:
    """The state with a larger table."""
    return state._replace(
        forest_nodes=mondrian_forest.with_room(state.forest_nodes, state.forest_sizes.size, MAX_NODES)
    )


def resized(state: Any, n_trees: int, more: int) -> dict[str, Array]:
    """The fields with `more` columns, which were 0 in every row so far; empty if there are now no trees."""
    if not n_trees:
        return start(0, 0, 0)
    nodes = state.forest_nodes
    boxes = COUNTS + state.slots.size
    low, high = np.split(nodes[:, boxes:], 2, axis=1)
    none = np.zeros((len(nodes), more))
    return fields(forest_of(state)._replace(nodes=np.hstack([nodes[:, :boxes], low, none, high, none])))


def with_class(state: Any) -> Any:
    """The state with one more class, which no row so far has had. `state.slots` does not count it yet."""
    if not state.forest_sizes.size:
        return state
    return state._replace(forest_nodes=np.insert(state.forest_nodes, COUNTS + state.slots.size, 0.0, axis=1))


# ---------------------------------------------------------------------- files


def check(state: Any, rows: float) -> None:
    """Refuse a forest that no run of `rows` rows can have led to."""
    if not state.forest_sizes.size:
        state_checks.require(not len(state.forest_nodes), "forest_nodes has nodes of no tree")
        return
    state_checks.require(state.forest_tally[ROWS] == rows, "forest_tally counts other rows")
    try:
        mondrian_forest.check(forest_of(state), MAX_NODES, state.moments.shape[1])
    except ValueError as error:
        raise ValueError(f"forest: {error}") from error
