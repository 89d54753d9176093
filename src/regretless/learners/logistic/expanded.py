"""The members on expanded rows: one compiled pass over them, what they have learned, and how that grows.

To add another kind of member: its constants in `effort.Expansion` and `members.Members`, its fields in `LogisticState`,
and here its turn in `run` and `forecast_block` and its part of `start`, `resized`, `with_class` and `check`. Its logits
come after those of the products, so that the forest and the stack, which are last, stay there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core import state_checks
from regretless.core.jit import inlined_kernel, jitable, kernel, merged_kernel
from regretless.core.types import Array
from regretless.learners.logistic import folds, forest, fourier_rows, linear, newton, product_rows, splines, stacking
from regretless.learners.logistic.effort import Sizes
from regretless.learners.logistic.fourier_rows import N_ROWS, SQUARES, STEEPEST, next_octave
from regretless.learners.logistic.members import Constants, Members
from regretless.learners.logistic.newton import Step, buffers_for, first_variance
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


class Given(NamedTuple):
    """A block of rows as these members read it."""

    X: Array
    rows: Array  # rescaled
    counts: Array  # of the values learned before, per column; updated
    splines: Array  # (at least n, D) room for the spline rows; with `ready` they are there
    places: NDArray[np.int64]  # of one row: see `spline_row`
    ready: bool


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


@inlined_kernel
def run(s: LogisticState, c: Constants, given: Given, Y: Array, weight: Array, logits: Array) -> None:
    """Play a block with every member; `logits` (all members, at least n, K) holds the logits forecast."""
    X, rows, counts = given.X, given.rows, given.counts
    S, F, Q, n = c.splines.shape[0], c.fourier.shape[0], c.products.shape[0], X.shape[0]
    at, buffer = linear_members(c), np.empty(n * widest_other(s))
    if S:
        expanded = given.splines[:n]
        ranks = Ranks(s.samples, counts, c.numbers, c.sizes[0])
        if given.ready:
            enter_row(ranks, X, 0, given.places)
        else:
            write_spline_rows(ranks, X, weight, rows, expanded)
        work = buffers_for(s.spline_matrices[:1], Y.shape[1])
        for i in range(S):
            own = Step(c.splines[i, 0], c.splines[i, 1], 1.0)
            said = logits[at + i, :n]
            newton_run(s.spline_matrices[i : i + 1], s.spline_weights[i], own, expanded, Y, weight, work, said)
    if F:
        expanded = block_of(buffer, n, s.fourier_weights.shape[2])
        write_fourier_rows(s.frequencies, s.spread, weight, rows, expanded)
        work = buffers_for(s.fourier_matrices[:1], Y.shape[1])
        octave = 0.0
        for i in range(F):
            while octave < c.fourier[i, 3]:
                next_octave(s.frequencies.shape[0], expanded)
                octave += 1.0
            own = Step(c.fourier[i, 0], c.fourier[i, 1], 1.0)
            said = logits[at + S + i, :n]
            newton_run(s.fourier_matrices[i : i + 1], s.fourier_weights[i], own, expanded, Y, weight, work, said)
    if Q:
        expanded = block_of(buffer, n, s.product_weights.shape[2])
        write_product_rows(s.pairs, rows, expanded)
        work = buffers_for(s.product_matrices[:1], Y.shape[1])
        for i in range(Q):
            own = Step(c.products[i, 0], c.products[i, 1], 1.0)
            said = logits[at + S + F + i, :n]
            newton_run(s.product_matrices[i : i + 1], s.product_weights[i], own, expanded, Y, weight, work, said)


@inlined_kernel
def forecast_block(s: LogisticState, c: Constants, given: Given, logits: Array) -> None:
    """The logits of a block, all from the same state, of which no array is written."""
    X, rows = given.X, given.rows
    S, F, Q, n = c.splines.shape[0], c.fourier.shape[0], c.products.shape[0], X.shape[0]
    at, buffer, nothing = linear_members(c), np.empty(n * widest_other(s)), np.zeros(n)
    if S:
        expanded = given.splines[:n]
        ranks = Ranks(s.samples, given.counts, c.numbers, c.sizes[0])
        for t in range(n):
            spline_row(ranks, X, t, rows, expanded, given.places)
        for i in range(S):
            linear_forecast(s.spline_weights[i], expanded, logits[at + i, :n])
    if F:
        expanded = block_of(buffer, n, s.fourier_weights.shape[2])
        write_fourier_rows(s.frequencies, s.spread, nothing, rows, expanded)
        octave = 0.0
        for i in range(F):
            while octave < c.fourier[i, 3]:
                next_octave(s.frequencies.shape[0], expanded)
                octave += 1.0
            linear_forecast(s.fourier_weights[i], expanded, logits[at + S + i, :n])
    if Q:
        expanded = block_of(buffer, n, s.product_weights.shape[2])
        write_product_rows(s.pairs, rows, expanded)
        for i in range(Q):
            linear_forecast(s.product_weights[i], expanded, logits[at + S + F + i, :n])


@kernel
def block_of(buffer: Array, n: int, width: int) -> Array:
    """The first entries of a buffer as n rows: the kinds of rows take turns in one, which stays in the cache."""
    return buffer[: n * width].reshape(n, width)


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
        variance = first_variance(constants[:, 1:3], n_classes)
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
    for i, wanted in enumerate(members.fourier[:, 3]):
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
        first = first_variance(constants[:, 1:3], n_classes).max(axis=1)
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
