"""The members on expanded rows: their compiled passes, what they have learned, and how that grows.

To add another kind of member: its constants in `effort.Expansion` and `members.Members`, its fields in `LogisticState`,
its passes here and in `parts.py`, and its share of `start`, `resized`, `with_class` and `check`. Its logits come after
those of the products, so that the forest and the stack, which are last, stay there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.jit import inlined_kernel, jitable, merged_kernel
from regretless.core.types import Array
from regretless.learners.logistic import folds, forest, fourier_rows, linear, newton, product_rows, splines, stacking
from regretless.learners.logistic.effort import Sizes
from regretless.learners.logistic.fourier_rows import N_ROWS, SQUARES, STEEPEST, next_octave
from regretless.learners.logistic.members import Constants, Members, Told
from regretless.learners.logistic.newton import INTERCEPT, LAM, OCTAVE, first_variance
from regretless.learners.logistic.product_rows import choose_pairs
from regretless.learners.logistic.scaling import COUNT, FARTHEST
from regretless.learners.logistic.splines import SAMPLE, Ranks, enter_row, spline_row

if TYPE_CHECKING:
    from regretless.learners.logistic.state import LogisticState

newton_run, linear_forecast = newton.run, linear.forecast_block
write_spline_rows, write_fourier_rows = splines.spline_rows, fourier_rows.fourier_rows
write_product_rows = product_rows.product_rows

KINDS = ("spline", "fourier", "product")
KEYS = 1 << 32  # see `_keys`


# ---------------------------------------------------------------------- kernels


@jitable
def spline_width(s: LogisticState) -> int:
    """How many columns a spline row has, 0 if there are none."""
    return s.spline_weights.shape[2] if s.spline_weights.shape[0] else 0


@merged_kernel
def expanded_width(s: LogisticState) -> int:
    """How many columns the expanded rows have that are held at a time."""
    return spline_width(s) + widest_other(s)


@merged_kernel
def widest_other(s: LogisticState) -> int:
    """How many columns an expanded row that is no spline row has at most."""
    found = 0
    if s.fourier_weights.shape[0]:
        found = s.fourier_weights.shape[2]
    if s.product_weights.shape[0]:
        found = max(found, s.product_weights.shape[2])
    return found


@merged_kernel
def linear_members(c: Constants) -> int:
    """How many members come before these."""
    return c.radii.size + c.newton.shape[0] + c.rates.shape[0] + 1


@merged_kernel
def forest_place(c: Constants) -> int:
    """How many members come before the forest."""
    return linear_members(c) + c.splines.shape[0] + c.fourier.shape[0] + c.products.shape[0]


# What the kernels below are called with is in parts.py: `logits` (all members, at least n, K), of which each fills its
# own, and members that always play all at once, whatever `first` and `last` say.


@inlined_kernel
def run_splines(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Play a block with the members on spline rows."""
    S, at, expanded = c.splines.shape[0], linear_members(c), told.splines[: told.rows.shape[0]]
    ranks = Ranks(s.samples, told.counts, c.numbers, c.sizes[0])
    if told.ready:
        enter_row(ranks, told.X, 0, told.places)
    else:
        write_spline_rows(ranks, told.X, told.weight, told.rows, expanded)
    P, versions, said = one_each(s.spline_matrices), (expanded, expanded), logits[at : at + S]
    newton_run(P, s.spline_weights, c.splines, versions, told.Y, told.weight, told.ready, said)


@inlined_kernel
def forecast_splines(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Their logits for a block, all from the same state, of which no array is written."""
    at, expanded = linear_members(c), told.splines[: told.rows.shape[0]]
    ranks = Ranks(s.samples, told.counts, c.numbers, c.sizes[0])
    for t in range(told.rows.shape[0]):
        spline_row(ranks, told.X, t, told.rows, expanded, told.places)
    for i in range(c.splines.shape[0]):
        linear_forecast(s.spline_weights[i], expanded, logits[at + i, : expanded.shape[0]])


@inlined_kernel
def run_fourier(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Play a block with the members on Fourier rows."""
    at, expanded = linear_members(c) + c.splines.shape[0], np.empty((told.rows.shape[0], s.fourier_weights.shape[2]))
    write_fourier_rows(s.frequencies, s.spread, told.weight, told.rows, expanded)
    P, octave = one_each(s.fourier_matrices), 0.0
    for i in range(c.fourier.shape[0]):
        while octave < c.fourier[i, OCTAVE]:
            next_octave(s.frequencies.shape[0], expanded)
            octave += 1.0
        j, said = i + 1, logits[at + i : at + i + 1]
        w, steps = s.fourier_weights[i:j], c.fourier[i:j]
        newton_run(P[i:j], w, steps, (expanded, expanded), told.Y, told.weight, told.ready, said)


@inlined_kernel
def forecast_fourier(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Their logits for a block, all from the same state, of which no array is written."""
    at, expanded = linear_members(c) + c.splines.shape[0], np.empty((told.rows.shape[0], s.fourier_weights.shape[2]))
    write_fourier_rows(s.frequencies, s.spread, np.zeros(expanded.shape[0]), told.rows, expanded)
    octave = 0.0
    for i in range(c.fourier.shape[0]):
        while octave < c.fourier[i, OCTAVE]:
            next_octave(s.frequencies.shape[0], expanded)
            octave += 1.0
        linear_forecast(s.fourier_weights[i], expanded, logits[at + i, : expanded.shape[0]])


@inlined_kernel
def run_products(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Play a block with the members on product rows."""
    expanded = np.empty((told.rows.shape[0], s.product_weights.shape[2]))
    write_product_rows(s.pairs, told.rows, expanded)
    P, said = one_each(s.product_matrices), logits[forest_place(c) - c.products.shape[0] : forest_place(c)]
    versions = expanded, expanded
    newton_run(P, s.product_weights, c.products, versions, told.Y, told.weight, told.ready, said)


@inlined_kernel
def forecast_products(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Their logits for a block, all from the same state, of which no array is written."""
    at, expanded = forest_place(c) - c.products.shape[0], np.empty((told.rows.shape[0], s.product_weights.shape[2]))
    write_product_rows(s.pairs, told.rows, expanded)
    for i in range(c.products.shape[0]):
        linear_forecast(s.product_weights[i], expanded, logits[at + i, : expanded.shape[0]])


@inlined_kernel
def one_each(matrices: Array) -> Array:
    """One matrix per member, in the form of those that have one per class."""
    members, tall, wide = matrices.shape
    return matrices.reshape(members, 1, tall, wide)


# ---------------------------------------------------------------------- the start, and growth


def start(members: Members, n_columns: int, intercept: bool, n_classes: int) -> dict[str, Any]:
    """The fields of the state that belong to these members, before the first row, with plain matrices."""
    sizes, classes = Sizes(*members.sizes.tolist()), n_classes if n_classes > 2 else 1
    matrix, weights = stacking.start(members.total - 1) if members.stacks else (np.empty((0, 0)), np.empty(0))
    found = {
        "samples": np.zeros((members.numbers.size * bool(len(members.splines)), SAMPLE)),
        "frequencies": fourier_rows.frequencies(sizes.directions, n_columns),
        "spread": np.zeros(2),
        "pairs": choose_pairs(sizes.pairs, n_columns, np.empty((0, 2))),
        "stack_matrix": matrix,
        "stack_weights": weights,
    } | forest.start(sizes.trees, n_columns, n_classes)
    for kind, constants, D in _kinds(members, n_columns, intercept):
        variance = first_variance(constants[:, [LAM, INTERCEPT]], n_classes)
        P = np.zeros((len(constants), D, D))
        P[:, np.arange(D), np.arange(D)] = variance[:, :1]
        P[:, D - intercept :, D - intercept :] = variance[:, 1:, None]
        found |= {f"{kind}_matrices": P, f"{kind}_weights": np.zeros((len(constants), classes, D))}
    return found


def _kinds(members: Members, n_columns: int, intercept: bool) -> list[tuple[str, Array, int]]:
    """Each kind of member, the constants of its members and the width of its rows, 0 if there are none."""
    sizes = Sizes(*members.sizes.tolist())
    widths = (
        splines.width(n_columns, members.numbers.size, sizes.levels, intercept),
        fourier_rows.width(sizes.directions, n_columns, sizes.direct, intercept),
        product_rows.width(sizes.pairs, n_columns, intercept),
    )
    constants = (members.splines, members.fourier, members.products)
    return [(kind, c, D if len(c) else 0) for kind, c, D in zip(KINDS, constants, widths, strict=True)]


def size(members: Members, n_columns: int, intercept: bool, n_classes: int) -> int:
    """How many numbers these fields hold."""
    sizes, classes = Sizes(*members.sizes.tolist()), n_classes if n_classes > 2 else 1
    found = members.numbers.size * bool(len(members.splines)) * SAMPLE + sizes.directions * n_columns + 2
    found += 2 * sizes.pairs + members.stacks * members.total * (members.total + 1)
    found += sum(array.size for array in forest.start(sizes.trees, n_columns, n_classes).values())
    return found + sum(
        len(c) * (math.prod(folds.sides(D)) + classes * D) for _, c, D in _kinds(members, n_columns, intercept)
    )


def _keys(kind: str, members: Members, pairs: Any, n_columns: int, intercept: bool) -> np.ndarray:
    """A number for each column of an expanded row, the same as long as the column means the same."""
    sizes, first = Sizes(*members.sizes.tolist()), np.arange(n_columns)
    if kind == "spline":
        hats = np.arange(1, 2**sizes.levels)[:, None] * KEYS + members.numbers
        found = [first, hats.ravel()]
    elif kind == "fourier":
        waves = np.array([[KEYS], [2 * KEYS]]) + np.arange(sizes.directions)
        found = [waves.ravel(), first[: n_columns * sizes.direct]]
    else:
        found = [((pairs[:, 0] + 1) * KEYS + pairs[:, 1]).astype(np.int64), first]
    return np.concatenate([*found, np.full(int(intercept), -1)])


def resized(state: Any, before: Members, after: Members, columns: tuple[int, int], stay: np.ndarray) -> Any:
    """The state for the members `after` and another number of columns, (before, after); `stay` are the members kept.

    A column of an expanded row that is new was 0 in every row so far, so it starts as it would have started then. One
    that is too many is dropped, with its weight. Matrices are plain ones, before and after.
    """
    intercept = state.tables.shape[3] > state.moments.shape[1]
    fresh = start(after, columns[1], intercept, state.slots.size)
    fresh["pairs"] = choose_pairs(len(fresh["pairs"]), columns[1], state.pairs)
    fresh["samples"][: len(state.samples)] = state.samples[: len(fresh["samples"])]
    m = min(len(fresh["frequencies"]), len(state.frequencies))
    fresh["frequencies"][:m, : columns[0]] = state.frequencies[:m]
    if len(after.fourier):
        fresh["spread"] = state.spread
    for kind in KINDS:
        matrices, weights = fresh[f"{kind}_matrices"], fresh[f"{kind}_weights"]
        old = _keys(kind, before, state.pairs, columns[0], intercept)
        new = _keys(kind, after, fresh["pairs"], columns[1], intercept)
        _, here, there = np.intersect1d(old, new, return_indices=True)
        if n := len(weights):
            matrices[:, there[:, None], there] = getattr(state, f"{kind}_matrices")[:n, here[:, None], here]
            weights[:, :, there] = getattr(state, f"{kind}_weights")[:n, :, here]
    fresh |= forest.resized(state, after.trees, columns[1] - columns[0])
    if after.stacks:
        fresh |= {"stack_matrix": state.stack_matrix[np.ix_(stay, stay)], "stack_weights": state.stack_weights[stay]}
    return state._replace(**fresh)


def rows_of(state: Any, members: Members, X: Array, rescaled: Array) -> dict[str, Array]:
    """What the members of each kind read of one row, (members, D)."""
    found = {kind: np.zeros((1, getattr(state, f"{kind}_weights").shape[2])) for kind in KINDS}
    nothing = np.zeros(1)
    if len(members.splines):
        ranks = Ranks(state.samples.copy(), state.moments[COUNT].copy(), members.numbers, int(members.sizes[0]))
        write_spline_rows(ranks, X, nothing, rescaled, found["spline"])
    if len(members.products):
        write_product_rows(state.pairs, rescaled, found["product"])
    read = {"spline": np.repeat(found["spline"], len(members.splines), axis=0)}
    read["product"] = np.repeat(found["product"], len(members.products), axis=0)
    read["fourier"] = np.empty((len(members.fourier), found["fourier"].shape[1]))
    if len(members.fourier):
        write_fourier_rows(state.frequencies, state.spread.copy(), nothing, rescaled, found["fourier"])
    octave = 0
    for i, wanted in enumerate(members.fourier[:, OCTAVE]):
        while octave < wanted:
            next_octave(len(state.frequencies), found["fourier"])
            octave += 1
        read["fourier"][i] = found["fourier"][0]
    return read


# ---------------------------------------------------------------------- files


def check(state: Any, members: Members, rows: float) -> None:
    """Refuse what no run with these members can have led to, for `rows` rows."""
    n_classes, n_columns = state.slots.size, state.moments.shape[1]
    if len(members.splines):
        splines.check(state.samples, state.moments[COUNT, members.numbers])
    for kind, constants in zip(KINDS, (members.splines, members.fourier, members.products), strict=True):
        first = first_variance(constants[:, [LAM, INTERCEPT]], n_classes).max(axis=1)
        weights = getattr(state, f"{kind}_weights")
        folds.check(f"{kind}_matrices", getattr(state, f"{kind}_matrices"), weights.shape[2], first)
        state_checks.sums(f"{kind}_weights", weights)
    state_checks.within("frequencies", state.frequencies, -STEEPEST, STEEPEST)
    learned = rows if len(members.fourier) else 0.0
    state_checks.require(state.spread[N_ROWS] == learned, "spread counts other rows")
    most = learned * n_columns * FARTHEST**2
    state_checks.within("spread, squares", state.spread[SQUARES], 0.0, most * (1.0 + state_checks.ROUNDING))
    pairs = state.pairs
    state_checks.whole("pairs", pairs, n_columns - 1.0)
    state_checks.require(np.all(pairs[:, 0] >= pairs[:, 1]), "pairs are not in order")
    state_checks.require(len(np.unique(pairs, axis=0)) == len(pairs), "pairs: one occurs twice")
    forest.check(state, rows)
    state_checks.covariance("stack_matrix", state.stack_matrix, 1.0 / stacking.PRIOR)
    state_checks.sums("stack_weights", state.stack_weights)
