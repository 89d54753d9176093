"""What OnlineLogisticRegression has learned, and how that grows by a class or by a column."""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np

from regretless.core.errors import TooLarge
from regretless.core.files import state_checks
from regretless.core.numbers.scores import new_scores
from regretless.core.numbers.tally import ROWS, TALLIES
from regretless.core.types import Array
from regretless.learners.logistic import expanded, folds, forest, newton, offsets
from regretless.learners.logistic.adagrad import GRADIENTS, SQUARES, WEIGHTS
from regretless.learners.logistic.members import Members
from regretless.learners.logistic.mixing import check_mixture
from regretless.learners.logistic.newton import INTERCEPT, LAM, VERSION
from regretless.learners.logistic.scaling import COUNT, LARGEST, LOW, MOMENTS, rescale
from regretless.learners.second_order.rounding import ROOT, SUMS, check_matrix


class LogisticState(NamedTuple):
    """Everything learned. Members lie along the first axis.

    A slot is the position of a class in these arrays: classes get slots in the order in which they appear, and there
    are at least two slots. Below, K is the number of slots, r = K - 1, d the number of encoded columns, and d' the same
    with the intercept.
    """

    moments: Array  # (6, d) of the columns: see scaling.py
    P: Array  # (M, r d', r d') of the certified members, AIOLI or FOLKLORE
    w: Array  # (M, r d')
    tallies: Array  # (M, SUMS)
    matrices: Array  # (N, K, *folds.sides(d')) of the Newton members; one of the K for two classes
    weights: Array  # (N, K, d')
    tables: Array  # (R, 3, K, d') of the AdaGrad members: see adagrad.py
    slopes: Array  # (R,) their sums of g.w
    counts: Array  # (K,) of labels, for the member that forecasts their frequencies
    log_weight: Array  # (members,) in the mixture, up to a constant
    losses: Array  # (members,) total log loss
    slots: Array  # (K,) for each slot the index of its class in `classes_`; -1 where no class has the slot yet
    scores: Array  # see core/numbers/scores.py
    bins: Array
    tally: Array
    # of the members on expanded rows and of the stack, see expanded.py; D is the width of the row in question
    samples: Array  # (columns of numbers, SAMPLE): see splines.py
    spline_matrices: Array  # (S, *folds.sides(D))
    spline_weights: Array  # (S, K, D), or (S, 1, D) for two classes
    frequencies: Array  # (directions, d): see fourier_rows.py
    spread: Array  # (2,)
    fourier_matrices: Array  # (F, *folds.sides(D))
    fourier_weights: Array  # (F, K, D)
    pairs: Array  # (pairs, 2) columns: see product_rows.py
    product_matrices: Array  # (Q, *folds.sides(D))
    product_weights: Array  # (Q, K, D)
    forest_nodes: Array  # these five as in `Forest` of learners/trees; empty without trees
    forest_sizes: Array
    forest_losses: Array
    forest_played: Array
    forest_tally: Array
    stack_matrix: Array  # (members, members): see stacking.py
    stack_weights: Array  # (members,)
    offsets: Array  # (models, coded columns, SLOTS, 2): see offsets.py; no slots with more than two classes
    offset_weights: Array  # (models, 2, d')


def start(n_columns: int, intercept: bool, n_classes: int, members: Members, n_coded: int = 0) -> LogisticState:
    """The state before the first row; `n_coded` input columns are coded."""
    return folded(_start(n_columns, intercept, n_classes, members, n_coded))


def _matrices(state: LogisticState) -> dict[str, tuple[Array, int]]:
    """The Newton members' matrices of each kind by field, and their numbers of columns."""
    found = {"matrices": (state.matrices, state.weights.shape[2])}
    for kind in expanded.KINDS:
        found[f"{kind}_matrices"] = getattr(state, f"{kind}_matrices"), getattr(state, f"{kind}_weights").shape[2]
    return found


def folded(state: LogisticState) -> LogisticState:
    """The state with its matrices in the form of folds.py."""
    return state._replace(**{name: folds.folded(P) for name, (P, _) in _matrices(state).items()})


def aligned(state: LogisticState) -> LogisticState:
    """The state with its matrices where a processor reads them fastest."""
    return state._replace(**{name: folds.aligned(P) for name, (P, _) in _matrices(state).items()})


def unfolded(state: LogisticState) -> LogisticState:
    """The state with plain matrices, (..., d, d), in which it grows."""
    return state._replace(**{name: folds.unfolded(P, d) for name, (P, d) in _matrices(state).items()})


def _start(n_columns: int, intercept: bool, n_classes: int, members: Members, n_coded: int = 0) -> LogisticState:
    d = n_columns + intercept
    M, N, R = len(members.radii), len(members.newton), len(members.rates)
    C, r = n_classes if n_classes > 2 else 1, n_classes - 1
    # AIOLI's lambda is that of the margin's weights, sqrt(2) times longer than the reduced ones: see `_with_class`
    regularization = members.regularization / (2.0 if n_classes == 2 else 1.0)
    scores, bins = new_scores()
    return LogisticState(
        moments=np.zeros((MOMENTS, n_columns)),
        P=_multiples(1.0 / regularization, r * d),
        w=np.zeros((M, r * d)),
        tallies=np.zeros((M, SUMS)),
        matrices=_first_matrices(members, n_classes, C, d),
        weights=np.zeros((N, C, d)),
        tables=np.zeros((R, 3, C, d)),
        slopes=np.zeros(R),
        counts=np.zeros(n_classes),
        log_weight=np.log(members.prior / members.prior.max()),
        losses=np.zeros(members.total),
        slots=np.full(n_classes, -1.0),
        scores=scores,
        bins=bins,
        tally=np.zeros(TALLIES),
        **expanded.start(members, n_columns, intercept, n_classes),
        **offsets.start(n_coded, d, n_classes),
    )


def _first_matrices(members: Members, n_classes: int, matrices: int, d: int) -> Array:
    """What so many matrices of each Newton member start as, (N, matrices, d, d)."""
    variance = newton.first_variance(members.newton[:, [LAM, INTERCEPT]], n_classes)
    found = _multiples(np.repeat(variance[:, 0], matrices), d).reshape(len(variance), matrices, d, d)
    if d:
        found[:, :, -1, -1] = variance[:, 1:]
    return found


def _multiples(factors: Array, size: int) -> Array:
    """Multiples of the identity, (len(factors), size, size), without a temporary array of that size."""
    found = np.zeros((len(factors), size, size))
    found[:, np.arange(size), np.arange(size)] = factors[:, None]
    return found


# ---------------------------------------------------------------------- size


def size(n_columns: int, intercept: bool, n_classes: int, members: Members, n_coded: int = 0) -> int:
    """How many numbers the arrays of a state hold that grow with columns and classes."""
    d = n_columns + intercept
    M, N, R = len(members.radii), len(members.newton), len(members.rates)
    C, r = n_classes if n_classes > 2 else 1, n_classes - 1
    linear = (
        M * (r * d) * (r * d + 1)
        + N * C * (math.prod(folds.sides(d)) + d)
        + R * 3 * C * d
        + MOMENTS * n_columns
        + 2 * n_classes
    )
    return linear + expanded.size(members, n_columns, intercept, n_classes) + offsets.size(n_coded, d, n_classes)


def memory() -> float:
    """The machine's memory in bytes; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def require_memory(n_columns: int, intercept: bool, n_classes: int, members: Members) -> None:
    """Refuse a state that does not fit into memory, before it is allocated."""
    needed = size(n_columns, intercept, n_classes, members) * np.dtype(np.float64).itemsize
    if needed > memory():
        raise TooLarge(
            f"{n_columns + intercept} columns and {n_classes} classes need {needed / 2**30:,.1f} GiB, and this machine "
            f'has {memory() / 2**30:,.1f}. Leave radii="auto", which drops members that are too large, or use fewer '
            "columns (lower max_categories) or fewer classes. Nothing was learned from this call."
        )


# ---------------------------------------------------------------------- files


def check(state: LogisticState, members: Members) -> None:
    """Refuse a state that no run with these members can have led to."""
    rows, n_classes = float(state.tally[ROWS]), state.slots.size
    state_checks.tally(state.tally)
    for member in state.tallies:
        state_checks.tally(member, "tallies")
        state_checks.require(member[ROWS] == rows, "tallies: a member has learned other rows")
    state_checks.moments("moments", state.moments[:LOW], rows, LARGEST)
    low, high, more = state.moments[LOW:]
    state_checks.within("moments, values", [low, high], -LARGEST, LARGEST)
    state_checks.require(np.all(low <= high), "moments have values that are not in order")
    state_checks.whole("moments, further values", more, 1.0)
    halves = 2.0 if n_classes == 2 else 1.0
    for P, tally, lam in zip(state.P, state.tallies, members.regularization, strict=True):
        check_matrix(P, tally, halves / lam)
    first = newton.first_variance(members.newton[:, INTERCEPT], n_classes)  # the largest entry: that of the intercept
    variance = np.repeat(first[:, None], state.matrices.shape[1], axis=1)
    folds.check("matrices", state.matrices, state.weights.shape[2], variance)
    for name in ("w", "weights", "tables", "slopes"):
        state_checks.sums(name, getattr(state, name))
    state_checks.within("tables, squares", state.tables[:, SQUARES], 0.0, math.inf)
    state_checks.within("counts", state.counts, 0.0, state_checks.LARGEST)
    check_mixture(state, rows)
    expanded.check(state, members, rows)
    offsets.check(state)


# ---------------------------------------------------------------------- growth


def add_class(state: LogisticState, before: Members, after: Members, row: Array) -> LogisticState:
    """The state with one more slot, for a class that appears in this encoded row, (1, d).

    `before` and `after` are the members for the old and for the new number of classes. With three, offsets end.
    """
    kept, n_columns = _kept(unfolded(state), before, after), state.moments.shape[1]
    kept = expanded.resized(kept, before, after, (n_columns, n_columns), _members_kept(before, after))
    x = np.empty((2, 1, state.tables.shape[3]))
    rescale(state.moments.copy(), row, np.zeros(1), *x)
    read = expanded.rows_of(kept, after, row, x[0])
    return folded(_with_expanded_class(_with_class(forest.with_class(kept), after, x[:, 0]), kept, read))


def add_columns(
    state: LogisticState, before: Members, after: Members, n_columns: int, seen: Array, n_coded: int = 0
) -> LogisticState:
    """The state for `n_columns` encoded columns and `n_coded` coded input columns.

    `seen` has one entry per new column: the number of rows so far in which it had a value, which was 0.
    """
    if state.tally[ROWS] == 0.0:
        return start(n_columns, _has_intercept(state), state.slots.size, after, n_coded)._replace(slots=state.slots)
    if not seen.size and n_coded == state.offsets.shape[1]:
        return state
    kept, columns = _kept(unfolded(state), before, after), (state.moments.shape[1], n_columns)
    kept = expanded.resized(kept, before, after, columns, _members_kept(before, after))
    return folded(_with_columns(kept, after, seen, n_coded))


def _has_intercept(state: LogisticState) -> bool:
    """Whether the members have one more weight than there are encoded columns."""
    return state.tables.shape[3] > state.moments.shape[1]


def _members_kept(before: Members, after: Members) -> np.ndarray:
    """Which members are not too expensive now: the first of each kind."""
    firsts = np.cumsum([0, *before.of_each_kind[:-1]])
    return np.concatenate([first + np.arange(stay) for first, stay in zip(firsts, after.of_each_kind, strict=True)])


def _kept(state: LogisticState, before: Members, after: Members) -> LogisticState:
    """The state without the members that are now too expensive; the weights of the others grow in proportion.

    The fields of expanded rows stay: see `expanded.resized`.
    """
    M, N, stay = len(after.radii), len(after.newton), _members_kept(before, after)
    return state._replace(
        P=state.P[:M],
        w=state.w[:M],
        tallies=state.tallies[:M],
        matrices=state.matrices[:N],
        weights=state.weights[:N],
        log_weight=state.log_weight[stay] - state.log_weight[stay].max(),
        losses=state.losses[stay],
    )


def _with_class(state: LogisticState, members: Members, x: Array) -> LogisticState:
    """The state with one more slot, for a class that appears in the rescaled row x, given in both versions.

    What was learned does not change: the losses so far were among the classes known at the time and do not depend on
    the new weights, so their quadratics have neither slope nor curvature there. AIOLI and FOLKLORE start the new class
    at 0. The Newton and AdaGrad members, where there is an intercept, start it as a class seen once in the rows so far.
    """
    K, d, intercept, rows = state.slots.size, state.tables.shape[3], _has_intercept(state), float(state.tally[ROWS])
    P, w = state.P, state.w
    matrices, weights, tables = state.matrices, state.weights, state.tables
    if K == 2:  # from the margin m to reduced coordinates, m / sqrt(2), and to one matrix and weight vector per class
        P, w = P * _power(0.5, state)[:, None, None], w / math.sqrt(2.0)
        matrices = np.repeat(matrices / 2.0, 2, axis=1)
        weights = np.concatenate([-weights, weights], axis=1) / 2.0
        halves = np.array([0.5, 1.0, 1.0])[:, None, None]
        signs = np.array([-1.0, 1.0, -1.0])[:, None, None]
        tables = np.concatenate([tables * halves * signs, tables * halves], axis=2)
    of_newton, of_rates = x[members.newton[:, VERSION].astype(np.intp)], x[members.rates[:, 2].astype(np.intp)]
    return state._replace(
        P=_bordered(P, d, _power(1.0 / members.regularization, state)),
        w=np.pad(w, ((0, 0), (0, d))),
        matrices=np.concatenate([matrices, _first_matrices(members, K + 1, 1, d)], axis=1),
        weights=_seen_once(weights, of_newton, rows, intercept),
        tables=np.stack(
            [
                _seen_once(tables[:, WEIGHTS], of_rates, rows, intercept),
                *(np.pad(tables[:, part], ((0, 0), (0, 1), (0, 0))) for part in (SQUARES, GRADIENTS)),
            ],
            axis=1,
        ),
        counts=np.append(state.counts, 0.0),
        slots=np.append(state.slots, -1.0),
        **offsets.start(state.offsets.shape[1], d, K + 1),
    )


def _with_expanded_class(state: LogisticState, before: LogisticState, read: dict[str, Array]) -> LogisticState:
    """The state with a class more in the members on expanded rows, which read these rows: see `_with_class`."""
    found, intercept, rows = {}, _has_intercept(state), float(state.tally[ROWS])
    for kind, x in read.items():
        matrices, weights = getattr(before, f"{kind}_matrices"), getattr(before, f"{kind}_weights")
        if before.slots.size == 2:
            matrices, weights = matrices / 2.0, np.concatenate([-weights, weights], axis=1) / 2.0
        found[f"{kind}_matrices"] = matrices
        found[f"{kind}_weights"] = _seen_once(weights, x, rows, intercept)
    return state._replace(**found)


def _power(variance: Array | float, state: LogisticState) -> Array:
    """A factor of P, one per certified member, or its square root where a root of P is stored."""
    found: Array = np.where(state.tallies[:, ROOT] != 0.0, np.sqrt(variance), variance)
    return found


def _bordered(P: Array, d: int, variance: Array) -> Array:
    """P with d more rows and columns, a multiple of the identity."""
    size = P.shape[1]
    wider = np.zeros((len(P), size + d, size + d))
    wider[:, :size, :size] = P
    wider[:, size:, size:] = _multiples(variance, d)
    return wider


def _seen_once(weights: Array, x: Array, rows: float, intercept: bool) -> Array:
    """Weights (members, K, d) with one more class, of probability 1 in `rows` + 1 at x, (members, d)."""
    new = np.zeros((len(weights), 1, x.shape[1]))
    if intercept and len(weights):
        logits = np.einsum("ikd,id->ik", weights, x)
        new[:, 0, -1] = np.logaddexp.reduce(logits, axis=1) - math.log(rows + 1.0)
    return np.concatenate([weights, new], axis=1)


def _with_columns(state: LogisticState, members: Members, seen: Array, n_coded: int) -> LogisticState:
    """The state as it would be if the new columns had been there from the start, with 0 in every row that had a value.

    A category has had a value in every row so far, and a late column of numbers in none.
    """
    more, d, intercept = seen.size, state.tables.shape[3], _has_intercept(state)
    old = np.r_[0 : d - intercept, d - intercept + more : d + more]  # the intercept stays last
    K = state.slots.size
    r = K - 1
    moments = np.pad(state.moments, ((0, 0), (0, more)))
    moments[COUNT, d - intercept :] = seen
    fresh = _start(d - intercept + more, intercept, K, members)
    M, rooted = len(state.P), state.tallies[:, ROOT] != 0.0
    fresh.P[rooted] = np.sqrt(fresh.P[rooted])
    P = fresh.P.reshape(M, r, d + more, r, d + more)
    P[np.ix_(range(M), range(r), old, range(r), old)] = state.P.reshape(M, r, d, r, d)
    w = fresh.w.reshape(M, r, d + more)
    w[:, :, old] = state.w.reshape(M, r, d)
    matrices = fresh.matrices
    matrices[:, :, old[:, None], old] = state.matrices
    weights, tables = fresh.weights, fresh.tables
    weights[:, :, old] = state.weights
    tables[:, :, :, old] = state.tables
    own = offsets.widened(state, n_coded, d + more, old)
    return state._replace(
        moments=moments, P=fresh.P, w=fresh.w, matrices=matrices, weights=weights, tables=tables, **own
    )
